//! The amount of memory of the cache, and its dormancy.

/// Gets between decisions on growth.
const GROWTH_GETS: u64 = 32;

/// The arena grows if more than one in this many gets found no room.
const PRESSED_PART: u64 = 64;

/// Gets between decisions on dormancy and shrinkage.
const WINDOW_GETS: u64 = 4096;

/// Lookups pay if at least one in this many hits, or while there is room.
const HIT_PART: u64 = 50;

/// Consecutive windows required for a decision.
const WINDOWS: u32 = 3;

/// Lookups of a dormant cache between decisions on waking.
const DOZING_GETS: u64 = 256;

/// After each failed waking the interval doubles, up to this factor.
const DOZING_FACTOR_MAX: u64 = 64;

/// Counts of gets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Gets that looked up.
    pub looked_up: u64,
    /// Lookups that hit.
    pub hits: u64,
    /// Lookups that found no free room.
    pub pressed: u64,
}

impl Counts {
    fn since(&self, start: &Counts) -> Counts {
        debug_assert!(self.looked_up >= start.looked_up && self.hits >= start.hits, "counts only grow");
        Counts {
            looked_up: self.looked_up - start.looked_up,
            hits: self.hits - start.hits,
            pressed: self.pressed - start.pressed,
        }
    }
}

/// Decisions on size and dormancy.
#[derive(Debug)]
pub struct Sizing {
    chunks_max: u32,
    /// The arena may grow to this many chunks.
    chunks: u32,
    growth_start: Counts,
    window_start: Counts,
    /// Consecutive windows in which lookups did not pay, and in which half of the memory was idle.
    fruitless: u32,
    roomy: u32,
    is_dormant: bool,
    dozing_factor: u64,
    is_shrinking: bool,
}

impl Sizing {
    /// Starts with `chunks` chunks.
    pub fn new(chunks: u32, chunks_max: u32) -> Sizing {
        Sizing {
            chunks_max,
            chunks: chunks.clamp(1, chunks_max),
            growth_start: Counts::default(),
            window_start: Counts::default(),
            fruitless: 0,
            roomy: 0,
            is_dormant: false,
            dozing_factor: 1,
            is_shrinking: false,
        }
    }

    /// Chunks the arena may have at present.
    pub fn chunks(&self) -> u32 {
        self.chunks
    }

    /// Maximum number of chunks.
    pub fn chunks_max(&self) -> u32 {
        self.chunks_max
    }

    /// Whether the last chunk is to be drained.
    pub fn is_shrinking(&self) -> bool {
        self.is_shrinking
    }

    /// Whether only sampled keys are looked up.
    pub fn is_dormant(&self) -> bool {
        self.is_dormant
    }

    /// There is no memory for more than `chunks` chunks.
    pub fn on_refused(&mut self, chunks: u32) {
        debug_assert!(chunks < self.chunks, "another chunk was allowed");
        (self.chunks, self.chunks_max) = (chunks, chunks);
    }

    /// The arena has one chunk less.
    pub fn on_shrunk(&mut self, chunks: u32) {
        debug_assert!(chunks < self.chunks_max, "a chunk is gone");
        self.chunks = chunks.max(1);
        self.is_shrinking = self.is_dormant && chunks > 1;
    }

    /// Reviews the gets so far, at intervals. `is_roomy`: more than half of the memory, and more than a chunk, is free.
    pub fn look(&mut self, now: Counts, chunks: u32, is_roomy: bool) {
        let lately = now.since(&self.growth_start);
        if lately.looked_up >= GROWTH_GETS {
            self.growth_start = now;
            if lately.pressed * PRESSED_PART > lately.looked_up && !self.is_dormant {
                self.chunks = (2 * chunks).clamp(self.chunks, self.chunks_max);
                self.is_shrinking = false;
            }
        }
        let window = now.since(&self.window_start);
        let enough = if self.is_dormant { DOZING_GETS * self.dozing_factor } else { WINDOW_GETS };
        if window.looked_up >= enough {
            self.window_start = now;
            self.on_window(&window, chunks, is_roomy);
        }
        debug_assert!(self.chunks <= self.chunks_max, "memory is limited");
    }

    fn on_window(&mut self, window: &Counts, chunks: u32, is_roomy: bool) {
        debug_assert!(self.fruitless < WINDOWS || self.is_dormant, "lookups stop once they have not paid for long");
        let pays = window.hits * HIT_PART >= window.looked_up;
        if self.is_dormant {
            return if pays {
                self.wake()
            };
        }
        // While there is room, cached entries may still pay.
        let pays = pays || window.pressed * 2 < window.looked_up;
        if pays && self.fruitless == 0 {
            self.dozing_factor = 1;
        }
        self.fruitless = if pays { 0 } else { self.fruitless + 1 };
        self.roomy = if is_roomy && window.pressed == 0 { self.roomy + 1 } else { 0 };
        if self.fruitless >= WINDOWS {
            self.is_dormant = true;
        }
        if self.roomy >= WINDOWS || self.is_dormant {
            self.roomy = 0;
            self.is_shrinking = chunks > 1;
        }
    }

    fn wake(&mut self) {
        debug_assert!(self.is_dormant, "only a dormant cache wakes");
        self.is_dormant = false;
        self.is_shrinking = false;
        self.fruitless = 0;
        self.dozing_factor = (2 * self.dozing_factor).min(DOZING_FACTOR_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Calls `look` after each of `gets` gets; one in `hit_part` hits.
    fn run(sizing: &mut Sizing, counts: &mut Counts, gets: u64, hit_part: u64) {
        for at in 0..gets {
            counts.looked_up += 1;
            let hits = at % hit_part == 0;
            counts.hits += u64::from(hits);
            counts.pressed += u64::from(!hits);
            sizing.look(*counts, sizing.chunks(), false);
        }
    }

    #[test]
    fn a_cache_that_does_not_pay_sleeps_and_wakes_when_it_does() {
        let (mut sizing, mut counts) = (Sizing::new(1, 64), Counts::default());
        run(&mut sizing, &mut counts, 3 * WINDOW_GETS - 1, 1000);
        assert!(!sizing.is_dormant() && sizing.chunks() == 64);
        run(&mut sizing, &mut counts, 1, 1000);
        assert!(sizing.is_dormant() && sizing.is_shrinking());
        run(&mut sizing, &mut counts, 10 * DOZING_GETS, 1000);
        assert!(sizing.is_dormant());
        run(&mut sizing, &mut counts, 2 * DOZING_GETS, 10);
        assert!(!sizing.is_dormant());
    }

    #[test]
    fn waking_in_vain_becomes_rare() {
        let (mut sizing, mut counts) = (Sizing::new(1, 1), Counts::default());
        let mut dozed = Vec::new();
        for _ in 0..8 {
            run(&mut sizing, &mut counts, 3 * WINDOW_GETS, 1000);
            assert!(sizing.is_dormant());
            let before = counts.looked_up;
            while sizing.is_dormant() {
                run(&mut sizing, &mut counts, 1, 1);
            }
            dozed.push((counts.looked_up - before) / DOZING_GETS);
        }
        assert_eq!(dozed, [1, 2, 4, 8, 16, 32, 64, 64]);
    }
}

//! How much memory the cache takes, and whether looking things up pays.

/// Gets after which it is decided whether the arena grows.
const GROWTH_GETS: u64 = 32;

/// It grows where more than one in so many needed room that was not there.
const PRESSED_PART: u64 = 64;

/// Gets after which it is decided whether the cache goes dormant, or gives memory back.
const WINDOW_GETS: u64 = 4096;

/// Looking up pays where at least one in so many hits, or where there is room for what may pay.
const HIT_PART: u64 = 50;

/// So many windows in turn say the same before something follows.
const WINDOWS: u32 = 3;

/// Gets that look up while the cache is dormant, after which it is decided whether it wakes.
const DOZING_GETS: u64 = 256;

/// Each time that waking was in vain, the next decision takes twice as long, up to so much.
const DOZING_FACTOR_MAX: u64 = 64;

/// Counts of gets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Those that looked up.
    pub looked_up: u64,
    /// Those of them that hit.
    pub hits: u64,
    /// Those that found no room free.
    pub pressed: u64,
}

impl Counts {
    fn since(&self, start: &Counts) -> Counts {
        Counts {
            looked_up: self.looked_up - start.looked_up,
            hits: self.hits - start.hits,
            pressed: self.pressed - start.pressed,
        }
    }
}

/// The decisions about size and dormancy.
#[derive(Debug)]
pub struct Sizing {
    chunks_max: u32,
    /// The arena may grow up to so many.
    chunks: u32,
    growth_start: Counts,
    window_start: Counts,
    /// Windows in turn in which nothing paid, and in which half of the memory lay idle.
    fruitless: u32,
    roomy: u32,
    is_dormant: bool,
    dozing_factor: u64,
    is_shrinking: bool,
}

impl Sizing {
    /// A cache that begins with so many chunks.
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

    /// The chunks that the arena may have by now.
    pub fn chunks(&self) -> u32 {
        self.chunks
    }

    /// The most chunks that it may ever have.
    pub fn chunks_max(&self) -> u32 {
        self.chunks_max
    }

    /// Whether the last chunk is to be emptied.
    pub fn is_shrinking(&self) -> bool {
        self.is_shrinking
    }

    /// Whether only sampled keys are looked up.
    pub fn is_dormant(&self) -> bool {
        self.is_dormant
    }

    /// There is no memory for more than so many chunks.
    pub fn on_refused(&mut self, chunks: u32) {
        (self.chunks, self.chunks_max) = (chunks, chunks);
    }

    /// The arena has one chunk less.
    pub fn on_shrunk(&mut self, chunks: u32) {
        self.chunks = chunks.max(1);
        self.is_shrinking = self.is_dormant && chunks > 1;
    }

    /// Looks at the gets so far, now and then. `is_roomy`: more than half of the memory is free, and more than a chunk.
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
    }

    fn on_window(&mut self, window: &Counts, chunks: u32, is_roomy: bool) {
        let pays = window.hits * HIT_PART >= window.looked_up;
        if self.is_dormant {
            return if pays {
                self.wake()
            };
        }
        // While there is room, what is kept may pay yet.
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

    /// Looks after each of so many gets, of which one in `hit_part` hits.
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

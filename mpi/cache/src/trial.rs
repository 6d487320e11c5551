//! Whether the cache makes the gets of a window faster. Both ways are measured: a part of the gets goes to MPI
//! unchanged, and the cheaper way serves the gets until the next probe. A cache that costs more than it saves is tried
//! again after so many gets that all trials together cost little.

use crate::locking::lock;
use crate::meter;
use crate::settings::{self, Mode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A probe alternates blocks of both ways, so that both meet the same circumstances. Medians of blocks disregard
/// blocks in which the process had to wait for a processor.
const BLOCKS: usize = 10;

/// Minimum number of gets of a block, which ends with a completion.
const BLOCK_GETS: u32 = 64;

/// Maximum number of gets without completion. A probe without completions decides nothing.
const OPEN_GETS_MAX: u32 = 1 << 16;

/// The cache is kept if it costs at most this many percent of MPI alone.
const KEPT_PERCENT: u64 = 105;

/// The part of the time that trials of the other way may cost, as a divisor.
const TRIAL_PART: u64 = 64;

/// Bounds of the number of gets between two probes.
const RUN_GETS_MIN: u64 = 1 << 12;
const RUN_GETS_MAX: u64 = 1 << 26;

/// Bounds of the number of gets by the cache before a further probe, for copies to gather. They double with each probe in
/// vain.
const WARM_GETS_MIN: u32 = 1 << 8;
const WARM_GETS_MAX: u32 = 1 << 16;

/// Maximum number of gets by the cache before the first probe of a window. In mode checked copies end with each epoch,
/// so the first ones show as much as later ones.
fn first_gets(mode: Mode) -> u32 {
    match mode {
        Mode::Off | Mode::Checked => 1 << 10,
        Mode::Told => 1 << 13,
        Mode::Phase | Mode::Always => WARM_GETS_MAX,
    }
}

/// The way of a window's gets. Concurrent counts may get lost.
#[derive(Debug)]
pub struct Trial {
    is_left: AtomicBool,
    /// Gets until the next decision.
    gets_left: AtomicU32,
    cycle: Mutex<ProbeCycle>,
}

/// The stages between two probes and in them.
#[derive(Debug)]
struct ProbeCycle {
    stage: Stage,
    /// Gets by the cache before the next probe, if the cache has not paid.
    warm_gets: u32,
}

#[derive(Debug)]
enum Stage {
    /// The gets go the way chosen last.
    Chosen,
    /// The cache gathers copies for the next probe.
    Warm,
    Probe(Probe),
}

#[derive(Debug, Default)]
struct Probe {
    /// Nanoseconds a get of the blocks so far: by the cache, by MPI, in turns.
    costs: Vec<u64>,
    has_begun: bool,
    gets: u32,
    /// Gets of the probe by the cache and by MPI.
    of_way: [u64; 2],
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

impl Trial {
    pub fn new(mode: Mode) -> Trial {
        let (is_left, gets_left) = (AtomicBool::new(false), AtomicU32::new(first_gets(mode)));
        Trial { is_left, gets_left, cycle: Mutex::new(ProbeCycle::first()) }
    }

    /// The window has another mode.
    pub fn restart(&self, space: u32, mode: Mode) {
        meter::release(space);
        let mut cycle = lock(&self.cycle);
        *cycle = ProbeCycle::first();
        self.is_left.store(false, Ordering::Relaxed);
        self.gets_left.store(first_gets(mode), Ordering::Relaxed);
    }

    /// Whether gets go to MPI unchanged.
    #[inline]
    pub fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
    }

    /// A get is about to begin. Returns whether it goes to MPI unchanged.
    #[inline]
    pub fn leaves(&self, space: u32, mode: Mode) -> bool {
        match self.gets_left.load(Ordering::Relaxed) {
            0 => self.step(space, mode),
            left => self.gets_left.store(left - 1, Ordering::Relaxed),
        }
        self.is_left()
    }

    /// As [`Trial::leaves`], without a step. If it returns false, the get is not counted.
    #[inline(always)]
    pub fn leaves_at_once(&self) -> bool {
        let left = self.gets_left.load(Ordering::Relaxed);
        let leaves = self.is_left() && left > 0;
        if leaves {
            self.gets_left.store(left - 1, Ordering::Relaxed);
        }
        leaves
    }

    /// One more step of the stage. Another thread's step is enough.
    #[cold]
    fn step(&self, space: u32, mode: Mode) {
        let Ok(mut cycle) = self.cycle.try_lock() else { return };
        let next = match &mut cycle.stage {
            _ if settings::are_near_cached() => Some((false, Stage::Chosen, u32::MAX)),
            Stage::Chosen if self.is_left() && mode != Mode::Checked => Some((false, Stage::Warm, cycle.warm_gets)),
            Stage::Chosen | Stage::Warm if !meter::take(space) => Some((self.is_left(), Stage::Chosen, BLOCK_GETS)),
            Stage::Chosen | Stage::Warm => Some((self.is_left(), Stage::Probe(Probe::default()), 0)),
            Stage::Probe(probe) => match probe.on_get() {
                Step::Same => None,
                Step::Way(is_left) => {
                    self.is_left.store(is_left, Ordering::Relaxed);
                    None
                }
                Step::Failed => Some((false, Stage::Chosen, OPEN_GETS_MAX)),
                Step::Complete => Some(cycle.decide()),
            },
        };
        let Some((is_left, stage, gets)) = next else { return };
        if matches!(cycle.stage, Stage::Probe(_)) {
            meter::release(space);
        }
        cycle.stage = stage;
        self.is_left.store(is_left, Ordering::Relaxed);
        self.gets_left.store(gets, Ordering::Relaxed);
    }
}

/// What follows from one more get of a probe.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Same,
    /// A block of this way begins.
    Way(bool),
    Complete,
    Failed,
}

impl Probe {
    /// A get is about to begin. Blocks begin and end behind completions, so each has its gets' completions.
    fn on_get(&mut self) -> Step {
        let is_behind_completion = meter::take_completed();
        self.gets += 1;
        if !is_behind_completion {
            return if self.gets > OPEN_GETS_MAX { Step::Failed } else { Step::Same };
        }
        let gets = self.gets - 1;
        if self.has_begun && gets < BLOCK_GETS {
            return Step::Same;
        }
        if self.has_begun {
            self.of_way[self.costs.len() % 2] += u64::from(gets);
            self.costs.push(meter::take_ns() / u64::from(gets));
        }
        if self.costs.len() == BLOCKS {
            return Step::Complete;
        }
        (self.has_begun, self.gets) = (true, 1);
        let _before = meter::take_ns();
        Step::Way(self.costs.len() % 2 == 1)
    }

    /// The cost of a get by the cache and by MPI.
    fn costs(&self) -> (u64, u64) {
        let of = |way: usize| median(self.costs.iter().skip(way).step_by(2).copied().collect());
        (of(0), of(1).max(1))
    }
}

impl ProbeCycle {
    /// A new window's.
    fn first() -> ProbeCycle {
        ProbeCycle { stage: Stage::Warm, warm_gets: WARM_GETS_MIN }
    }

    /// Chooses the way after a probe. Returns the stage, and how long it lasts.
    fn decide(&mut self) -> (bool, Stage, u32) {
        let Stage::Probe(probe) = &self.stage else { return (false, Stage::Chosen, OPEN_GETS_MAX) };
        let (cached, plain) = probe.costs();
        let is_left = cached * 100 > plain * KEPT_PERCENT;
        // The next trial of the other way costs at most a part of this run.
        let gets = if is_left {
            let tried = probe.of_way[0] + u64::from(self.warm_gets);
            self.warm_gets = (2 * self.warm_gets).min(WARM_GETS_MAX);
            tried * (cached - plain) / plain * TRIAL_PART
        } else {
            self.warm_gets = WARM_GETS_MIN;
            probe.of_way[1] * plain.saturating_sub(cached) / cached.max(1) * TRIAL_PART
        };
        (is_left, Stage::Chosen, gets.clamp(RUN_GETS_MIN, RUN_GETS_MAX) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The decision after a probe with these costs of its blocks.
    fn decide(costs: [u64; BLOCKS]) -> (bool, u32) {
        let of_way = [5 * u64::from(BLOCK_GETS); 2];
        let probe = Probe { costs: costs.to_vec(), has_begun: true, gets: 0, of_way };
        let mut cycle = ProbeCycle { stage: Stage::Probe(probe), warm_gets: 1 << 10 };
        let (is_left, _, gets) = cycle.decide();
        (is_left, gets)
    }

    #[test]
    fn the_cheaper_way_is_taken_until_its_trials_have_cost_little() {
        let (is_left, gets) = decide([300, 100, 300, 100, 300, 100, 300, 100, 300, 100]);
        assert!(is_left);
        // The trial costs 200 ns more for each of its gets, and the run 100 ns a get.
        let trial_ns = (5 * u64::from(BLOCK_GETS) + (1 << 10)) * 200;
        assert!(u64::from(gets) * 100 >= trial_ns * TRIAL_PART);
        let (is_left, gets) = decide([100, 5000, 100, 5000, 100, 5000, 100, 5000, 100, 5000]);
        assert!(!is_left);
        assert!(u64::from(gets) * 100 >= 5 * u64::from(BLOCK_GETS) * 4900 * TRIAL_PART);
    }

    #[test]
    fn blocks_that_waited_for_a_processor_decide_nothing() {
        assert!(decide([300, 100, 300, 9_000_000, 300, 100, 300, 9_000_000, 300, 100]).0);
        assert!(!decide([100, 300, 9_000_000, 300, 100, 300, 9_000_000, 300, 100, 300]).0);
    }

    #[test]
    fn a_cache_that_costs_hardly_anything_is_kept() {
        assert!(!decide([105, 100, 105, 100, 105, 100, 105, 100, 105, 100]).0);
        assert!(decide([106, 100, 106, 100, 106, 100, 106, 100, 106, 100]).0);
    }

    #[test]
    fn gets_without_completions_decide_nothing() {
        let mut probe = Probe::default();
        let steps: Vec<Step> = (0..=OPEN_GETS_MAX).map(|_| probe.on_get()).collect();
        assert!(steps.iter().rev().skip(1).all(|step| *step == Step::Same) && steps.last() == Some(&Step::Failed));
    }
}

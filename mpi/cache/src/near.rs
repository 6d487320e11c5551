//! Detects targets so near that caching their gets does not pay. Between ranks of one host, MPI may map the memory of
//! windows and serve gets by a copy, and no cache is faster. The first gets decide, by MPI's time for them and for
//! their completion.

use crate::settings;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

/// Number of gets before a decision, and of attempts to decide: other programs may disturb a round.
const GETS: u32 = 64;
const ROUNDS: u32 = 16;

/// Approximate time of a hit, and further bytes copied per nanosecond.
const HIT_NS: u64 = 100;
const BYTES_A_NS: u64 = 8;

/// Measurements of a target. Concurrent counts may get lost.
#[derive(Debug, Default)]
pub struct Nearness {
    is_near: AtomicBool,
    rounds: AtomicU32,
    gets: AtomicU32,
    bytes: AtomicU64,
    spent_ns: AtomicU64,
}

impl Nearness {
    #[inline]
    pub fn is_near(&self) -> bool {
        self.is_near.load(Ordering::Relaxed)
    }

    /// Measures a get by MPI.
    #[inline]
    pub fn get<T>(&self, bytes: usize, next: impl FnOnce() -> T) -> T {
        if self.rounds.load(Ordering::Relaxed) == ROUNDS {
            return next();
        }
        self.gets.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.measure(next)
    }

    /// Measures a completion by MPI of the operations in flight.
    #[inline]
    pub fn complete<T>(&self, next: impl FnOnce() -> T) -> T {
        Nearness::complete_all(|| std::iter::once(self), next)
    }

    /// Measures a completion of several targets. Each is assumed to have needed all of the time, so a far target never
    /// counts as near.
    #[inline]
    pub fn complete_all<'a, T, I: Iterator<Item = &'a Nearness>>(
        targets: impl Fn() -> I,
        next: impl FnOnce() -> T,
    ) -> T {
        if !targets().any(Nearness::is_measured) {
            return next();
        }
        let start = Instant::now();
        let result = next();
        let spent_ns = start.elapsed().as_nanos() as u64;
        targets().filter(|target| target.is_measured()).for_each(|target| target.on_completed(spent_ns));
        result
    }

    /// Gets are complete, after an unknown time.
    pub fn forget(&self) {
        if self.is_measured() {
            [&self.bytes, &self.spent_ns].into_iter().for_each(|sum| sum.store(0, Ordering::Relaxed));
            self.gets.store(0, Ordering::Relaxed);
        }
    }

    /// Whether gets of a measured round await completion.
    #[inline]
    fn is_measured(&self) -> bool {
        self.gets.load(Ordering::Relaxed) > 0 && self.rounds.load(Ordering::Relaxed) < ROUNDS
    }

    fn on_completed(&self, spent_ns: u64) {
        self.spent_ns.fetch_add(spent_ns, Ordering::Relaxed);
        let gets = self.gets.load(Ordering::Relaxed);
        if gets >= GETS {
            self.decide(u64::from(gets));
        }
    }

    fn measure<T>(&self, next: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = next();
        self.spent_ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        result
    }

    #[cold]
    fn decide(&self, gets: u64) {
        self.gets.store(0, Ordering::Relaxed);
        let (spent_ns, bytes) = (self.spent_ns.swap(0, Ordering::Relaxed), self.bytes.swap(0, Ordering::Relaxed));
        let is_near = spent_ns < gets * HIT_NS + bytes / BYTES_A_NS && !settings::are_near_cached();
        self.is_near.store(is_near, Ordering::Relaxed);
        let rounds = self.rounds.load(Ordering::Relaxed) + 1;
        self.rounds.store(if is_near { ROUNDS } else { rounds.min(ROUNDS) }, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Gets of this duration, with a flush after each `flushed_after` of them.
    fn run(gets: u32, each: Duration, flushed_after: u32) -> bool {
        let nearness = Nearness::default();
        for number in 1..=gets {
            nearness.get(8, || {
                let start = Instant::now();
                while start.elapsed() < each {}
            });
            if number % flushed_after == 0 {
                nearness.complete(|| ());
            }
        }
        nearness.is_near()
    }

    #[test]
    fn gets_that_take_as_long_as_a_message_are_far() {
        assert!(!run(1000, Duration::from_micros(1), 1));
        assert!(!run(1000, Duration::from_micros(1), 100));
    }

    #[test]
    fn gets_whose_completion_nobody_has_seen_decide_nothing() {
        let nearness = Nearness::default();
        for _ in 0..GETS {
            nearness.get(8, || ());
        }
        nearness.forget();
        nearness.complete(|| ());
        assert!(!nearness.is_near() && nearness.rounds.load(Ordering::Relaxed) == 0);
    }

    #[test]
    fn a_completion_of_several_targets_counts_for_each() {
        let both = [Nearness::default(), Nearness::default()];
        for near in both.iter().cycle().take(2 * GETS as usize) {
            near.get(8, || ());
        }
        let spent = Duration::from_nanos(2 * u64::from(GETS) * HIT_NS);
        Nearness::complete_all(|| both.iter(), || std::thread::sleep(spent));
        assert!(both.iter().all(|near| near.rounds.load(Ordering::Relaxed) == 1 && !near.is_near()));
    }

    #[test]
    fn gets_below_the_minimum_decide_nothing() {
        assert!(!run(GETS - 1, Duration::ZERO, 1));
    }

    /// The decision for gets of 8 bytes and this duration.
    fn is_near(each_ns: u64) -> bool {
        let nearness = Nearness::default();
        nearness.spent_ns.store(u64::from(GETS) * each_ns, Ordering::Relaxed);
        nearness.bytes.store(u64::from(GETS) * 8, Ordering::Relaxed);
        nearness.decide(u64::from(GETS));
        nearness.is_near()
    }

    #[test]
    fn gets_that_a_copy_serves_are_near() {
        assert!(is_near(HIT_NS) && !is_near(HIT_NS + 2));
    }
}

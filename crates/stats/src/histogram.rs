//! Durations in buckets: four per power of two, so a percentile is at most an eighth off.

use std::sync::atomic::{AtomicU64, Ordering};

/// Times below 64 ns share a bucket, and so do times above two minutes.
const FIRST_LOG2: u32 = 6;

/// Buckets per power of two.
const STEPS: u32 = 4;

/// Number of buckets.
pub const BUCKETS: usize = 128;

/// The bucket of a time.
fn bucket_of(ns: u64) -> usize {
    let log2 = ns.max(1).ilog2();
    if log2 < FIRST_LOG2 {
        return 0;
    }
    let step = (ns >> (log2 - STEPS.ilog2())) as u32 % STEPS;
    (((log2 - FIRST_LOG2) * STEPS + step) as usize).min(BUCKETS - 1)
}

/// The middle of a bucket, in nanoseconds.
fn middle_ns(bucket: usize) -> u64 {
    let (log2, step) = (bucket as u32 / STEPS + FIRST_LOG2, bucket as u64 % u64::from(STEPS));
    let width = 1 << (log2 - STEPS.ilog2());
    (u64::from(STEPS) + step) * width + width / 2
}

/// Counts times, on any thread.
#[derive(Debug)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Histogram {
    /// Has no times.
    pub const fn new() -> Histogram {
        Histogram {
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
            sum_ns: AtomicU64::new(0),
            max_ns: AtomicU64::new(0),
        }
    }

    /// Counts a time.
    pub fn add(&self, ns: u64) {
        self.buckets[bucket_of(ns)].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
        self.max_ns.fetch_max(ns, Ordering::Relaxed);
    }

    /// The times so far. A time being counted may be missing in part.
    pub fn read(&self) -> Times {
        let mut buckets = [0; BUCKETS];
        for (to, from) in buckets.iter_mut().zip(&self.buckets) {
            *to = from.load(Ordering::Relaxed);
        }
        Times { buckets, sum_ns: self.sum_ns.load(Ordering::Relaxed), max_ns: self.max_ns.load(Ordering::Relaxed) }
    }
}

/// Counted times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    /// Number of times, by bucket.
    pub buckets: [u64; BUCKETS],
    /// Sum of all times.
    pub sum_ns: u64,
    /// The longest time.
    pub max_ns: u64,
}

impl Default for Times {
    fn default() -> Times {
        Times { buckets: [0; BUCKETS], sum_ns: 0, max_ns: 0 }
    }
}

impl Times {
    /// Number of times.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, count| sum.wrapping_add(*count))
    }

    /// The time not exceeded by `percent` of the times, or nearly so; 0 without times.
    pub fn percentile_ns(&self, percent: u64) -> u64 {
        let wanted = (u128::from(self.count()) * u128::from(percent)).div_ceil(100).max(1);
        let mut seen = 0_u128;
        let found = self.buckets.iter().position(|count| {
            seen += u128::from(*count);
            seen >= wanted
        });
        found.map_or(0, |bucket| middle_ns(bucket).min(self.max_ns))
    }

    /// Adds the times of another rank.
    pub fn merge(&mut self, other: &Times) {
        for (to, from) in self.buckets.iter_mut().zip(&other.buckets) {
            *to = to.wrapping_add(*from);
        }
        self.sum_ns = self.sum_ns.wrapping_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_hold_their_middle() {
        assert!((0..BUCKETS).all(|bucket| bucket_of(middle_ns(bucket)) == bucket));
        assert!((1..BUCKETS).all(|bucket| middle_ns(bucket - 1) < middle_ns(bucket)));
        assert_eq!([0, 1, 63, 64, 79, 80, u64::MAX].map(bucket_of), [0, 0, 0, 0, 0, 1, BUCKETS - 1]);
    }

    #[test]
    fn percentiles_are_an_eighth_off_at_most() {
        let histogram = Histogram::new();
        (1..=1000).for_each(|us| histogram.add(us * 1000));
        let times = histogram.read();
        assert_eq!((times.count(), times.sum_ns, times.max_ns), (1000, 500_500_000, 1_000_000));
        for (percent, exact) in [(50, 500_000_u64), (90, 900_000), (99, 990_000), (100, 1_000_000)] {
            assert!(times.percentile_ns(percent).abs_diff(exact) <= exact / 8, "{percent} %");
        }
        assert_eq!(Times::default().percentile_ns(50), 0);
    }

    #[test]
    fn a_single_time_is_every_percentile() {
        let histogram = Histogram::new();
        histogram.add(1_000_000);
        let times = histogram.read();
        assert!([1, 50, 99].iter().all(|percent| times.percentile_ns(*percent).abs_diff(1_000_000) <= 125_000));
    }
}

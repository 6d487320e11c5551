//! Faults of an in-memory storage or file.

use super::{IoDirection, IoOperation};
use std::ops::Range;

/// Selects the operations on a file in memory that fail with `EIO`.
#[derive(Debug, Default)]
pub struct Faults {
    reads_until: Option<u64>,
    writes_until: Option<u64>,
    ranges: Vec<Range<u64>>,
    one_in: Option<u64>,
}

impl Faults {
    /// Lets `count` more reads pass; later ones fail.
    pub fn fail_reads_after(&mut self, count: u64) {
        self.reads_until = Some(count);
    }

    /// Lets `count` more writes pass; later ones fail after writing some of their blocks.
    pub fn fail_writes_after(&mut self, count: u64) {
        self.writes_until = Some(count);
    }

    /// From now on operations touching a byte of `offsets_bytes` fail, as with a bad sector.
    pub fn fail_at(&mut self, offsets_bytes: Range<u64>) {
        self.ranges.push(offsets_bytes);
    }

    /// From now on each operation fails with probability 1 in `one_in`, drawn from the seed.
    ///
    /// # Panics
    /// If `one_in` is 0.
    pub fn fail_one_in(&mut self, one_in: u64) {
        assert!(one_in > 0, "a probability has a denominator");
        self.one_in = Some(one_in);
    }

    /// Ends all faults. Operations in flight keep the outcome already drawn.
    pub fn heal(&mut self) {
        *self = Faults::default();
    }

    /// Whether this operation, started now, fails.
    pub(super) fn strike(&mut self, operation: &IoOperation, random: &mut SplitMix) -> bool {
        let until = match operation.direction {
            IoDirection::Read => &mut self.reads_until,
            IoDirection::Write => &mut self.writes_until,
        };
        let is_past = *until == Some(0);
        *until = until.map(|count| count.saturating_sub(1));
        let (start, end) = (operation.offset_bytes, operation.offset_bytes + operation.len_bytes as u64);
        let is_there = self.ranges.iter().any(|range| range.start < end && start < range.end);
        let is_drawn = self.one_in.is_some_and(|one_in| random.below(one_in) == 0);
        is_past || is_there || is_drawn
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): a small generator in this crate, so no dependency can change its sequence.
#[derive(Debug)]
pub(super) struct SplitMix(pub(super) u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is positive and small: the bias of the remainder does not matter here.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

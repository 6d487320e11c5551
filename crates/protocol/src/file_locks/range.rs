//! Ranges of bytes of a file, and their homes.

use crate::{Rank, Stripes, layout_as_in_memory, messages};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use zerocopy::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// How bytes are locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(u8)]
pub enum LockMode {
    /// Others may hold shared locks too.
    Shared,
    /// Nobody else has a lock on them.
    Exclusive,
}

layout_as_in_memory!(LockMode);

messages! {
    /// Bytes of a file to be locked.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct LockRange {
        /// Offset of the first byte in the file.
        pub start: u64,
        /// Offset behind the last byte.
        pub end: u64,
        /// The mode.
        pub mode: LockMode,
    }
}

impl LockRange {
    /// Whether the two have a byte in common and one is exclusive.
    pub fn conflicts_with(&self, other: &LockRange) -> bool {
        let overlap = self.start.max(other.start) < self.end.min(other.end);
        overlap && (self.mode == LockMode::Exclusive || other.mode == LockMode::Exclusive)
    }
}

/// The same bytes as sorted, disjoint, non-empty ranges. Overlapping ranges merge into one, exclusive if one of them
/// is.
pub fn joined(ranges: &[LockRange]) -> Vec<LockRange> {
    let mut sorted: Vec<LockRange> = ranges.iter().copied().filter(|range| range.start < range.end).collect();
    sorted.sort_unstable();
    let mut joined: Vec<LockRange> = Vec::new();
    for range in sorted {
        match joined.last_mut() {
            Some(last) if range.start < last.end || (range.start == last.end && range.mode == last.mode) => {
                last.end = last.end.max(range.end);
                last.mode = last.mode.max(range.mode);
            }
            _ => joined.push(range),
        }
    }
    debug_assert!(are_in_order(&joined), "ranges that are joined are sorted and disjoint");
    joined
}

/// Whether ranges satisfy the postcondition of [`joined`]: sorted, disjoint, non-empty.
pub fn are_in_order(ranges: &[LockRange]) -> bool {
    ranges.iter().all(|range| range.start < range.end) && ranges.windows(2).all(|two| two[0].end <= two[1].start)
}

/// By home, the ranges with bytes in its stripes; `ranges` are sorted. Every home gets the range uncut, so a lock of a
/// whole file is one range per home.
pub fn by_home(ranges: &[LockRange], stripes: &Stripes, page_bytes: u64) -> BTreeMap<Rank, Vec<LockRange>> {
    let mut all: BTreeMap<Rank, Vec<LockRange>> = BTreeMap::new();
    let homes = stripes.homes.len() as u64;
    let stripe_bytes = page_bytes.saturating_mul(u64::from(stripes.pages));
    assert!(stripe_bytes > 0, "stripes have bytes");
    debug_assert!(are_in_order(ranges), "the ranges are sorted and disjoint");
    for range in ranges {
        let (first, last) = (range.start / stripe_bytes, (range.end - 1) / stripe_bytes);
        for stripe in first..=last.min(first.saturating_add(homes - 1)) {
            let home_ranges = all.entry(stripes.homes[(stripe % homes) as usize]).or_default();
            // A rank may be the home of several of the stripes.
            if home_ranges.last() != Some(range) {
                home_ranges.push(*range);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::LockMode::{Exclusive, Shared};
    use super::*;
    use alloc::sync::Arc;

    fn range((start, end, mode): (u64, u64, LockMode)) -> LockRange {
        LockRange { start, end, mode }
    }

    #[test]
    fn ranges_are_sorted_and_joined() {
        let given = [(8, 9, Shared), (5, 5, Exclusive), (0, 4, Exclusive), (4, 6, Shared), (6, 8, Shared)].map(range);
        assert_eq!(joined(&given), [(0, 4, Exclusive), (4, 9, Shared)].map(range));
        let given = [(0, 9, Shared), (2, 3, Exclusive), (9, 12, Shared), (20, u64::MAX, Shared)].map(range);
        let expected = [(0, 9, Exclusive), (9, 12, Shared), (20, u64::MAX, Shared)].map(range);
        assert_eq!(joined(&given), expected);
        assert!(are_in_order(&expected) && are_in_order(&[]));
        assert!(!are_in_order(&given) && !are_in_order(&[range((3, 3, Shared))]));
    }

    #[test]
    fn shared_ranges_conflict_with_exclusive_ones_only() {
        let conflict = |a, b| range(a).conflicts_with(&range(b));
        assert!(!conflict((0, 5, Shared), (0, 5, Shared)));
        assert!(conflict((0, 5, Shared), (4, 6, Exclusive)) && conflict((4, 6, Exclusive), (0, 5, Shared)));
        assert!(!conflict((0, 5, Exclusive), (3, 3, Exclusive)));
        assert!(!conflict((0, 5, Exclusive), (5, 6, Exclusive)) && !conflict((5, 6, Exclusive), (0, 5, Exclusive)));
    }

    #[test]
    fn each_home_gets_the_ranges_with_bytes_of_its_own() {
        let stripes = Stripes { homes: Arc::new([Rank(4), Rank(2), Rank(9)]), pages: 2 };
        let homes = |start, end| by_home(&[range((start, end, Shared))], &stripes, 10).into_keys().map(|home| home.0);
        assert!(homes(0, 20).eq([4]) && homes(19, 21).eq([2, 4]) && homes(20, 60).eq([2, 9]));
        assert!(homes(40, 80).eq([4, 9]) && homes(0, u64::MAX).eq([2, 4, 9]) && homes(u64::MAX - 1, u64::MAX).eq([4]));
        let both = [range((0, 1, Shared)), range((59, 61, Exclusive))];
        let all = by_home(&both, &stripes, 10);
        assert_eq!((&all[&Rank(4)][..], &all[&Rank(9)][..]), (&both[..], &both[1..]));
        let twice = Stripes { homes: Arc::new([Rank(1), Rank(1)]), pages: 1 };
        assert_eq!(by_home(&both[1..], &twice, 10)[&Rank(1)], both[1..]);
    }
}

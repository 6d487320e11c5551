//! The ranges of a file, locked or waiting, searchable by overlap.

use super::message::AskName;
use super::{LockMode, LockRange};
use crate::Rank;
use alloc::collections::BTreeMap;

/// The owner of ranges, granted or waiting: an ask of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The rank.
    pub rank: Rank,
    /// The rank's name of the ask.
    pub name: AskName,
}

impl Owner {
    /// The least owner.
    pub const FIRST: Owner = Owner { rank: Rank(0), name: AskName { number: 0, waits: false } };
}

/// Ranges of a file and their owners.
///
/// They are sorted by mode, then by length rounded down to a power of two, then by start. Within one length class,
/// ranges overlapping a given range begin in it or less than twice the length before it. A search costs O(log n) per
/// length class in use, O(1) per range found, and O(1) per range skipped: a skipped range ends before the given one, by
/// less than twice its length. A shared range is never compared with shared ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Index {
    /// By mode and binary logarithm of the length: the end of each range, by start and owner.
    classes: BTreeMap<(LockMode, u32), BTreeMap<(u64, Owner), u64>>,
}

impl Index {
    /// Adds a non-empty range. Ranges of one owner must not overlap.
    pub fn insert(&mut self, owner: Owner, range: &LockRange) {
        let before = self.classes.entry(class(range)).or_default().insert((range.start, owner), range.end);
        assert!(before.is_none(), "{owner:?} has a range at {} twice", range.start);
    }

    /// Removes an added range.
    pub fn remove(&mut self, owner: Owner, range: &LockRange) {
        let class = class(range);
        let same = self.classes.get_mut(&class).expect("the range was added");
        same.remove(&(range.start, owner)).expect("the range was added");
        if same.is_empty() {
            self.classes.remove(&class);
        }
    }

    /// The owners of ranges conflicting with this one, once per range.
    pub fn conflicts(&self, range: &LockRange) -> impl Iterator<Item = Owner> + '_ {
        let LockRange { start, end, mode } = *range;
        let others = match mode {
            LockMode::Shared => LockMode::Exclusive,
            LockMode::Exclusive => LockMode::Shared,
        };
        self.classes.range((others, 0)..).flat_map(move |((_, log), same)| {
            let len_max = u64::MAX >> (u64::BITS - 1 - log);
            debug_assert!(!same.is_empty(), "a length class goes with its last range");
            let near = same.range((start.saturating_sub(len_max - 1), Owner::FIRST)..(end, Owner::FIRST));
            near.filter(move |(_, other_end)| **other_end > start).map(|((_, owner), _)| *owner)
        })
    }

    /// Whether there are no ranges.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }
}

fn class(range: &LockRange) -> (LockMode, u32) {
    debug_assert!(range.start < range.end, "{range:?} has bytes");
    (range.mode, (range.end - range.start).ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn random_range(random: &mut fastrand::Rng) -> LockRange {
        let mode = if random.bool() { LockMode::Shared } else { LockMode::Exclusive };
        let (at, len_max) = ([0, 1 << 20, u64::MAX - 100][random.usize(0..3)], 1 << random.u32(0..64));
        let start = at + random.u64(0..100);
        LockRange { start, end: start.saturating_add(random.u64(1..=len_max)).max(start + 1), mode }
    }

    #[test]
    fn searches_find_what_a_look_at_all_ranges_finds() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut index, mut all) = (Index::default(), Vec::new());
        for number in 0..if cfg!(miri) { 100 } else { 3000 } {
            let owner = Owner { rank: Rank(random.u32(0..3)), name: AskName { number, waits: random.bool() } };
            let range = random_range(&mut random);
            index.insert(owner, &range);
            all.push((owner, range));
            if all.len() > 60 {
                let (owner, range) = all.swap_remove(random.usize(0..all.len()));
                index.remove(owner, &range);
            }
            let asked = random_range(&mut random);
            let mut found: Vec<Owner> = index.conflicts(&asked).collect();
            let mut expected: Vec<Owner> =
                all.iter().filter(|(_, range)| range.conflicts_with(&asked)).map(|(owner, _)| *owner).collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{asked:?}");
        }
        all.iter().for_each(|(owner, range)| index.remove(*owner, range));
        assert!(index.is_empty());
    }
}

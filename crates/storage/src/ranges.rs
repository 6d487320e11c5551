//! Sets of bytes of a file, in bounded memory.

use std::collections::BTreeMap;
use std::ops::Range;

/// Maximum number of ranges in a set: 64 MiB of scattered blocks of 4 KiB, in half a megabyte of memory.
const RANGES_MAX: usize = 1 << 14;

/// Bytes of a file, as ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// The end of each range, by its start.
    ends: BTreeMap<u64, u64>,
    /// Once there are too many ranges, their bounds are rounded to multiples of 2 to the power of this.
    grain_bits: u32,
}

impl Ranges {
    /// Adds bytes. With too many ranges, nearby bytes are added as well.
    pub fn add(&mut self, range: Range<u64>) {
        self.insert(self.rounded(range));
        while self.ends.len() > RANGES_MAX {
            self.grain_bits += 1;
            let rounded: Vec<Range<u64>> = self.iter().map(|range| self.rounded(range)).collect();
            self.ends.clear();
            rounded.into_iter().for_each(|range| self.insert(range));
        }
    }

    /// Adds bytes, unless there are too many ranges and the bytes touch none.
    pub fn add_if_room(&mut self, range: Range<u64>) {
        if self.ends.len() < RANGES_MAX || self.touches(&range) {
            self.insert(range);
        }
    }

    fn touches(&self, range: &Range<u64>) -> bool {
        self.ends.range(..=range.end).next_back().is_some_and(|(_, end)| *end >= range.start)
    }

    /// Removes bytes.
    pub fn remove(&mut self, range: Range<u64>) {
        while let Some((&start, &end)) = self.ends.range(..range.end).next_back() {
            if range.is_empty() || end <= range.start {
                return;
            }
            self.ends.remove(&start);
            self.insert(range.end..end);
            self.insert(start..range.start);
        }
    }

    /// The ranges, in order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ends.iter().map(|(start, end)| *start..*end)
    }

    /// The ranges with bytes in common with a given range, and possibly a range before it.
    pub fn within(&self, Range { start, end }: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let first = self.ends.range(..=start).next_back().map_or(start, |(first, _)| *first);
        self.ends.range(first..end.max(first)).map(|(start, end)| *start..*end)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn insert(&mut self, Range { mut start, mut end }: Range<u64>) {
        if start >= end {
            return;
        }
        while let Some((&before, &its_end)) = self.ends.range(..=end).next_back() {
            if its_end < start {
                break;
            }
            self.ends.remove(&before);
            (start, end) = (start.min(before), end.max(its_end));
        }
        self.ends.insert(start, end);
    }

    fn rounded(&self, Range { start, end }: Range<u64>) -> Range<u64> {
        let grain = 1 << self.grain_bits;
        start / grain * grain..end.checked_next_multiple_of(grain).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::super::faults::SplitMix;
    use super::*;

    #[test]
    fn ranges_are_those_of_a_set_of_bytes() {
        let (mut ranges, mut model, mut random) = (Ranges::default(), [false; 200], SplitMix(1));
        for _ in 0..10_000 {
            let start = random.below(200) as usize;
            let range = start..start + random.below(201 - start as u64) as usize;
            let is_added = random.below(2) == 0;
            model[range.clone()].fill(is_added);
            let bytes = range.start as u64..range.end as u64;
            if is_added {
                ranges.add(bytes)
            } else {
                ranges.remove(bytes)
            }
            let mut is = [false; 200];
            let mut last = None;
            for range in ranges.iter() {
                assert!(last.is_none_or(|last| last < range.start) && !range.is_empty());
                last = Some(range.end);
                is[range.start as usize..range.end as usize].fill(true);
            }
            assert_eq!(is, model);
        }
    }

    #[test]
    fn many_ranges_become_coarser_and_lose_nothing() {
        let (mut ranges, mut exact) = (Ranges::default(), Ranges::default());
        for at in (0..100_000_u64).map(|at| at * 7919 % 100_000 * 8192) {
            ranges.add(at..at + 4096);
            exact.add_if_room(at..at + 4096);
            assert!(ranges.ends.len() <= RANGES_MAX && exact.ends.len() <= RANGES_MAX);
            assert!(ranges.iter().any(|range| range.start <= at && at + 4096 <= range.end));
        }
        assert!(exact.iter().all(|range| range.start % 8192 == 0 && range.end == range.start + 4096));
        ranges.add(u64::MAX - 5..u64::MAX);
    }
}

//! The buffers that gets under way will write, by address: where two overlap, nobody knows whose bytes will be there, and neither get is
//! kept.

use std::collections::BTreeMap;

/// Buffers that overlap, as one range.
#[derive(Debug)]
struct Range {
    end: usize,
    /// How many there are.
    count: usize,
    /// The only one, if nobody else has written there.
    alone: Option<u32>,
}

/// Disjoint ranges by where they begin.
#[derive(Debug)]
pub struct Origins(BTreeMap<usize, Range>);

impl Origins {
    /// None.
    pub const fn new() -> Origins {
        Origins(BTreeMap::new())
    }

    /// The first range that overlaps these bytes.
    fn overlap(&self, start: usize, end: usize) -> Option<usize> {
        let (first, range) = self.0.range(..end).next_back()?;
        (range.end > start).then_some(*first)
    }

    /// Bytes are written. Returns the members whose buffers those overlap, unless they were told of before.
    pub fn spoil(&mut self, start: usize, len: usize) -> Vec<u32> {
        let mut end = start.saturating_add(len);
        let mut spoiled = Vec::new();
        while let Some(first) = self.overlap(start, end) {
            let range = self.0.get_mut(&first).expect("it was found");
            spoiled.extend(range.alone.take());
            end = first;
        }
        spoiled
    }

    /// Adds a buffer. Returns the members that are spoiled by that, this one among them, unless they were told of before.
    pub fn insert(&mut self, member: u32, start: usize, len: usize) -> Vec<u32> {
        let end = start.saturating_add(len);
        let mut whole = (start, Range { end, count: 1, alone: Some(member) });
        let mut spoiled = Vec::new();
        while let Some(first) = self.overlap(start, end) {
            let range = self.0.remove(&first).expect("it was found");
            spoiled.extend(range.alone.into_iter().chain(whole.1.alone));
            whole = (
                whole.0.min(first),
                Range { end: whole.1.end.max(range.end), count: whole.1.count + range.count, alone: None },
            );
        }
        self.0.insert(whole.0, whole.1);
        spoiled
    }

    /// Removes a buffer. Its range stays while others are in it.
    pub fn remove(&mut self, start: usize) {
        let Some((first, range)) = self.0.range_mut(..=start).next_back() else { return };
        range.count -= 1;
        if range.count == 0 {
            let first = *first;
            self.0.remove(&first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_side_by_side_do_not_overlap() {
        let mut origins = Origins::new();
        assert!(origins.insert(1, 100, 10).is_empty());
        assert!(origins.insert(2, 110, 10).is_empty());
        assert!(origins.insert(3, 90, 10).is_empty());
        assert!(origins.spoil(120, 5).is_empty());
        assert_eq!(origins.spoil(105, 10), [2, 1]);
        assert!(origins.spoil(105, 10).is_empty(), "it was told");
    }

    #[test]
    fn ranges_stay_until_their_last_buffer_is_gone() {
        let mut origins = Origins::new();
        origins.insert(1, 100, 10);
        origins.insert(2, 120, 10);
        let mut spoiled = origins.insert(3, 105, 20);
        spoiled.sort_unstable();
        assert_eq!(spoiled, [1, 2, 3]);
        origins.remove(100);
        origins.remove(105);
        assert_eq!(origins.insert(4, 102, 1), [4], "nobody knows what is in 100..130");
        origins.remove(120);
        origins.remove(102);
        assert!(origins.insert(5, 100, 30).is_empty());
    }

    #[test]
    fn many_buffers_in_one_place_are_told_of_once_each() {
        let mut origins = Origins::new();
        let told: usize = (0..10_000).map(|member| origins.insert(member, 64, 8).len()).sum();
        assert_eq!(told, 10_000);
    }
}

//! The buffers of the gets in flight, by address. If two overlap, their final content is unknown, and neither get is
//! kept.

use std::collections::BTreeMap;

/// Overlapping buffers, as one range.
#[derive(Debug)]
struct Range {
    end: usize,
    /// Number of buffers.
    count: usize,
    /// The only member, if nothing else has written there.
    alone: Option<u32>,
}

/// Disjoint ranges by their start.
#[derive(Debug)]
pub struct Origins(BTreeMap<usize, Range>);

impl Origins {
    /// No buffers.
    pub const fn new() -> Origins {
        Origins(BTreeMap::new())
    }

    /// The first range that overlaps these bytes.
    fn overlap(&self, start: usize, end: usize) -> Option<usize> {
        let (first, range) = self.0.range(..end).next_back()?;
        (range.end > start).then_some(*first)
    }

    /// Bytes are written. Returns the members with overlapping buffers, unless they were returned before.
    pub fn overwrite(&mut self, start: usize, len: usize) -> Vec<u32> {
        let mut end = start.saturating_add(len);
        let mut conflicting = Vec::new();
        while let Some(first) = self.overlap(start, end) {
            let range = self.0.get_mut(&first).expect("it was found");
            conflicting.extend(range.alone.take());
            end = first;
        }
        conflicting
    }

    /// Adds a buffer. Returns the members in conflict by now, this one among them, unless they were returned before.
    pub fn insert(&mut self, member: u32, start: usize, len: usize) -> Vec<u32> {
        let end = start.saturating_add(len);
        let mut whole = (start, Range { end, count: 1, alone: Some(member) });
        let mut conflicting = Vec::new();
        while let Some(first) = self.overlap(start, end) {
            let range = self.0.remove(&first).expect("it was found");
            conflicting.extend(range.alone.into_iter().chain(whole.1.alone));
            whole = (
                whole.0.min(first),
                Range { end: whole.1.end.max(range.end), count: whole.1.count + range.count, alone: None },
            );
        }
        self.0.insert(whole.0, whole.1);
        conflicting
    }

    /// Removes a buffer. Its range stays while it has others.
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
        assert!(origins.overwrite(120, 5).is_empty());
        assert_eq!(origins.overwrite(105, 10), [2, 1]);
        assert!(origins.overwrite(105, 10).is_empty(), "it was told");
    }

    #[test]
    fn ranges_stay_until_their_last_buffer_is_gone() {
        let mut origins = Origins::new();
        origins.insert(1, 100, 10);
        origins.insert(2, 120, 10);
        let mut conflicting = origins.insert(3, 105, 20);
        conflicting.sort_unstable();
        assert_eq!(conflicting, [1, 2, 3]);
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

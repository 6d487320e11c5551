//! The buffers that gets under way will write, by address: where two overlap, nobody knows whose bytes will be there.

use std::collections::BTreeMap;

/// Buffers that overlap, as one range.
#[derive(Debug)]
struct Range {
    end: usize,
    members: Vec<u32>,
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

    /// The members whose ranges overlap these bytes.
    pub fn overlapping(&self, start: usize, len: usize) -> Vec<u32> {
        let mut end = start.saturating_add(len);
        let mut found = Vec::new();
        while let Some(first) = self.overlap(start, end) {
            found.extend(&self.0[&first].members);
            end = first;
        }
        found
    }

    /// Adds a buffer. Returns the members whose ranges it overlaps.
    pub fn insert(&mut self, member: u32, start: usize, len: usize) -> Vec<u32> {
        let end = start.saturating_add(len);
        let (mut whole, mut members) = ((start, end), Vec::new());
        while let Some(first) = self.overlap(start, end) {
            let range = self.0.remove(&first).expect("it was found");
            whole = (whole.0.min(first), whole.1.max(range.end));
            members.extend(range.members);
        }
        let others = members.clone();
        members.push(member);
        self.0.insert(whole.0, Range { end: whole.1, members });
        others
    }

    /// Removes a buffer. Its range stays while others are in it.
    pub fn remove(&mut self, member: u32, start: usize) {
        let Some((first, range)) = self.0.range_mut(..=start).next_back() else { return };
        range.members.retain(|known| *known != member);
        if range.members.is_empty() {
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
        assert!(origins.overlapping(120, 5).is_empty());
        assert_eq!(origins.overlapping(105, 10).len(), 2);
    }

    #[test]
    fn ranges_stay_until_their_last_buffer_is_gone() {
        let mut origins = Origins::new();
        origins.insert(1, 100, 10);
        origins.insert(2, 120, 10);
        let mut others = origins.insert(3, 105, 20);
        others.sort_unstable();
        assert_eq!(others, [1, 2]);
        origins.remove(1, 100);
        origins.remove(3, 105);
        assert_eq!(origins.insert(4, 102, 1), [2], "nobody knows what is in 100..130");
        origins.remove(2, 120);
        origins.remove(4, 102);
        assert!(origins.overlapping(0, 1000).is_empty());
    }
}

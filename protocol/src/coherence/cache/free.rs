//! The free frames of a cache, and which of them a page gets.
//!
//! Frames lie side by side in memory, as pages do in their space. Pages that follow each other get frames that do so, where that
//! is cheap: one mapping, one request to a disk has all of them then. So frames come in groups. The first page of a group of pages
//! begins a group of frames, in which the others find theirs. When all groups are begun, what is free in them goes to any page.

use super::super::FrameId;
use alloc::vec;
use alloc::vec::Vec;

const NONE: u32 = u32::MAX;

/// Free frames for which memory is kept in any case.
const SPARE: usize = 64;

/// Free frames. Those that became free last go first, unless others suit better.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FreeFrames {
    /// Those of groups that were begun, which they were in order.
    begun: Vec<FrameId>,
    /// By frame, its place among these.
    places: Vec<u32>,
    /// From this frame on all are free and of groups that were not begun.
    fresh: u32,
    /// Frames of a group: a power of two.
    group: u32,
}

impl FreeFrames {
    /// All of so many frames, each a group.
    pub fn new(frames: u32) -> FreeFrames {
        FreeFrames { begun: Vec::new(), places: vec![NONE; frames as usize], fresh: 0, group: 1 }
    }

    /// The same in groups of so many frames at most. There are a few groups at least.
    pub fn in_groups(self, frames: u32) -> FreeFrames {
        const GROUPS_MIN: u32 = 4;
        let most = frames.min(self.places.len() as u32 / GROUPS_MIN).max(1);
        FreeFrames { group: 1 << most.ilog2(), ..self }
    }

    /// Frames of a group.
    pub fn group(&self) -> u32 {
        self.group
    }

    pub fn len(&self) -> usize {
        self.begun.len() + self.places.len() - self.fresh as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn push(&mut self, frame: FrameId) {
        let place = &mut self.places[frame.0 as usize];
        assert!(*place == NONE && frame.0 < self.fresh, "{frame:?} is free twice");
        *place = self.begun.len() as u32;
        self.begun.push(frame);
    }

    /// Takes a frame for the page of this number. `beside` has frames that would suit, because pages of the same group lie so;
    /// it is empty if none is in a frame.
    pub fn take(&mut self, index: u32, beside: impl Iterator<Item = FrameId>) -> Option<FrameId> {
        let mut is_first = true;
        let suits = |frame: &FrameId| {
            is_first = false;
            self.places.get(frame.0 as usize).is_some_and(|place| *place != NONE)
        };
        let mut beside = beside;
        if let Some(frame) = beside.find(suits) {
            self.remove(frame);
            return Some(frame);
        }
        let has_fresh = (self.fresh as usize) < self.places.len();
        if has_fresh && (self.begun.is_empty() || is_first && self.group > 1) {
            return Some(self.begin_group(index));
        }
        let frame = *self.begun.last()?;
        self.remove(frame);
        Some(frame)
    }

    /// Begins a group. Returns the frame of the page of this number.
    fn begin_group(&mut self, index: u32) -> FrameId {
        let first = self.fresh;
        let end = (first + self.group).min(self.places.len() as u32);
        self.fresh = end;
        let frame = FrameId((first + index % self.group).min(end - 1));
        (first..end).rev().map(FrameId).filter(|other| *other != frame).for_each(|other| self.push(other));
        frame
    }

    fn remove(&mut self, frame: FrameId) {
        let place = core::mem::replace(&mut self.places[frame.0 as usize], NONE);
        self.begun.swap_remove(place as usize);
        if let Some(moved) = self.begun.get(place as usize) {
            self.places[moved.0 as usize] = place;
        }
        // All frames are begun long before most of them are in use.
        if self.begun.capacity() > 4 * self.begun.len().max(SPARE) {
            self.begun.shrink_to(2 * self.begun.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::iter;

    #[test]
    fn frames_that_are_groups_come_in_order_and_then_the_last_one_first() {
        let mut free = FreeFrames::new(4).in_groups(64);
        assert_eq!((free.group(), free.len()), (1, 4));
        let take = |free: &mut FreeFrames| free.take(9, iter::empty()).map(|frame| frame.0);
        assert_eq!([(); 3].map(|()| take(&mut free)), [Some(0), Some(1), Some(2)]);
        free.push(FrameId(0));
        free.push(FrameId(2));
        assert_eq!([(); 4].map(|()| take(&mut free)), [Some(2), Some(0), Some(3), None]);
    }

    #[test]
    fn pages_of_a_group_lie_in_a_group_of_frames() {
        let mut free = FreeFrames::new(18).in_groups(4);
        let take = |free: &mut FreeFrames, index, beside: &[u32]| {
            free.take(index, beside.iter().copied().map(FrameId)).expect("some are free").0
        };
        assert_eq!(take(&mut free, 6, &[]), 2);
        assert_eq!(take(&mut free, 13, &[]), 5);
        assert_eq!(take(&mut free, 7, &[3]), 3);
        assert_eq!(take(&mut free, 4, &[0]), 0);
        // Where another page has its frame, any of those that were begun.
        assert!([1, 4, 6, 7].contains(&take(&mut free, 5, &[3, 0])));
        assert_eq!([20, 24, 30].map(|index| take(&mut free, index, &[])), [8, 12, 17]);
        assert_eq!(free.len(), 10);
        let mut left: Vec<u32> = iter::from_fn(|| free.take(40, iter::empty())).map(|frame| frame.0).collect();
        left.sort_unstable();
        assert_eq!(left.len(), 10);
        left.dedup();
        assert!(left.len() == 10 && free.is_empty());
    }
}

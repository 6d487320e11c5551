//! The free frames of a cache, and their assignment to pages.
//!
//! Consecutive pages get consecutive frames where possible, so that one mapping or one disk request covers them. Frames
//! form groups. The first page of a group of pages begins a group of frames, and the other pages find their places in
//! it. A used group that is free as a whole already has memory and is taken before a fresh one. Once every group is
//! begun, any free frame goes to any page.

use super::super::FrameId;
use alloc::vec;
use alloc::vec::Vec;

const NONE: u32 = u32::MAX;

/// Entries a stack keeps capacity for, however empty it is.
const SPARE: usize = 64;

/// Free frames, last freed first unless an adjacent frame suits better.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FreeFrames {
    /// Free frames of begun groups.
    begun: Stack,
    /// All frames from this one on are free and belong to groups not begun.
    fresh: u32,
    /// Frames in a group: a power of two.
    group: u32,
    /// Number of free frames, by begun group. Empty if each frame is a group.
    free_in: Vec<u32>,
    /// Begun groups with all frames free.
    whole: Stack,
}

impl FreeFrames {
    /// `frames` free frames, each a group of its own.
    pub fn new(frames: u32) -> FreeFrames {
        FreeFrames { begun: Stack::new(frames), fresh: 0, group: 1, free_in: Vec::new(), whole: Stack::new(0) }
    }

    /// Sets groups of at most `frames` frames; at least `GROUPS_MIN` groups remain. No frame may have been taken.
    pub fn in_groups(self, frames: u32) -> FreeFrames {
        assert!(self.fresh == 0 && self.begun.items.is_empty(), "groups are set before the first frame is taken");
        const GROUPS_MIN: u32 = 4;
        let most = frames.min(self.frames() / GROUPS_MIN).max(1);
        let group = 1 << most.ilog2();
        let groups = if group > 1 { self.frames().div_ceil(group) } else { 0 };
        FreeFrames { group, free_in: vec![0; groups as usize], whole: Stack::new(groups), ..self }
    }

    /// Frames of a group.
    pub fn group(&self) -> u32 {
        self.group
    }

    fn frames(&self) -> u32 {
        self.begun.places.len() as u32
    }

    pub fn len(&self) -> usize {
        self.begun.items.len() + (self.frames() - self.fresh) as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn push(&mut self, frame: FrameId) {
        assert!(!self.begun.has(frame.0) && frame.0 < self.fresh, "{frame:?} is free twice");
        self.begun.push(frame.0);
        let group = frame.0 / self.group;
        if let Some(free) = self.free_in.get_mut(group as usize) {
            *free += 1;
            if *free == self.len_of(group) {
                self.whole.push(group);
            }
        }
        debug_assert!(self.len() <= self.frames() as usize, "no more frames are free than there are");
    }

    /// Takes a frame for the page at `index`. `adjacent` yields the frames implied by resident pages of the same group;
    /// it is empty if none is resident.
    pub fn take(&mut self, index: u32, mut adjacent: impl Iterator<Item = FrameId>) -> Option<FrameId> {
        let mut begins_group = self.group > 1;
        let suits = |frame: &FrameId| {
            begins_group = false;
            self.begun.has(frame.0)
        };
        if let Some(frame) = adjacent.find(suits) {
            return Some(self.remove(frame));
        }
        if let Some(group) = self.whole.last().filter(|_| begins_group) {
            let free = self.free_in.get(group as usize);
            debug_assert_eq!(free, Some(&self.len_of(group)), "group {group} is free as a whole");
            return Some(self.remove(self.place_in(group, index)));
        }
        let has_fresh = self.fresh < self.frames();
        if has_fresh && (self.begun.items.is_empty() || begins_group) {
            return Some(self.begin_fresh(index));
        }
        let frame = FrameId(self.begun.last()?);
        Some(self.remove(frame))
    }

    /// Number of frames in a group; the last group may be shorter.
    fn len_of(&self, group: u32) -> u32 {
        self.group.min(self.frames() - group * self.group)
    }

    /// The frame in `group` for the page at `index`.
    fn place_in(&self, group: u32, index: u32) -> FrameId {
        FrameId(group * self.group + (index % self.group).min(self.len_of(group) - 1))
    }

    /// Begins a fresh group. Returns the frame for the page at `index`.
    fn begin_fresh(&mut self, index: u32) -> FrameId {
        debug_assert!(self.fresh < self.frames(), "a group is left to begin");
        let group = self.fresh / self.group;
        let first = self.fresh;
        self.fresh += self.len_of(group);
        let frame = self.place_in(group, index);
        (first..self.fresh).rev().map(FrameId).filter(|other| *other != frame).for_each(|other| self.push(other));
        debug_assert!(!self.begun.has(frame.0) && frame.0 < self.fresh, "{frame:?} is taken from the group");
        frame
    }

    fn remove(&mut self, frame: FrameId) -> FrameId {
        assert!(self.begun.has(frame.0), "{frame:?} is taken and was free");
        self.begun.remove(frame.0);
        let group = frame.0 / self.group;
        if let Some(free) = self.free_in.get_mut(group as usize) {
            assert!(*free > 0, "the free frames of group {group} are counted");
            *free -= 1;
            if self.whole.has(group) {
                self.whole.remove(group);
            }
        }
        frame
    }
}

/// A stack of numbers below a bound. Any of them can be removed; a removal changes the order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Stack {
    items: Vec<u32>,
    /// By number, its position in `items`.
    places: Vec<u32>,
}

impl Stack {
    fn new(bound: u32) -> Stack {
        Stack { items: Vec::new(), places: vec![NONE; bound as usize] }
    }

    fn has(&self, number: u32) -> bool {
        self.places.get(number as usize).is_some_and(|place| *place != NONE)
    }

    fn last(&self) -> Option<u32> {
        self.items.last().copied()
    }

    /// `number` must not be on the stack.
    fn push(&mut self, number: u32) {
        debug_assert!(!self.has(number), "{number} is on the stack once");
        self.places[number as usize] = self.items.len() as u32;
        self.items.push(number);
    }

    /// `number` must be on the stack.
    fn remove(&mut self, number: u32) {
        debug_assert!(self.has(number), "{number} is on the stack");
        let place = core::mem::replace(&mut self.places[number as usize], NONE);
        debug_assert_eq!(self.items.get(place as usize), Some(&number), "a number is where its place says");
        self.items.swap_remove(place as usize);
        if let Some(moved) = self.items.get(place as usize) {
            self.places[*moved as usize] = place;
        }
        // All groups are begun long before most frames are used, so capacity is returned.
        if self.items.capacity() > 4 * self.items.len().max(SPARE) {
            self.items.shrink_to(2 * self.items.len());
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
        let take = |free: &mut FreeFrames, index, adjacent: &[u32]| {
            free.take(index, adjacent.iter().copied().map(FrameId)).expect("some are free").0
        };
        assert_eq!(take(&mut free, 6, &[]), 2);
        assert_eq!(take(&mut free, 13, &[]), 5);
        assert_eq!(take(&mut free, 7, &[3]), 3);
        assert_eq!(take(&mut free, 4, &[0]), 0);
        // If another page has the preferred frame, any frame of a begun group will do.
        assert!([1, 4, 6, 7].contains(&take(&mut free, 5, &[3, 0])));
        assert_eq!([20, 24, 30].map(|index| take(&mut free, index, &[])), [8, 12, 17]);
        assert_eq!(free.len(), 10);
        let mut left: Vec<u32> = iter::from_fn(|| free.take(40, iter::empty())).map(|frame| frame.0).collect();
        left.sort_unstable();
        assert_eq!(left.len(), 10);
        left.dedup();
        assert!(left.len() == 10 && free.is_empty());
    }

    #[test]
    fn a_group_that_is_free_as_a_whole_is_begun_before_a_fresh_one() {
        let mut free = FreeFrames::new(18).in_groups(4);
        let take = |free: &mut FreeFrames, index| free.take(index, iter::empty()).expect("some are free").0;
        assert_eq!([6, 13, 16].map(|index| take(&mut free, index)), [2, 5, 8]);
        free.push(FrameId(5));
        assert_eq!(take(&mut free, 22), 6);
        // The last group is short.
        assert_eq!([24, 31].map(|index| take(&mut free, index)), [12, 17]);
        free.push(FrameId(17));
        free.push(FrameId(2));
        assert_eq!([33, 34].map(|index| take(&mut free, index)), [1, 17]);
        // No group is whole or fresh any more.
        assert!([0, 2, 3, 4, 5, 7, 9, 10, 11, 13, 14, 15, 16].contains(&take(&mut free, 36)));
    }
}

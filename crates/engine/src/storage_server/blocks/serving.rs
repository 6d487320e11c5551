//! Pool frames temporarily in use for blocks.
//!
//! A leaving frame drops its idle blocks at once. Its dirty blocks are written, and its last jobs give up the blocks in
//! use. No job takes a block in it any more, so a frame leaves within a small number of writes.

use std::ops::Range;
use vgasnet_protocol::coherence::FrameId;
use vgasnet_storage::BLOCK_BYTES;

/// A frame, or the vacant entry of one that has left.
#[derive(Clone, Copy, Debug)]
struct ServingFrame {
    frame: FrameId,
    /// Slots in use as such.
    slots: usize,
    is_leaving: bool,
}

/// The frames serving for blocks. Their slots are numbered from 0.
#[derive(Debug)]
pub(super) struct Serving {
    frames: Vec<ServingFrame>,
    /// Number of frames, without vacant entries.
    count: u32,
    /// Blocks per frame.
    each: usize,
    /// Slots without memory.
    away: usize,
    leaving: Option<usize>,
    /// Position of the search for dirty blocks in the leaving frame.
    cursor: usize,
    returned: Option<FrameId>,
}

impl Serving {
    /// No frames yet, of `each` blocks.
    pub(super) fn new(each: usize) -> Serving {
        assert!(each > 0, "a frame has slots");
        Serving { frames: Vec::new(), count: 0, each, away: 0, leaving: None, cursor: 0, returned: None }
    }

    /// Number of frames.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Blocks per frame.
    pub(super) fn each(&self) -> usize {
        self.each
    }

    /// Slots without memory.
    pub(super) fn away(&self) -> usize {
        self.away
    }

    /// Offset of a slot in the pool's memory.
    pub(super) fn offset_bytes(&self, slot: usize) -> usize {
        debug_assert!(self.frames[slot / self.each].slots > 0, "slot {slot} has memory");
        let frame = self.frames[slot / self.each].frame.0 as usize;
        (frame * self.each + slot % self.each) * BLOCK_BYTES
    }

    /// The slot after `slot`, skipping a vacant entry.
    pub(super) fn next_behind(&self, slot: usize) -> usize {
        let at = slot / self.each;
        if self.frames[at].slots == 0 { (at + 1) * self.each } else { slot + 1 }
    }

    /// Adds a frame. Returns its place.
    pub(super) fn add(&mut self, frame: FrameId) -> usize {
        let has = self.frames.iter().any(|one| one.slots > 0 && one.frame == frame);
        debug_assert!(!has, "{frame:?} serves once");
        let serving = ServingFrame { frame, slots: self.each, is_leaving: false };
        let vacant = self.frames.iter().position(|one| one.slots == 0);
        let at = vacant.unwrap_or(self.frames.len());
        if vacant.is_some() {
            self.frames[at] = serving;
            assert!(self.away >= self.each, "the slots of the frame that left have no memory");
            self.away -= self.each;
        } else {
            self.frames.push(serving);
        }
        self.count += 1;
        at
    }

    /// Makes a frame leave, unless another is leaving or has not been taken. Returns its slots.
    pub(super) fn begin_leaving(&mut self) -> Option<Range<usize>> {
        if self.count == 0 || self.leaving.is_some() || self.returned.is_some() {
            return None;
        }
        let at = self.frames.iter().rposition(|one| one.slots > 0)?;
        debug_assert!(self.frames.iter().all(|one| !one.is_leaving), "one frame leaves at a time");
        self.frames[at].is_leaving = true;
        (self.leaving, self.cursor) = (Some(at), 0);
        Some(at * self.each..(at + 1) * self.each)
    }

    /// Whether the frame of a slot is leaving.
    pub(super) fn is_leaving(&self, slot: usize) -> bool {
        self.frames[slot / self.each].is_leaving
    }

    /// Number of slots of the leaving frame, with vacant ones.
    pub(super) fn leaving(&self) -> usize {
        if self.leaving.is_some() { self.each } else { 0 }
    }

    /// The next slot of the leaving frame, in turns.
    pub(super) fn next_leaving(&mut self) -> Option<usize> {
        let at = self.leaving?;
        debug_assert!(self.frames[at].is_leaving, "the frame is leaving");
        let slot = at * self.each + self.cursor % self.each;
        self.cursor += 1;
        Some(slot)
    }

    /// Removes a slot of the leaving frame, which leaves with its last one.
    pub(super) fn vacate(&mut self, slot: usize) {
        debug_assert_eq!(self.leaving, Some(slot / self.each), "slot {slot} is of the frame that leaves");
        self.away += 1;
        let serving = &mut self.frames[slot / self.each];
        assert!(serving.is_leaving && serving.slots > 0, "{:?} is leaving, slot by slot", serving.frame);
        serving.slots -= 1;
        if serving.slots == 0 {
            serving.is_leaving = false;
            self.leaving = None;
            self.count -= 1;
            assert!(self.returned.is_none(), "one frame leaves at a time");
            self.returned = Some(serving.frame);
        }
        debug_assert!(self.away <= self.frames.len() * self.each, "each slot goes once");
    }

    /// Takes a frame that has left.
    pub(super) fn take_returned(&mut self) -> Option<FrameId> {
        self.returned.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_frame_leaves_at_a_time_and_its_place_is_used_again() {
        let mut serving = Serving::new(2);
        assert_eq!([3, 4].map(|frame| serving.add(FrameId(frame))), [0, 1]);
        assert_eq!((serving.begin_leaving(), serving.begin_leaving()), (Some(2..4), None));
        assert!(serving.is_leaving(3) && !serving.is_leaving(1));
        serving.vacate(2);
        serving.vacate(3);
        assert_eq!((serving.begin_leaving(), serving.count(), serving.away()), (None, 1, 2));
        assert_eq!([0, 1, 2, 3].map(|slot| serving.next_behind(slot)), [1, 2, 4, 4]);
        assert_eq!((serving.take_returned(), serving.begin_leaving()), (Some(FrameId(4)), Some(0..2)));
        assert_eq!((serving.add(FrameId(9)), serving.away()), (1, 0));
        assert_eq!([0, 3].map(|slot| serving.offset_bytes(slot) / BLOCK_BYTES), [6, 19]);
    }
}

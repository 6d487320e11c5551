//! Pool frames temporarily in use for blocks.
//!
//! A leaving frame drops its idle blocks at once. Its dirty blocks are written, and its last jobs give up the blocks in
//! use. No job takes a block in it any more, so a frame leaves within a small number of writes.

use super::super::home_page::HomePage;
use super::{Blocks, Slot, State};
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

/// The frames serving for blocks.
#[derive(Debug)]
pub(super) struct Serving {
    frames: Vec<ServingFrame>,
    /// Number of frames, without vacant entries.
    count: u32,
    /// Blocks per frame.
    each: usize,
    /// Slots in state `Away`.
    away: usize,
    leaving: Option<usize>,
    /// Position of the search for dirty blocks in the leaving frame.
    cursor: usize,
    returned: Option<FrameId>,
}

impl Serving {
    pub(super) fn new(each: usize) -> Serving {
        Serving { frames: Vec::new(), count: 0, each, away: 0, leaving: None, cursor: 0, returned: None }
    }

    /// Offset of a slot of these frames in the pool's memory.
    pub(super) fn offset_bytes(&self, slot: usize) -> usize {
        let frame = self.frames[slot / self.each].frame.0 as usize;
        (frame * self.each + slot % self.each) * BLOCK_BYTES
    }

    /// The slot after `slot`, skipping vacant entries.
    pub(super) fn next_behind(&self, slot: usize, own_slots: usize) -> usize {
        match slot.checked_sub(own_slots).map(|slot| slot / self.each) {
            Some(at) if self.frames[at].slots == 0 => own_slots + (at + 1) * self.each,
            _ => slot + 1,
        }
    }
}

impl Blocks {
    /// Number of blocks with memory.
    pub(in super::super) fn here(&self) -> usize {
        self.slots.len() - self.serving.away
    }

    /// Number of pool frames in use for blocks.
    pub(in super::super) fn serving_frames(&self) -> u32 {
        self.serving.count
    }

    /// Takes a frame of the pool for blocks.
    pub(in super::super) fn take_frame(&mut self, frame: FrameId) {
        let each = self.serving.each;
        let serving = ServingFrame { frame, slots: each, is_leaving: false };
        let free = self.serving.frames.iter().position(|one| one.slots == 0);
        let at = free.unwrap_or(self.serving.frames.len());
        if free.is_some() {
            self.serving.frames[at] = serving;
            self.serving.away -= each;
        } else {
            self.serving.frames.push(serving);
            self.slots.extend(std::iter::repeat_with(|| Slot::new(State::Away)).take(each));
            self.mapped.iter_mut().for_each(|mapped| mapped.grow(self.slots.len()));
        }
        self.serving.count += 1;
        let first = self.own_slots + at * each;
        self.slots[first..first + each].iter_mut().for_each(|slot| slot.state = State::Free);
        self.idle += each;
    }

    /// Makes one of these frames leave, unless another is leaving. [`Blocks::take_returned`] returns it.
    pub(in super::super) fn release_frame(&mut self) {
        if self.serving.count == 0 || self.some_leaves() || self.serving.returned.is_some() {
            return;
        }
        let Some(at) = self.serving.frames.iter().rposition(|one| one.slots > 0) else { return };
        self.serving.frames[at].is_leaving = true;
        (self.serving.leaving, self.serving.cursor) = (Some(at), 0);
        let first = self.own_slots + at * self.serving.each;
        for slot in first..first + self.serving.each {
            if self.slots[slot].is_idle() {
                self.let_go(slot);
            }
        }
    }

    /// Takes a frame that has left.
    pub(in super::super) fn take_returned(&mut self) -> Option<FrameId> {
        self.serving.returned.take()
    }

    /// Whether the frame of a slot is leaving.
    pub(super) fn is_leaving(&self, slot: usize) -> bool {
        let at = slot.checked_sub(self.own_slots).map(|slot| slot / self.serving.each);
        at.is_some_and(|at| self.serving.frames[at].is_leaving)
    }

    /// Whether a slot has a block that cannot be written for now. It stays in a leaving frame, so jobs may use it.
    pub(super) fn is_unwritten(&self, slot: usize) -> bool {
        let Slot { state, block, .. } = self.slots[slot];
        state == State::Dirty && self.refusal(self.page_of(block)).is_some()
    }

    /// Whether a frame is leaving.
    pub(super) fn some_leaves(&self) -> bool {
        self.serving.leaving.is_some()
    }

    /// Vacates an idle slot if its frame is leaving.
    pub(super) fn let_go(&mut self, slot: usize) {
        if !self.is_leaving(slot) {
            return;
        }
        if self.slots[slot].state == State::Clean {
            self.unmap(slot);
            self.of_block.remove(&self.slots[slot].block);
        }
        (self.slots[slot].state, self.slots[slot].was_used) = (State::Away, false);
        self.idle -= 1;
        self.serving.away += 1;
        let serving = &mut self.serving.frames[(slot - self.own_slots) / self.serving.each];
        serving.slots -= 1;
        if serving.slots == 0 {
            serving.is_leaving = false;
            self.serving.leaving = None;
            self.serving.count -= 1;
            self.serving.returned = Some(serving.frame);
        }
    }

    /// At most `most` unused and writable dirty blocks of the leaving frame.
    pub(super) fn leaving_to_write(&mut self, most: usize, may_be_written: &impl Fn(HomePage) -> bool) -> Vec<usize> {
        let Some(at) = self.serving.leaving else { return Vec::new() };
        let (each, first) = (self.serving.each, self.own_slots + at * self.serving.each);
        let mut found = Vec::new();
        for _ in 0..each {
            let slot = first + self.serving.cursor % each;
            self.serving.cursor += 1;
            let Slot { state, users, block, .. } = self.slots[slot];
            let page = self.page_of(block);
            let is_free = users == 0 && self.refusal(page).is_none();
            if state == State::Dirty && is_free && may_be_written(page) {
                found.push(slot);
            }
            if found.len() == most {
                break;
            }
        }
        found
    }
}

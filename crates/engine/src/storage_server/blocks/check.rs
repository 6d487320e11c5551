//! The invariants of the block cache between two drives, checked in builds with debug assertions.

use super::Blocks;
use super::numbering::Block;
use super::slots::SlotState;

/// Largest cache that is walked after each drive. Walks of a larger one would take most of a job's time.
const SLOTS_MAX: usize = 256;

impl Blocks {
    /// The slots agree with the dirty blocks and the transfers.
    pub(in super::super) fn check(&self) {
        if !cfg!(debug_assertions) || self.slots.len() > SLOTS_MAX {
            return;
        }
        let slots = &self.slots;
        let count = |state: SlotState| (0..slots.len()).filter(|at| slots.state(*at) == state).count();
        let idle = (0..slots.len()).filter(|at| slots.is_idle(*at)).count();
        debug_assert_eq!(idle, slots.idle(), "idle slots are counted");
        debug_assert_eq!(count(SlotState::Away), slots.len() - slots.here(), "slots without memory are counted");
        let in_flight = (count(SlotState::Wanted), count(SlotState::Writing));
        debug_assert_eq!(in_flight, self.transfers.counts(), "slots being read and written are counted");
        let dirty = self.dirty.among(0..Block::MAX).count();
        debug_assert_eq!(dirty, count(SlotState::Dirty), "dirty blocks have slots");
        for (block, at) in slots.among(0..Block::MAX) {
            self.check_slot(block, at);
        }
    }

    fn check_slot(&self, block: Block, at: usize) {
        let state = self.slots.state(at);
        debug_assert_eq!(self.slots.block(at), block, "a block and its slot lead to each other");
        let is_empty = matches!(state, SlotState::Away | SlotState::Free);
        debug_assert!(!is_empty, "slot {at} of block {block} is {state:?}");
        debug_assert_eq!(self.dirty.has(block), state == SlotState::Dirty, "block {block} is dirty in its slot");
        let needs_job = matches!(state, SlotState::Wanted | SlotState::Filling | SlotState::Failed);
        debug_assert!(self.slots.is_used(at) || !needs_job, "a job waits for block {block}, which is {state:?}");
    }
}

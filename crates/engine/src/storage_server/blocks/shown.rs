//! Blocks that neighbours have read from the file for themselves, and which the cache takes in.

use super::super::home_page::HomePage;
use super::Blocks;
use super::numbering::Block;
use super::slots::SlotState;
use vgasnet_memory::HomeBlocks;
use vgasnet_storage::BLOCK_BYTES;

impl Blocks {
    /// Shows the blocks of the backing file to neighbours from now on.
    pub(in super::super) fn show_by(&mut self, shown: HomeBlocks) {
        self.slots.show_by(shown);
    }

    /// The page of a block.
    pub(in super::super) fn page_of(&self, block: Block) -> HomePage {
        self.numbering.page_of(block)
    }

    /// Takes in a block equal to the file's, unless it has a slot or no slot is idle. `from` is its memory. Returns
    /// whether it did.
    pub(in super::super) fn take_in(&mut self, block: Block, from: *const u8) -> bool {
        if self.slots.find(block).is_some() || self.slots.idle() == 0 {
            return false;
        }
        self.slots.renew_chances();
        let at = self.idle_slot();
        if self.slots.state(at) == SlotState::Clean {
            self.unmap(at);
        }
        self.slots.give(at, block, SlotState::Clean);
        // SAFETY: the slot was idle, so nothing else uses its memory. The mailbox is the home's until it is free again.
        unsafe { self.slots.memory(at).copy_from_nonoverlapping(from, BLOCK_BYTES) };
        self.slots.show(at);
        self.release_slot(at);
        true
    }
}

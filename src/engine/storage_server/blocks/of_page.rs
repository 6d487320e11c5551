//! The blocks of a page that is about to be held by a rank, or was, and of all pages.

use super::{Block, Blocks, State};
use crate::storage::BLOCK_BYTES;
use std::ops::Range;

impl Blocks {
    /// The dirty blocks of a page: where each begins in the page, and its memory.
    pub(in super::super) fn dirty_of(&self, index: u32) -> Vec<(usize, *mut u8)> {
        let blocks = self.dirty.range(self.blocks_of(index));
        let start = u64::from(index) << self.page_shift;
        blocks.map(|block| ((block - start) as usize * BLOCK_BYTES, self.place(self.of_block[block]))).collect()
    }

    /// A block of a page, if it is here.
    pub(in super::super) fn in_memory(&self, index: u32, block: usize) -> Option<*mut u8> {
        let at = *self.of_block.get(&(self.blocks_of(index).start + block as u64))?;
        (!matches!(self.slots[at].state, State::Wanted | State::Filling)).then(|| self.place(at))
    }

    /// Forgets the blocks of a page that lie in a range of it: the file has newer bytes there. No job uses them, and none is being
    /// written.
    pub(in super::super) fn forget(&mut self, index: u32, start_bytes: usize, end_bytes: usize) {
        let first = u64::from(index) << self.page_shift;
        let range = first + start_bytes as u64 / BLOCK_BYTES as u64..first + end_bytes as u64 / BLOCK_BYTES as u64;
        let known: Vec<(Block, usize)> = self.of_block.range(range).map(|(block, slot)| (*block, *slot)).collect();
        for (block, at) in known {
            assert!(self.slots[at].users == 0 && self.slots[at].state != State::Writing, "a block in use is forgotten");
            debug_assert!(
                !self.mapped.as_ref().is_some_and(|mapped| mapped.has(index)),
                "a page that a rank held is mapped"
            );
            let was_dirty = self.dirty.remove(&block);
            self.slots[at].state = State::Free;
            self.of_block.remove(&block);
            if was_dirty {
                self.note_idle(at);
            }
        }
    }

    /// Has all dirty blocks written, and forgets the others that no job uses. Returns whether there is none.
    pub(in super::super) fn empty(&mut self) -> bool {
        let idle = |slot: &&usize| self.slots[**slot].is_idle();
        let clean: Vec<usize> = self.of_block.values().filter(idle).copied().collect();
        for at in clean {
            self.unmap(at);
            self.of_block.remove(&self.slots[at].block);
            self.slots[at].state = State::Free;
        }
        self.is_emptying = !self.dirty.is_empty();
        self.of_block.is_empty()
    }

    pub(super) fn blocks_of(&self, index: u32) -> Range<Block> {
        let first = u64::from(index) << self.page_shift;
        first..first + (1 << self.page_shift)
    }

    pub(super) fn of_page_blocks(&self, index: u32) -> impl Iterator<Item = usize> + '_ {
        self.of_block.range(self.blocks_of(index)).map(|(_, slot)| *slot)
    }
}

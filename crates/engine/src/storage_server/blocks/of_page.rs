//! Blocks of a page that a rank is about to hold or has held, and of all pages.

use super::super::home_page::HomePage;
use super::{Block, Blocks, State};
use std::ops::Range;
use vgasnet_storage::BLOCK_BYTES;

impl Blocks {
    /// The dirty blocks of a page: offset in the page, and memory.
    pub(in super::super) fn dirty_of(&self, page: HomePage) -> Vec<(usize, *mut u8)> {
        let blocks = self.dirty.range(self.blocks_of(page));
        let start_bytes = |block| self.place_in_page(page, block) as usize * BLOCK_BYTES;
        blocks.map(|block| (start_bytes(*block), self.place(self.of_block[block]))).collect()
    }

    /// A block of a page, if it is in memory.
    pub(in super::super) fn in_memory(&self, page: HomePage, block: usize) -> Option<*mut u8> {
        let at = *self.of_block.get(&(self.blocks_of(page).start + block as u64))?;
        (!matches!(self.slots[at].state, State::Wanted | State::Filling | State::Failed)).then(|| self.place(at))
    }

    /// Drops the blocks in a range of a page, since the file has newer bytes. No job may use them, and none may be in
    /// flight.
    pub(in super::super) fn forget(&mut self, page: HomePage, start_bytes: usize, end_bytes: usize) {
        let first = page.first_block(self.page_shift);
        let range = first + start_bytes as u64 / BLOCK_BYTES as u64..first + end_bytes as u64 / BLOCK_BYTES as u64;
        let known: Vec<usize> = self.of_block.range(range).map(|(_, slot)| *slot).collect();
        for at in known {
            assert!(self.slots[at].users == 0 && self.slots[at].state != State::Writing, "a block in use is forgotten");
            debug_assert!(
                !(page.is_of_segment() && self.mapped.as_ref().is_some_and(|mapped| mapped.has(page.index()))),
                "a page that a rank held is mapped"
            );
            let was_dirty = self.clean(at);
            self.slots[at].state = State::Free;
            self.of_block.remove(&self.slots[at].block);
            if was_dirty {
                self.note_idle(at);
            }
        }
    }

    /// Starts writing all dirty blocks, and drops the others not in use. Returns whether none is left.
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

    /// The file is about to receive bytes of the page from outside the block cache.
    pub(in super::super) fn on_storing(&mut self, page: HomePage) {
        self.zeros.forget(page);
    }

    /// Index of a block in its page.
    pub(super) fn place_in_page(&self, page: HomePage, block: Block) -> u64 {
        block - page.first_block(self.page_shift)
    }

    pub(super) fn blocks_of(&self, page: HomePage) -> Range<Block> {
        let first = page.first_block(self.page_shift);
        first..first + (1 << self.page_shift)
    }

    pub(super) fn of_page_blocks(&self, page: HomePage) -> impl Iterator<Item = usize> + '_ {
        self.of_block.range(self.blocks_of(page)).map(|(_, slot)| *slot)
    }
}

//! Blocks of a page that a rank is about to hold or has held, and of all pages.

use super::super::home_page::HomePage;
use super::Blocks;
use super::numbering::Block;
use std::ops::Range;
use vgasnet_storage::BLOCK_BYTES;

impl Blocks {
    /// The dirty blocks of a page: offset in the page, and memory.
    pub(in super::super) fn dirty_of(&self, page: HomePage) -> Vec<(usize, *mut u8)> {
        let memory = |block| self.slots.find(block).map(|at| self.slots.memory(at)).expect("a dirty block is here");
        let offset_bytes = |block| self.numbering.place_in_page(block) as usize * BLOCK_BYTES;
        let blocks = self.dirty.among(self.numbering.of_page(page));
        blocks.map(|block| (offset_bytes(block), memory(block))).collect()
    }

    /// A block of a page, if it is in memory.
    pub(in super::super) fn in_memory(&self, page: HomePage, block: usize) -> Option<*mut u8> {
        debug_assert!((block as u64) < self.numbering.per_page(), "block {block} is in its page");
        let at = self.slots.find(self.numbering.of_page(page).start + block as u64)?;
        self.slots.has_bytes(at).then(|| self.slots.memory(at))
    }

    /// Drops the blocks in a range of a page, since the file has newer bytes. No job may use them, and none may be in
    /// flight.
    pub(in super::super) fn forget(&mut self, page: HomePage, start_bytes: usize, end_bytes: usize) {
        debug_assert!(
            start_bytes % BLOCK_BYTES == 0 && end_bytes % BLOCK_BYTES == 0,
            "blocks are forgotten as a whole"
        );
        debug_assert!(start_bytes < end_bytes, "some block is forgotten");
        debug_assert!(
            !(page.is_of_segment() && self.mapped.as_ref().is_some_and(|mapped| mapped.has(page.index()))),
            "a page that a rank held is mapped"
        );
        let first = self.numbering.of_page(page).start;
        let at = |bytes: usize| first + bytes as u64 / BLOCK_BYTES as u64;
        self.forget_blocks(at(start_bytes)..at(end_bytes));
    }

    /// Drops blocks that no job uses and that are not in flight.
    pub(super) fn forget_blocks(&mut self, blocks: Range<Block>) {
        let known: Vec<(Block, usize)> = self.slots.among(blocks).collect();
        for (block, at) in known {
            let was_dirty = self.dirty.remove(block, self.slots.mark(at));
            self.slots.forget(at);
            if was_dirty {
                self.note_idle(at);
            }
        }
    }

    /// Starts writing all dirty blocks, and drops the others not in use. Returns whether none is left.
    pub(in super::super) fn empty(&mut self) -> bool {
        let clean = self.slots.among(0..Block::MAX).map(|(_, at)| at).filter(|at| self.slots.is_idle(*at));
        let clean: Vec<usize> = clean.collect();
        for at in clean {
            debug_assert!(!self.dirty.has(self.slots.block(at)), "an idle block is clean");
            self.unmap(at);
            self.slots.forget(at);
        }
        if !self.dirty.is_empty() {
            self.cleaning.empty();
        }
        self.slots.is_empty()
    }

    /// The file is about to receive bytes of the page from outside the block cache.
    pub(in super::super) fn on_storing(&mut self, page: HomePage) {
        self.zeros.forget(page);
    }
}

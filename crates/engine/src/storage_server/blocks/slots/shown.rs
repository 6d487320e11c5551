//! What neighbours see of the slots ([`HomeBlocks`]): the blocks of the backing file that have their bytes.

use super::Slots;
use vgasnet_memory::HomeBlocks;
use vgasnet_storage::BLOCK_BYTES;

impl Slots {
    /// Shows the blocks to neighbours from now on. There is none yet.
    pub(in super::super) fn show_by(&mut self, shown: HomeBlocks) {
        assert!(self.of_block.is_empty(), "blocks are shown from the first on");
        self.shown = shown;
    }

    /// Shows a block of the backing file, whose bytes are in its slot, to neighbours.
    pub(in super::super) fn show(&self, at: usize) {
        debug_assert!(self.has_bytes(at), "slot {at} has its bytes");
        if self.page_of_segment(at).is_some() {
            self.shown.index.show(self.place(at), self.slots[at].block);
        }
    }

    /// Hides the block of a slot before the slot gets other bytes.
    pub(super) fn hide(&self, at: usize) {
        self.shown.index.hide(self.place(at));
    }

    /// The place of a slot in the pool's memory, in blocks.
    pub(super) fn place(&self, at: usize) -> usize {
        self.offset_bytes(at) / BLOCK_BYTES
    }

    /// The page of a slot's block in the backing file, if it is of that file.
    fn page_of_segment(&self, at: usize) -> Option<u32> {
        u32::try_from(self.slots[at].block / self.serving.each() as u64).ok()
    }

    /// The bytes in a slot begin to differ from the file.
    pub(super) fn on_written(&self, at: usize) {
        self.page_of_segment(at).into_iter().for_each(|page| self.shown.pages.on_written(page));
    }
}

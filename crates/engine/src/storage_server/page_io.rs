//! The I/O of a page beside the blocks of the same page: a page waits for blocks being written, is overlaid with dirty
//! ones once read, and supersedes them once written.

use super::{Need, Order, StorageServer};
use crate::queue::Todo;
use crate::work::{OverlaidBlocks, Work};
use vgasnet_memory::Extent;
use vgasnet_storage::IoDirection;

impl StorageServer {
    /// Makes a page's operation wait for its resource, once none of the page's blocks is being written.
    pub(super) fn begin_page(&mut self, id: usize) {
        if self.blocks.is_writing(self.operations.get(id).order().place) {
            return self.operations.wait_for_blocks(id);
        }
        let need = self.need_of(id);
        debug_assert!(
            !self.operations.waits_for_blocks(self.operations.get(id).order().place),
            "no block is waited for"
        );
        self.operations.wait(id, need);
    }

    /// Resource that a page's operation needs next.
    fn need_of(&self, id: usize) -> Need {
        let operation = self.operations.get(id);
        let Order { peer, frame, .. } = operation.order();
        if self.space.frame(peer, frame).is_some() { Need::Nothing } else { operation.staging_need() }
    }

    /// A page has been read into its operation's memory. Queues the overlay of its dirty blocks. Returns whether there
    /// are none.
    #[inline(never)]
    pub(super) fn is_whole_or_lays_over(&mut self, id: usize, todo: &mut Todo) -> bool {
        debug_assert_eq!(self.operations.get(id).order().direction, IoDirection::Read, "the page was read");
        let blocks = self.blocks.dirty_of(self.operations.get(id).order().place);
        if blocks.is_empty() {
            return true;
        }
        let page = self.memory_of(id);
        let copies = blocks.into_iter().map(|(offset_bytes, block)| (block, page.wrapping_add(offset_bytes)));
        // SAFETY: both are blocks of mapped memory. The dirty block does not change while its page is in flight, and the
        // frame is the operation's.
        let blocks = unsafe { OverlaidBlocks::new(copies) };
        todo.add(Work::LayOver { operation: id, blocks });
        false
    }

    /// A page write has reached the file, which is now newer than the blocks in memory.
    #[inline(never)]
    pub(super) fn forget_blocks(&mut self, id: usize) {
        debug_assert_eq!(self.operations.get(id).order().direction, IoDirection::Write, "the page was written");
        let place = self.operations.get(id).order().place;
        for Extent { start_bytes, end_bytes } in self.extents(id) {
            self.blocks.forget(place, start_bytes, end_bytes);
        }
    }
}

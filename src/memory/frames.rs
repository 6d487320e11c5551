//! The frames of the own pool: all that is known of each but the page in it, which is the protocol's.

use super::{AddressSpace, LargePages, PageTable, mapping_refused};
use crate::error::UserError;
use std::sync::Arc;
use vgasnet_protocol::coherence::{FrameId, PageId};
use vgasnet_protocol::replacement::Lru;

/// The frames of a rank's pool, as its engine has them.
#[derive(Debug)]
pub struct Frames {
    space: Arc<AddressSpace>,
    order: Lru,
    /// Frames that have held a page. The memory of the others is zeros.
    filled: Box<[bool]>,
    large_pages: Arc<LargePages>,
}

impl Frames {
    /// `frames` frames, none of them used yet.
    pub fn new(space: Arc<AddressSpace>, frames: u32) -> Frames {
        let large_pages = Arc::new(LargePages::new(space.own.pool, frames));
        Frames { order: Lru::new(frames), filled: vec![false; frames as usize].into(), large_pages, space }
    }

    /// How much of the pool's memory has been prepared.
    pub fn large_pages(&self) -> &Arc<LargePages> {
        &self.large_pages
    }

    /// Prepares the frame's memory for a page that will come.
    pub fn reserve(&self, frame: FrameId) {
        self.large_pages.on_use(frame);
    }

    /// Whether the frame's memory is zeros because it has held no page yet.
    pub fn is_zeros(&self, frame: FrameId) -> bool {
        !self.filled[frame.0 as usize]
    }

    /// Notes that the frame has a page, which is used now.
    pub fn fill(&mut self, frame: FrameId) {
        self.space.own.pool.touch(frame);
        self.filled[frame.0 as usize] = true;
    }

    /// The least recently used frame that `suits`.
    pub fn least_recent(&mut self, suits: impl FnMut(FrameId) -> bool) -> Option<FrameId> {
        let (table, pool) = (self.space.own.table, self.space.own.pool);
        let last_use = |frame: FrameId| {
            // Reads without a pin leave no other trace. They count as uses of now.
            if table.take_used(frame) {
                pool.touch(frame);
            }
            pool.last_use(frame)
        };
        self.order.find(last_use, suits)
    }

    /// The least recently used frame whose page, named by `page_in`, nobody uses now and `suits`.
    pub fn least_recent_unused(
        &mut self,
        page_in: impl Fn(FrameId) -> Option<PageId>,
        suits: impl Fn(&PageTable, FrameId) -> bool,
    ) -> Option<FrameId> {
        let table = self.space.own.table;
        self.least_recent(|frame| page_in(frame).is_some() && !table.is_pinned(frame) && suits(&table, frame))
    }

    /// Unmaps the pages that were mapped first, so that their next use is seen. Called when frames are needed.
    pub fn age_mapped(&self) {
        if let Some(view) = &self.space.view {
            view.age();
        }
    }

    /// Unmaps a page that is closed and not pinned, if it is mapped in the segment.
    ///
    /// # Errors
    /// The system refuses.
    pub fn unmap(&self, page: PageId, frame: FrameId) -> Result<(), UserError> {
        let unmapped = self.space.view.as_ref().map_or(Ok(()), |view| view.unmap(page, frame));
        unmapped.map_err(|errno| mapping_refused("unmap", errno))
    }
}

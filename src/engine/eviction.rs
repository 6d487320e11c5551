//! Which frame is evicted, and when; the client's hints about pages that it will not need.

use super::Engine;
use std::ops::RangeInclusive;
use std::sync::Arc;
use vgasnet_protocol::coherence::{Event, FrameId, PageId};

impl Engine {
    /// The frame to evict now, if any: because a page awaits a frame, or ahead of that.
    pub(super) fn next_eviction(&mut self) -> Option<FrameId> {
        if self.protocol.cache.wants_frame() {
            self.reserve.on_shortage();
            return self.victim();
        }
        if !self.reserve.wants_more(self.protocol.cache.frames_coming_free()) {
            return None;
        }
        // A page that was fetched ahead is not evicted before its use.
        let cache = &self.protocol.cache;
        let page_in = |frame| cache.page_in(frame).filter(|_| cache.evictable(frame));
        self.frames.least_recent_unused(page_in, |table, frame| !table.is_ahead(frame))
    }

    /// The frame for a page that awaits one: the least recently used that nobody uses now, else the least recently
    /// used.
    fn victim(&mut self) -> Option<FrameId> {
        self.frames.age_mapped();
        let (cache, pins, space) = (&self.protocol.cache, &self.pins, Arc::clone(&self.space));
        let page_in = |frame| cache.page_in(frame).filter(|_| cache.evictable(frame));
        let unused = self.frames.least_recent_unused(page_in, |_, _| true);
        // A page in use is unpinned soon; one that the client has pinned may never be.
        let is_pinned = |page: PageId| space.is_own(page) && pins.has(page.index);
        unused.or_else(|| self.frames.least_recent(|frame| page_in(frame).is_some_and(|page| !is_pinned(page))))
    }

    /// Evicts pages of the own segment, which will not be needed, unless they are in use.
    pub fn discard(&mut self, pages: &RangeInclusive<u32>) {
        for (_, frame) in self.own_copies(pages) {
            let in_use = self.space.own.table.is_pinned(frame);
            if !in_use && self.protocol.cache.evictable(frame) {
                self.handle(Event::Evict(frame));
            }
        }
    }

    /// Writes dirty pages of the own segment back and keeps them: they will hardly be written.
    pub fn clean(&mut self, pages: &RangeInclusive<u32>) {
        for (page, _) in self.own_copies(pages) {
            self.handle(Event::WriteBack(page));
        }
    }

    /// The pages of a range of the own segment that are in the own pool.
    fn own_copies(&self, pages: &RangeInclusive<u32>) -> Vec<(PageId, FrameId)> {
        let is_meant = |page: PageId| self.space.is_own(page) && pages.contains(&page.index);
        let copies = self.protocol.cache.copies().map(|(page, frame, _)| (page, frame));
        copies.filter(|(page, _)| is_meant(*page)).collect()
    }
}

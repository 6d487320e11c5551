//! Which frame is given up, and when; what the client says of pages that it will not need.

use super::Engine;
use std::ops::RangeInclusive;
use vgasnet_protocol::coherence::{Event, FrameId, PageId};

impl Engine {
    /// The frame to give up now, if any: because a page waits for it, or ahead of that.
    pub(super) fn next_eviction(&mut self) -> Option<FrameId> {
        if self.protocol.cache.wants_frame() {
            self.reserve.on_shortage();
            return self.victim();
        }
        if !self.reserve.wants_more(self.protocol.cache.frames_coming_free()) {
            return None;
        }
        // What was fetched ahead is not thrown out before its use.
        let cache = &self.protocol.cache;
        let page_in = |frame| cache.page_in(frame).filter(|_| cache.evictable(frame));
        self.frames.least_recent_unused(page_in, |table, slot| !table.is_ahead(slot))
    }

    /// The frame that a page waits for: the least recently used that nobody uses now, else the least recently used.
    fn victim(&mut self) -> Option<FrameId> {
        self.frames.age_mapped();
        let (cache, pins, own) = (&self.protocol.cache, &self.pins, self.space.rank);
        let page_in = |frame| cache.page_in(frame).filter(|_| cache.evictable(frame));
        let unused = self.frames.least_recent_unused(page_in, |_, _| true);
        // A page that is in use now is waited for; one that the client has pinned might be used for ever.
        let is_pinned = |page: PageId| page.home == own && pins.has(page.index);
        unused.or_else(|| self.frames.least_recent(|frame| page_in(frame).is_some_and(|page| !is_pinned(page))))
    }

    /// Pages of the own segment will not be needed: gives up the frames of those that nobody uses now.
    pub fn discard(&mut self, pages: &RangeInclusive<u32>) {
        for (page, frame) in self.own_copies(pages) {
            let in_use = self.space.own.table.is_pinned(self.space.slots.of(page));
            if !in_use && self.protocol.cache.evictable(frame) {
                self.handle(Event::Evict(frame));
            }
        }
    }

    /// Pages of the own segment will hardly be written: writes dirty ones back, and keeps them.
    pub fn clean(&mut self, pages: &RangeInclusive<u32>) {
        for (page, _) in self.own_copies(pages) {
            self.handle(Event::WriteBack(page));
        }
    }

    /// The pages of a range of the own segment that are in the own pool.
    fn own_copies(&self, pages: &RangeInclusive<u32>) -> Vec<(PageId, FrameId)> {
        let is_meant = |page: PageId| page.home == self.space.rank && pages.contains(&page.index);
        let copies = self.protocol.cache.copies().map(|(page, frame, _)| (page, frame));
        copies.filter(|(page, _)| is_meant(*page)).collect()
    }
}

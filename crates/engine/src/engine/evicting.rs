//! Evicts pages for those that wait for a frame, moves frames between pages and blocks, and handles the client's hints
//! about pages that it will not need.

use super::{Engine, pinning};
use crate::Work;
use std::ops::RangeInclusive;
use vgasnet_protocol::Space;
use vgasnet_protocol::coherence::{Event, FrameId, PageId};
use vgasnet_protocol::guests::GuestMessage;
use vgasnet_protocol::replacement::Need;

impl Engine {
    /// The next frame to evict, if a page waits for one or the reserve is low.
    pub(super) fn next_eviction(&mut self) -> Option<FrameId> {
        loop {
            let demand = self.paging.demand(&self.protocol.cache);
            if demand.is_for_pages && self.take_frame_from_blocks() {
                return None;
            }
            let victim = self.find_victim(demand.eviction?);
            // An offered page is evicted once its offer is answered. A page that waits for a frame gets another one.
            if !victim.is_some_and(|frame| self.offer(frame)) {
                return victim;
            }
            // The events may concern the next victim.
            if self.queue.has_events() {
                return None;
            }
        }
    }

    fn find_victim(&mut self, need: Need) -> Option<FrameId> {
        let (cache, stays) = (&self.protocol.cache, |page| self.files.stays(page));
        let victim = self.paging.next_victim(need, cache, stays);
        // Every frame is held or in use. Some may hold pages that another home will send once this one has served it.
        if need == Need::Now && victim.is_none() && cache.fetches_for_others() {
            self.queue.raise(Event::NoVictim);
        }
        let passed = self.paging.passed_mapped(victim.is_none());
        self.queue.add_all(passed.map(|pages| Work::UnmapUnused { pages }));
        self.paging.asked_back().for_each(|page| pinning::ask_back(&mut self.outbox, page));
        debug_assert!(victim.is_none_or(|frame| cache.evictable(frame)), "{victim:?} can be evicted");
        self.queue.raise_all(self.paging.clean_ahead(victim, cache, stays).map(Event::WriteBack));
        victim
    }

    /// Offers a page chosen for eviction if it may be the only copy. Returns whether it is on offer.
    fn offer(&mut self, frame: FrameId) -> bool {
        let Some((to, page)) = self.paging.offer(frame, &self.protocol.cache) else { return false };
        self.outbox.send(to, &GuestMessage::Offer { page }.encode());
        true
    }

    /// Number of pool frames in use for blocks.
    pub fn frames_for_blocks(&self) -> u32 {
        self.storage.frames_for_blocks()
    }

    /// Gives blocks a free frame if they are due one, and gives returned frames to pages.
    #[inline(never)]
    pub(super) fn balance_frames(&mut self) {
        self.paging.on_blocks_missed(self.storage.take_cleaned_blocks());
        if self.paging.owes_blocks_a_frame(self.storage.frames_for_blocks()) {
            if let Some(frame) = self.protocol.cache.take_free_frame() {
                debug_assert!(self.protocol.cache.page_in(frame).is_none(), "{frame:?} serves either pages or blocks");
                self.paging.give_to_blocks(frame);
                self.storage.give_to_blocks(frame);
            }
        }
        let has_come =
            if self.protocol.cache.starving() > 0 { self.take_frame_from_blocks() } else { self.take_returned_frame() };
        if has_come {
            self.handle_events();
        }
    }

    /// Pages need a frame: asks for one back from blocks. Returns whether one has been returned.
    fn take_frame_from_blocks(&mut self) -> bool {
        self.paging.refuse_blocks();
        self.storage.release_frame();
        self.take_returned_frame()
    }

    fn take_returned_frame(&mut self) -> bool {
        let returned = self.storage.take_returned_frame();
        let page = returned.and_then(|frame| self.protocol.cache.page_in(frame));
        debug_assert!(page.is_none(), "{returned:?} has served blocks, and has {page:?}");
        self.queue.raise_all(returned.map(Event::Freed));
        returned.is_some()
    }

    /// Evicts pages of the own segment or of a file that will not be needed, unless they are in use.
    pub fn discard(&mut self, space: Space, pages: &RangeInclusive<u32>) {
        // A page may be due for write-behind, which prevents its eviction.
        self.handle_events();
        for (page, frame) in self.own_copies(space, pages) {
            if self.paging.is_unused(frame, &self.protocol.cache) && !self.files.stays(page) {
                self.handle(Event::Evict(frame));
            }
        }
    }

    /// Evicts all unused pages and blocks of the file, and tells the homes. Returns whether none is left and none is in
    /// flight to the pool.
    pub fn discard_all(&mut self) -> bool {
        self.handle_events();
        let frames: Vec<FrameId> = self.protocol.cache.copies().map(|(_, frame, _)| frame).collect();
        for frame in frames {
            if self.paging.is_unused(frame, &self.protocol.cache) {
                self.handle(Event::Evict(frame));
            }
        }
        self.handle(Event::TellAll);
        let has_no_blocks = self.storage.empty_blocks();
        self.protocol.cache.is_empty() && has_no_blocks
    }

    /// Writes back dirty pages of the own segment or of a file and keeps them resident: they are unlikely to be written
    /// again.
    pub fn clean(&mut self, space: Space, pages: &RangeInclusive<u32>) {
        for (page, _) in self.own_copies(space, pages) {
            self.handle(Event::WriteBack(page));
        }
    }

    /// Pages of a range that are resident in the own pool.
    fn own_copies(&self, space: Space, pages: &RangeInclusive<u32>) -> Vec<(PageId, FrameId)> {
        let [first, last] = [pages.start(), pages.end()].map(|index| PageId { space, index: *index });
        self.protocol.cache.copies_among(first..=last).collect()
    }
}

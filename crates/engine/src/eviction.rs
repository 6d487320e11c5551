//! Chooses when to evict and which frame; handles the client's hints about pages that it will not need.

use super::{Engine, Work};
use std::ops::RangeInclusive;
use vgasnet_memory::Frames;
use vgasnet_protocol::Space;
use vgasnet_protocol::coherence::{Cache, CoherenceBody, Event, FrameId, PageId, ToCache};
use vgasnet_protocol::replacement::Need;
use vgasnet_stats::{self as stats, Row};

impl Engine {
    /// The next frame to evict, if a page waits for one or the reserve is low.
    pub(super) fn next_eviction(&mut self) -> Option<FrameId> {
        loop {
            let need = self.need_of_frames()?;
            let victim = self.find_victim(need);
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

    /// Urgency of the next eviction, if one is needed. Pages on offer count as evicted.
    fn need_of_frames(&mut self) -> Option<Need> {
        let cache = &self.protocol.cache;
        let need = if cache.wants_frame() { Need::Now } else { Need::Later };
        let surplus = cache.surplus_frames() + self.guests.on_offer();
        let is_for_pages = need == Need::Now || self.reserve.wants_more(surplus);
        let is_for_blocks = self.block_frames.is_wanted() && surplus == 0;
        let has_come = is_for_pages && self.take_frame_from_blocks();
        // The only copy of a page is not evicted ahead of need before it has been offered.
        let is_soon_enough = need == Need::Now || !self.guests.is_offering_all_it_may();
        (!has_come && is_soon_enough && (is_for_pages || is_for_blocks)).then_some(need)
    }

    /// Searches for a frame to evict, excluding pages that must stay. A page in use is unpinned soon; one pinned by the
    /// client may never be.
    pub(super) fn search_victims(
        &mut self,
        find: impl FnOnce(&mut Frames, &Cache, &dyn Fn(PageId) -> bool) -> Option<FrameId>,
    ) -> Option<FrameId> {
        let (pins, space, files) = (&self.pins, &self.space, &self.files);
        let stays = |page: PageId| space.is_own(page) && pins.has(page.index) || files.stays(page);
        find(&mut self.frames, &self.protocol.cache, &stays)
    }

    fn find_victim(&mut self, need: Need) -> Option<FrameId> {
        let victim = self.search_victims(|frames, cache, stays| frames.victim(need, cache, stays));
        let cache = &self.protocol.cache;
        let is_clean = |frame| cache.page_in(frame).is_some_and(|page| cache.dirty_frame(page).is_none());
        if need == Need::Now && !victim.is_some_and(is_clean) {
            self.reserve.on_shortage();
        }
        // Every frame is held or in use. Some may hold pages that another home will send once this one has served it.
        if need == Need::Now && victim.is_none() && cache.fetches_for_others() {
            self.queue.raise(Event::NoVictim);
        }
        self.queue.add_all(self.frames.passed_mapped().map(|(page, frame)| Work::UnmapUnused { page, frame }));
        let asked_back: Vec<PageId> = self.frames.asked_back().collect();
        asked_back.into_iter().for_each(|page| self.send_asking(page));
        self.clean_ahead(victim);
        victim
    }

    /// Writes back dirty pages due for eviction soon, so that their frames become free at once. Without evictions
    /// nothing is written. Pages in use are skipped, since they may be written again, and so is `victim`.
    fn clean_ahead(&mut self, victim: Option<FrameId>) {
        let will_go: Vec<FrameId> = self.frames.will_go().collect();
        for frame in will_go {
            let cache = &self.protocol.cache;
            let is_idle = cache.evictable(frame) && !self.space.own.table.is_pinned(frame);
            let dirty = cache.page_in(frame).filter(|page| cache.dirty_frame(*page).is_some());
            let dirty = dirty.filter(|page| !self.files.stays(*page));
            if let Some(page) = dirty.filter(|_| is_idle && victim != Some(frame)) {
                stats::count(Row::CleanedAhead);
                self.cleaned_ahead += 1;
                self.queue.raise(Event::WriteBack(page));
            }
        }
    }

    /// Evicts pages of the own segment or of a file that will not be needed, unless they are in use.
    pub fn discard(&mut self, space: Space, pages: &RangeInclusive<u32>) {
        // A page may be due for write-behind, which prevents its eviction.
        self.handle_events();
        for (page, frame) in self.own_copies(space, pages) {
            let in_use = self.space.own.table.is_pinned(frame);
            if !in_use && self.protocol.cache.evictable(frame) && !self.files.stays(page) {
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
            if !self.space.own.table.is_pinned(frame) && self.protocol.cache.evictable(frame) {
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

/// A page that this event makes evictable: its transfer or its write-back has ended.
pub(super) fn page_released_by(event: &Event) -> Option<PageId> {
    match event {
        Event::Transferred(outgoing) => Some(outgoing.page),
        Event::Message { message, .. } => {
            matches!(message.body, CoherenceBody::Cache(ToCache::Evicted { .. })).then_some(message.page)
        }
        _ => None,
    }
}

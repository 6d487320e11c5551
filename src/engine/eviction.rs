//! Which frame is evicted, and when; the client's hints about pages that it will not need.

use super::{Engine, Work};
use crate::memory::Frames;
use crate::stats::{self, Row};
use std::ops::RangeInclusive;
use vgasnet_protocol::Space;
use vgasnet_protocol::coherence::{Cache, CoherenceBody, Event, FrameId, PageId, ToCache};
use vgasnet_protocol::replacement::Need;

impl Engine {
    /// The frame to evict now, if any: because a page awaits a frame, or ahead of that.
    pub(super) fn next_eviction(&mut self) -> Option<FrameId> {
        loop {
            let need = self.need_of_frames()?;
            let victim = self.find_victim(need);
            // One that is on offer is evicted when that is answered. Who waits for a frame gets another one.
            if !victim.is_some_and(|frame| self.offer(frame)) {
                return victim;
            }
            // They may be about the next victim.
            if !self.events.is_empty() {
                return None;
            }
        }
    }

    /// How urgently a frame is to be evicted, if one is. Those on offer will be.
    fn need_of_frames(&mut self) -> Option<Need> {
        let cache = &self.protocol.cache;
        let need = if cache.wants_frame() { Need::Now } else { Need::Later };
        let surplus = cache.surplus_frames() + self.guests.on_offer();
        let is_for_pages = need == Need::Now || self.reserve.wants_more(surplus);
        let is_for_blocks = self.block_frames.is_wanted() && surplus == 0;
        let has_come = is_for_pages && self.take_frame_from_blocks();
        // A page that nobody else has is not given up ahead of need before it was offered.
        let is_soon_enough = need == Need::Now || !self.guests.is_offering_all_it_may();
        (!has_come && is_soon_enough && (is_for_pages || is_for_blocks)).then_some(need)
    }

    /// Looks for a frame to evict, where some pages stay. A page in use is unpinned soon; one that the client has pinned may never be.
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
        // All are held or in use: perhaps by pages that another home sends when this one has served it.
        if need == Need::Now && victim.is_none() && cache.fetches_for_others() {
            self.events.push_back(Event::NoVictim);
        }
        self.work.extend(self.frames.passed_mapped().map(|(page, frame)| Work::UnmapUnused { page, frame }));
        let asked_back: Vec<PageId> = self.frames.asked_back().collect();
        asked_back.into_iter().for_each(|page| self.send_asking(page));
        self.clean_ahead(victim);
        victim
    }

    /// Has dirty pages written back that the policy gives up soon: their frames are free at once then. Where nothing is evicted
    /// nothing is written. A page in use is left alone, since it may be written again, and so is the `victim`.
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
                self.events.push_back(Event::WriteBack(page));
            }
        }
    }

    /// Evicts pages of the own segment, or of a file, which will not be needed, unless they are in use.
    pub fn discard(&mut self, space: Space, pages: &RangeInclusive<u32>) {
        // A page may be about to be written behind, and cannot be evicted then.
        self.handle_events();
        for (page, frame) in self.own_copies(space, pages) {
            let in_use = self.space.own.table.is_pinned(frame);
            if !in_use && self.protocol.cache.evictable(frame) && !self.files.stays(page) {
                self.handle(Event::Evict(frame));
            }
        }
    }

    /// Evicts every page that nobody uses just now, and every block of the file, and has the homes know. Returns whether none is left,
    /// and nothing is on its way to the pool.
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

    /// Writes dirty pages of the own segment, or of a file, back and keeps them: they will hardly be written.
    pub fn clean(&mut self, space: Space, pages: &RangeInclusive<u32>) {
        for (page, _) in self.own_copies(space, pages) {
            self.handle(Event::WriteBack(page));
        }
    }

    /// The pages of a range of a space that are in the own pool.
    fn own_copies(&self, space: Space, pages: &RangeInclusive<u32>) -> Vec<(PageId, FrameId)> {
        let [first, last] = [pages.start(), pages.end()].map(|index| PageId { space, index: *index });
        self.protocol.cache.copies_among(first..=last).collect()
    }
}

/// The page that may be evicted after an event, and was open but could not be evicted before: it was being sent, or written
/// back.
pub(super) fn page_released_by(event: &Event) -> Option<PageId> {
    match event {
        Event::Transferred(outgoing) => Some(outgoing.page),
        Event::Message { message, .. } => {
            matches!(message.body, CoherenceBody::Cache(ToCache::Evicted { .. })).then_some(message.page)
        }
        _ => None,
    }
}

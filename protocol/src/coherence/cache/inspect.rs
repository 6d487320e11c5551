//! What drivers and tests may ask a cache.

use super::super::{Access, CopyVersion, FrameId, PageId};
use super::Cache;
use super::page::{AccessState, Phase};
use alloc::vec::Vec;
use core::ops::RangeInclusive;

impl Cache {
    /// Whether the page is in a frame, on its way to one, or waits for one.
    pub fn contains(&self, page: PageId) -> bool {
        self.pages.contains(page)
    }

    /// Whether no page is in a frame, on its way to one, or waits for one.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// How many frames the pool has; at least 1.
    pub fn frames(&self) -> u32 {
        self.pages.frames()
    }

    /// Whether some page waits for a frame that no eviction under way will give it.
    pub fn wants_frame(&self) -> bool {
        self.awaiting() > self.evictions
    }

    /// How many frames are free or being evicted, beyond those that pages wait for.
    pub fn frames_coming_free(&self) -> u32 {
        (self.free.len() as u32 + self.evictions).saturating_sub(self.awaiting())
    }

    /// How many pages for which operations wait have no frame yet.
    pub fn starving(&self) -> usize {
        self.awaiting_frame.len()
    }

    /// Whether the home of a page has not been told yet that it was evicted here. [`Event::Tell`](super::super::Event::Tell) tells it.
    pub fn has_notice(&self, page: PageId) -> bool {
        self.notices.has(self.spaces.home(page), page)
    }

    /// Of how many pages the homes have not been told that they were evicted here: at most [`Cache::notices_max`].
    pub fn notices(&self) -> usize {
        self.notices.len()
    }

    /// The most that [`Cache::notices`] may be between two events.
    pub fn notices_max(&self) -> usize {
        self.notices.waiting_max() as usize
    }

    /// Whether some page waits for a frame with which this rank's home is to serve other ranks. If no frame can be freed,
    /// [`Event::NoVictim`](super::super::Event::NoVictim) has to say so.
    pub fn fetches_for_others(&self) -> bool {
        !self.for_others.is_empty()
    }

    /// How many pages wait for a frame.
    fn awaiting(&self) -> u32 {
        (self.awaiting_frame.len() + self.awaiting_ahead.len()) as u32
    }

    /// Whether [`Event::Evict`](super::super::Event::Evict) may name this frame.
    pub fn evictable(&self, frame: FrameId) -> bool {
        self.pages.in_frame(frame).is_some_and(|cached| cached.is_evictable())
    }

    /// Whether the copy of a page here is being given up: to a writer, or because one is about to write.
    pub fn is_leaving(&self, page: PageId) -> bool {
        self.pages.get(page).is_some_and(|cached| cached.is_leaving())
    }

    /// The page that a frame holds, or that is on its way to the frame.
    pub fn page_in(&self, frame: FrameId) -> Option<PageId> {
        self.pages.page_in(frame)
    }

    /// The frame that a page is in, or that it is on its way to.
    pub fn frame_of(&self, page: PageId) -> Option<FrameId> {
        self.pages.frame_of(page)
    }

    /// Whether every write-back is done that an [`Event::Flush`](super::super::Event::Flush), an
    /// [`Event::WriteBack`](super::super::Event::WriteBack) or a home's recall asked for.
    pub fn flushed(&self) -> bool {
        self.flushes == 0
    }

    /// How many write-backs [`Cache::flushed`] waits for.
    pub fn write_backs(&self) -> u32 {
        self.flushes
    }

    /// The pages with a write-back that [`Cache::flushed`] waits for.
    pub fn unflushed(&self) -> impl Iterator<Item = PageId> + '_ {
        self.pages.moving().filter(|(_, cached)| cached.deferred.flush.is_some()).map(|(page, _)| page)
    }

    /// Whether nothing is under way or waiting.
    pub fn is_quiet(&self) -> bool {
        self.awaiting() == 0
            && self.relays.is_empty()
            && self.pages.moving().all(|(_, cached)| {
                matches!((cached.phase, cached.access_state), (Phase::Shared | Phase::Owned, AccessState::Open(_)))
                    && !cached.flushing
            })
    }

    /// The pages with a copy that operations here may use, now or once its deferred actions are done: the page, its
    /// frame, and the most that they may do.
    pub fn copies(&self) -> impl Iterator<Item = (PageId, FrameId, Access)> + '_ {
        let usable = self.pages.iter().filter(|(_, cached)| cached.phase.has_copy() && cached.phase != Phase::Evicting);
        usable.map(|(page, cached)| (page, cached.frame(), cached.access()))
    }

    /// The pages of [`Cache::copies`] from one page to another.
    pub fn copies_among(&self, pages: RangeInclusive<PageId>) -> impl Iterator<Item = (PageId, FrameId)> + '_ {
        let (first, last) = pages.into_inner();
        let known = self.pages.from(first).take_while(move |(page, _)| *page <= last);
        let usable = known.filter(|(_, cached)| cached.phase.has_copy() && cached.phase != Phase::Evicting);
        usable.map(|(page, cached)| (page, cached.frame()))
    }

    /// Whether an [`Event::Overwrite`](super::super::Event::Overwrite) of the page needs none of its bytes: it is not here, nor
    /// on its way. Else that is the same as a wish to write.
    pub fn may_overwrite(&self, page: PageId) -> bool {
        let known = self.pages.get(page);
        known.is_none_or(|cached| cached.phase == Phase::AwaitingFrame && cached.overwriter.is_none())
    }

    /// The frame of `page`, if this rank accounts for its bytes.
    pub fn dirty_frame(&self, page: PageId) -> Option<FrameId> {
        self.pages.get(page).filter(|cached| cached.dirty && cached.phase.has_copy()).and_then(|cached| cached.frame)
    }

    /// Every version that this cache remembers, with its page; the exploration renumbers them.
    pub fn versions_mut(&mut self) -> Vec<(PageId, &mut CopyVersion)> {
        let mut versions: Vec<_> = self.notices.iter_mut().collect();
        versions.extend(self.for_others.iter_mut().map(|(page, version)| (*page, version)));
        versions.extend(self.relays.iter_mut().map(|relay| (relay.page, &mut relay.version)));
        let (at_rest, moving) = self.pages.all_mut();
        versions.extend(at_rest);
        for (page, cached) in moving {
            let deferred = &mut cached.deferred;
            let forwards =
                deferred.serve_writer.iter_mut().chain(&mut deferred.serve_readers).map(|forward| &mut forward.version);
            let invalidation = deferred.invalidate.iter_mut().map(|asked| &mut asked.version);
            let all = forwards.chain(invalidation).chain([&mut cached.copy]);
            versions.extend(all.map(|version| (page, version)));
        }
        versions
    }
}

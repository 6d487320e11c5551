//! Queries of drivers and tests to a cache.

use super::super::{Access, CopyVersion, FrameId, PageId};
use super::Cache;
use super::page::{AccessState, Phase};
use alloc::vec::Vec;
use core::ops::RangeInclusive;

impl Cache {
    /// Whether the page has a frame, is being fetched, or awaits a frame.
    pub fn contains(&self, page: PageId) -> bool {
        self.pages.contains(page)
    }

    /// Whether no page has a frame, is being fetched, or awaits a frame.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Number of frames in the pool; at least 1.
    pub fn frames(&self) -> u32 {
        self.pages.frames()
    }

    /// Whether some page awaits a frame and no eviction in flight will free one for it.
    pub fn wants_frame(&self) -> bool {
        self.awaiting() > self.evictions
    }

    /// Number of frames free or being evicted, beyond the number of pages awaiting one.
    pub fn surplus_frames(&self) -> u32 {
        debug_assert!(self.free.len() as u32 + self.evictions <= self.frames(), "a page that leaves has its frame");
        (self.free.len() as u32 + self.evictions).saturating_sub(self.awaiting())
    }

    /// Number of pages with waiting operations and no frame yet.
    pub fn starving(&self) -> usize {
        self.awaiting_frame.len()
    }

    /// Whether the home of `page` has yet to learn of its eviction here. [`Event::Tell`](super::super::Event::Tell)
    /// sends the notice.
    pub fn has_notice(&self, page: PageId) -> bool {
        self.notices.has(self.spaces.home(page), page)
    }

    /// Number of evictions whose homes have yet to be notified: at most [`Cache::notices_max`].
    pub fn notices(&self) -> usize {
        self.notices.len()
    }

    /// Upper bound of [`Cache::notices`] between two events.
    pub fn notices_max(&self) -> usize {
        self.notices.waiting_max() as usize
    }

    /// Whether some page awaits a frame in order to serve other ranks of this home. If no frame can be freed, the
    /// driver must send [`Event::NoVictim`](super::super::Event::NoVictim).
    pub fn fetches_for_others(&self) -> bool {
        !self.for_others.is_empty()
    }

    /// Number of pages awaiting a frame.
    fn awaiting(&self) -> u32 {
        (self.awaiting_frame.len() + self.awaiting_ahead.len()) as u32
    }

    /// Whether [`Event::Evict`](super::super::Event::Evict) may name this frame.
    pub fn evictable(&self, frame: FrameId) -> bool {
        self.pages.in_frame(frame).is_some_and(|cached| cached.is_evictable())
    }

    /// Whether the copy of `page` is being given up, to a writer or because of one.
    pub fn is_leaving(&self, page: PageId) -> bool {
        self.pages.get(page).is_some_and(|cached| cached.is_leaving())
    }

    /// The page in a frame, or being fetched into it.
    pub fn page_in(&self, frame: FrameId) -> Option<PageId> {
        self.pages.page_in(frame)
    }

    /// The frame of a page, resident or being fetched.
    pub fn frame_of(&self, page: PageId) -> Option<FrameId> {
        self.pages.frame_of(page)
    }

    /// Whether every write-back requested by [`Event::Flush`](super::super::Event::Flush),
    /// [`Event::WriteBack`](super::super::Event::WriteBack) or a home's recall is done.
    pub fn flushed(&self) -> bool {
        debug_assert_eq!(self.unflushed().count(), self.flushes as usize, "the write-backs are counted");
        self.flushes == 0
    }

    /// Number of write-backs [`Cache::flushed`] waits for.
    pub fn write_backs(&self) -> u32 {
        self.flushes
    }

    /// The pages whose write-backs [`Cache::flushed`] waits for.
    pub fn unflushed(&self) -> impl Iterator<Item = PageId> + '_ {
        self.pages.transient().filter(|(_, cached)| cached.deferred.flush.is_some()).map(|(page, _)| page)
    }

    /// Whether nothing is in flight or pending.
    pub fn is_quiet(&self) -> bool {
        self.awaiting() == 0
            && self.relays.is_empty()
            && self.pages.transient().all(|(_, cached)| {
                matches!((cached.phase, cached.access_state), (Phase::Shared | Phase::Owned, AccessState::Open(_)))
                    && !cached.flushing
            })
    }

    /// The pages whose copies operations may use, now or after their deferred actions, with frame and maximum access.
    pub fn copies(&self) -> impl Iterator<Item = (PageId, FrameId, Access)> + '_ {
        let usable = self.pages.iter().filter(|(_, cached)| cached.phase.has_copy() && cached.phase != Phase::Evicting);
        usable.map(|(page, cached)| (page, cached.frame(), cached.access()))
    }

    /// The pages of [`Cache::copies`] in a range.
    pub fn copies_among(&self, pages: RangeInclusive<PageId>) -> impl Iterator<Item = (PageId, FrameId)> + '_ {
        let (first, last) = pages.into_inner();
        let known = self.pages.from(first).take_while(move |(page, _)| *page <= last);
        let usable = known.filter(|(_, cached)| cached.phase.has_copy() && cached.phase != Phase::Evicting);
        usable.map(|(page, cached)| (page, cached.frame()))
    }

    /// Whether an [`Event::Overwrite`](super::super::Event::Overwrite) of the page needs none of its bytes: the page is
    /// neither resident nor being fetched. Otherwise the overwrite is handled as a write.
    pub fn may_overwrite(&self, page: PageId) -> bool {
        let known = self.pages.get(page);
        known.is_none_or(|cached| cached.phase == Phase::AwaitingFrame && cached.overwriter.is_none())
    }

    /// The frame of `page`, if this rank accounts for its bytes.
    pub fn dirty_frame(&self, page: PageId) -> Option<FrameId> {
        self.pages.get(page).filter(|cached| cached.dirty && cached.phase.has_copy()).and_then(|cached| cached.frame)
    }

    /// Every version stored in this cache, with its page; the exploration renumbers them.
    pub fn versions_mut(&mut self) -> Vec<(PageId, &mut CopyVersion)> {
        let mut versions: Vec<_> = self.notices.iter_mut().collect();
        versions.extend(self.for_others.iter_mut().map(|(page, version)| (*page, version)));
        versions.extend(self.relays.iter_mut().map(|relay| (relay.page, &mut relay.version)));
        let (stable, transient) = self.pages.all_mut();
        versions.extend(stable);
        for (page, cached) in transient {
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

//! Chooses when to evict and which frame.

use super::Paging;
use vgasnet_protocol::coherence::{Cache, FrameId, PageId};
use vgasnet_protocol::replacement::Need;
use vgasnet_stats::{self as stats, Row};

/// The need of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Pages need a frame, now or soon.
    pub is_for_pages: bool,
    /// Urgency of the next eviction, if a page is to be evicted.
    pub eviction: Option<Need>,
}

impl Paging {
    /// The need of frames for pages and blocks. Pages on offer count as evicted.
    pub fn demand(&self, cache: &Cache) -> Demand {
        let need = if cache.wants_frame() { Need::Now } else { Need::Later };
        let surplus = cache.surplus_frames() + self.guests.on_offer();
        let is_for_pages = need == Need::Now || self.reserve.wants_more(surplus);
        let is_for_blocks = self.block_frames.is_wanted() && surplus == 0;
        // The only copy of a page is not evicted ahead of need before it has been offered.
        let is_soon_enough = need == Need::Now || !self.guests.is_offering_all_it_may();
        let eviction = ((is_for_pages || is_for_blocks) && is_soon_enough).then_some(need);
        Demand { is_for_pages, eviction }
    }

    /// Whether evictions run ahead of need and no frame is free.
    pub fn is_short(&self) -> bool {
        self.reserve.wants_more(0)
    }

    /// The frame to evict, excluding pages that must stay: those pinned by the client, which may never be unpinned, and
    /// those for which `stays` holds.
    pub fn victim(&mut self, need: Need, cache: &Cache, stays: impl Fn(PageId) -> bool) -> Option<FrameId> {
        let (space, pins) = (&self.space, &self.pins);
        let is_kept = |page: PageId| space.is_own(page) && pins.has(page.index) || stays(page);
        let victim = self.frames.victim(need, cache, &is_kept);
        debug_assert!(victim.is_none_or(|frame| cache.evictable(frame)), "{victim:?} can be evicted");
        let victim_page = victim.and_then(|frame| cache.page_in(frame));
        debug_assert!(!victim_page.is_some_and(is_kept), "{victim_page:?} stays");
        victim
    }

    /// The frame of a guest to evict, so that another guest can come. The same pages stay.
    pub(super) fn first_guest(&mut self, cache: &Cache, stays: impl Fn(PageId) -> bool) -> Option<FrameId> {
        let (space, pins) = (&self.space, &self.pins);
        let is_kept = |page: PageId| space.is_own(page) && pins.has(page.index) || stays(page);
        let guest = self.frames.first_guest(cache, &is_kept);
        debug_assert!(guest.is_none_or(|frame| cache.evictable(frame)), "{guest:?} can be evicted");
        guest
    }

    /// As [`Paging::victim`], for the eviction of [`Demand`]. Evictions run ahead from now on if a page has to wait for
    /// this one.
    pub fn next_victim(&mut self, need: Need, cache: &Cache, stays: impl Fn(PageId) -> bool) -> Option<FrameId> {
        let victim = self.victim(need, cache, stays);
        let is_clean = |frame| cache.page_in(frame).is_some_and(|page| cache.dirty_frame(page).is_none());
        if need == Need::Now && !victim.is_some_and(is_clean) {
            self.reserve.on_shortage();
        }
        victim
    }

    /// Mapped frames skipped by searches, as [`vgasnet_memory::Frames::passed_mapped`].
    pub fn passed_mapped(&mut self, are_urgent: bool) -> Option<Box<[(u32, FrameId)]>> {
        self.frames.passed_mapped(are_urgent)
    }

    /// Pages in lent frames that the last search wants back.
    pub fn asked_back(&mut self) -> impl Iterator<Item = PageId> {
        self.frames.asked_back()
    }

    /// Dirty pages due for eviction soon, to be written back so that their frames become free at once. Without
    /// evictions there are none. Pages in use are skipped, since they may be written again, and so is `victim`.
    pub fn clean_ahead(
        &mut self,
        victim: Option<FrameId>,
        cache: &Cache,
        stays: impl Fn(PageId) -> bool,
    ) -> impl Iterator<Item = PageId> {
        let (table, cleaned_ahead) = (&self.space.own.table, &mut self.cleaned_ahead);
        self.frames.will_go().filter_map(move |frame| {
            let is_idle = cache.evictable(frame) && !table.is_pinned(frame);
            let dirty = cache.page_in(frame).filter(|page| cache.dirty_frame(*page).is_some() && !stays(*page));
            let page = dirty.filter(|_| is_idle && victim != Some(frame))?;
            stats::count(Row::CleanedAhead);
            *cleaned_ahead += 1;
            Some(page)
        })
    }

    /// Whether the page in this frame can be evicted now and no thread uses it.
    pub fn is_unused(&self, frame: FrameId, cache: &Cache) -> bool {
        !self.space.own.table.is_pinned(frame) && cache.evictable(frame)
    }
}

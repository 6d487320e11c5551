//! Pages of files in a cache.

use super::super::{Action, FrameId, PageId, Priority};
use super::Cache;
use super::page::CachedPage;
use crate::{Space, Spaces};
use alloc::vec::Vec;

impl Cache {
    pub(in super::super) fn set_spaces(&mut self, spaces: Spaces) {
        self.spaces = spaces;
    }

    pub(in super::super) fn on_flush_space(&mut self, space: Space, actions: &mut Vec<Action>) {
        assert!(space.segment().is_none(), "dirty pages are listed for files only, not for {space:?}");
        let dirty: Vec<PageId> = self.dirty_of_files.range(space.all_pages()).copied().collect();
        dirty.into_iter().for_each(|page| self.on_write_back(page, Priority::Soon, actions));
    }

    /// The pages of a space with a frame, being fetched, or awaiting a frame.
    pub fn pages_of(&self, space: Space) -> impl Iterator<Item = PageId> + '_ {
        let from = self.pages.from(*space.all_pages().start());
        from.map(|(page, _)| page).take_while(move |page| page.space == space)
    }

    /// Number of file pages that are dirty here or about to be.
    pub fn dirty_of_files(&self) -> u32 {
        (self.dirty_of_files.len() + self.pages.pending_dirty()) as u32
    }

    /// Whether a page is dirty here or about to be.
    pub fn will_be_dirty(&self, page: PageId) -> bool {
        self.pages.get(page).is_some_and(|cached| cached.will_be_dirty())
    }

    /// The dirty file pages from `page` on, in order.
    pub fn dirty_from(&self, page: PageId) -> impl Iterator<Item = PageId> + '_ {
        self.dirty_of_files.range(page..).copied()
    }

    /// Whether nothing about the pages of a space is pending that this rank must wait for.
    pub fn is_quiet_about(&self, space: Space) -> bool {
        let is_quiet =
            |cached: &CachedPage| cached.is_evictable() && !cached.flushing && cached.deferred.flush.is_none();
        self.relays.iter().all(|relay| relay.page.space != space)
            && self.pages.transient().filter(|(page, _)| page.space == space).all(|(_, cached)| is_quiet(cached))
    }

    /// Whether no write-back of a page of the space is in flight or pending.
    pub fn is_flushed_of(&self, space: Space) -> bool {
        self.flushed() || self.unflushed().all(|page| page.space != space)
    }

    /// Drops the copy of a file page, dirty or clean, without a message: no rank uses the file any more. The page is
    /// stable and the driver has closed it. Returns its frame, now free.
    pub fn forget_page(&mut self, page: PageId, actions: &mut Vec<Action>) -> FrameId {
        let frame = self.frame_of(page).expect("a stable page has a frame");
        assert!(self.evictable(frame), "{page:?} is stable when its file is closed or cut");
        self.free_frame(page, actions);
        assert!(!self.contains(page), "no operation waits for {page:?}, whose file is closed or cut");
        frame
    }

    pub(in super::super) fn forget_notices_of(&mut self, file: Space) {
        self.notices.forget_space(file);
    }
}

//! Pages fetched without an operation of this rank waiting for them.

use super::super::{Action, PageId, Priority};
use super::Cache;
use super::page::CachedPage;
use alloc::vec::Vec;

impl Cache {
    pub(in super::super) fn on_prefetch(&mut self, page: PageId, actions: &mut Vec<Action>) {
        assert!(self.spaces.has(page), "{page:?} is to be read ahead, and exists");
        if !self.contains(page) {
            self.pages.insert(page, CachedPage { ahead: Some(Priority::Soon), ..CachedPage::default() });
            self.awaiting_ahead.push_back(page);
            self.hand_out_frames(actions);
        }
    }

    /// Another rank is about to give up the page: fetches it into a frame no page waits for, if there is one.
    pub(in super::super) fn on_adopt(&mut self, page: PageId, actions: &mut Vec<Action>) {
        if self.contains(page) {
            return;
        }
        if self.free.is_empty() {
            actions.push(Action::GiveUp(page));
            return;
        }
        self.pages.insert(page, CachedPage { ahead: Some(Priority::Later), ..CachedPage::default() });
        self.fetch_into_free_frame(page, actions);
        debug_assert!(self.frame_of(page).is_some(), "{page:?} has the free frame");
    }
}

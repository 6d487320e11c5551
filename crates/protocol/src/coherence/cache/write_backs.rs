//! Dirty pages written back: for a flush, ahead of need, or recalled by their home.

use super::super::{Action, CopyVersion, PageId, Priority, ToHome, send_home};
use super::Cache;
use super::page::Phase;
use alloc::vec::Vec;
use core::mem;

impl Cache {
    pub(in super::super) fn on_flush(&mut self, actions: &mut Vec<Action>) {
        let dirty: Vec<PageId> = self.pages.iter().filter(|(_, cached)| cached.dirty).map(|(page, _)| page).collect();
        for page in dirty {
            self.on_write_back(page, Priority::Soon, actions);
        }
    }

    pub(in super::super) fn on_write_back(&mut self, page: PageId, priority: Priority, actions: &mut Vec<Action>) {
        let Some(cached) = self.pages.get_mut(page).filter(|cached| cached.dirty) else { return };
        let before = cached.deferred.flush;
        cached.deferred.flush = Some(before.map_or(priority, |before| before.min(priority)));
        if before.is_none() {
            self.flushes += 1;
            debug_assert!(self.flushes <= self.frames(), "a page has one write-back at a time");
            self.write_back(page, actions);
        }
    }

    pub(super) fn on_recall(&mut self, page: PageId, copy: CopyVersion, actions: &mut Vec<Action>) {
        let known = self.pages.get_mut(page).filter(|cached| cached.phase.has_copy() && cached.copy == copy);
        if let Some(cached) = known {
            cached.is_recalled = cached.flushing || cached.phase == Phase::Evicting;
            debug_assert!(cached.dirty || !cached.is_recalled, "{page:?} is being written back, so it is dirty");
            self.on_write_back(page, Priority::Now, actions);
        }
    }

    /// Starts the page's deferred write-back, unless an eviction writes the page back anyway.
    pub(super) fn write_back(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let home = self.spaces.home(page);
        let cached = self.cached(page);
        debug_assert!(cached.dirty, "{page:?} has bytes to be written back");
        match cached.phase {
            Phase::Owned => self.close(page, actions),
            Phase::Shared | Phase::Upgrading if !cached.flushing && cached.deferred.evict.is_none() => {
                cached.flushing = true;
                let priority = cached.deferred.flush.unwrap_or(Priority::Later);
                let evict = ToHome::Evict { frame: cached.frame(), copy: cached.copy, keep: true, priority };
                actions.push(send_home(home, page, evict));
            }
            _ => {}
        }
    }

    /// The page is written back, or this rank no longer accounts for its bytes.
    pub(super) fn mark_clean(&mut self, page: PageId) {
        let cached = self.cached(page);
        (cached.flushing, cached.is_recalled) = (false, false);
        let (was_dirty, flush) = (mem::replace(&mut cached.dirty, false), cached.deferred.flush.take());
        assert!(flush.is_none() || self.flushes > 0, "each write-back that is wanted is counted");
        self.flushes -= u32::from(flush.is_some());
        if was_dirty && page.space.segment().is_none() {
            let was_listed = self.dirty_of_files.remove(&page);
            assert!(was_listed, "{page:?} was dirty, and listed");
        }
    }
}

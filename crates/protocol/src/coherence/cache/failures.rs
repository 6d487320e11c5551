//! Failed I/O of a home.

use super::super::{Access, Action, Cause, CopyVersion, PageId, Priority, send_home};
use super::page::{AccessState, FetchedData, Phase};
use super::{Cache, Refusable};
use alloc::vec::Vec;

impl Cache {
    /// The home could not read the page, or no holder had it, and no operation waited for it at the time of the
    /// request.
    pub(super) fn on_unread(&mut self, page: PageId, actions: &mut Vec<Action>) -> Refusable {
        const UNASKED: Refusable = Err("word that it could not read a page that nobody asked for ahead");
        let Some(cached) = self.pages.get_mut(page) else { return UNASKED };
        if !matches!(cached.phase, Phase::Fetching { access: Access::Read, data: FetchedData::Missing, .. }) {
            return UNASKED;
        }
        debug_assert!(
            !cached.dirty && !cached.is_serving_readers(),
            "{page:?} is being fetched, so there is no copy of it"
        );
        if cached.ahead.is_some() {
            actions.push(Action::GiveUp(page));
            self.free_frame(page, actions);
        } else {
            let request = cached.fetch(cached.frame());
            actions.push(send_home(self.spaces.home(page), page, request));
        }
        Ok(())
    }

    /// The page could not be read: its waiting operations fail. `granted`: a grant was sent, or is in flight.
    pub(super) fn on_unreadable(
        &mut self,
        page: PageId,
        granted: bool,
        cause: Cause,
        actions: &mut Vec<Action>,
    ) -> Refusable {
        const UNASKED: Refusable = Err("word that it could not read a page that nobody asked for");
        let Some(cached) = self.pages.get_mut(page) else { return UNASKED };
        let Phase::Fetching { access, data: data @ FetchedData::Missing, granted: has_grant } = &mut cached.phase
        else {
            return UNASKED;
        };
        if *has_grant && !granted || granted && *access == Access::Read || cached.overwriter.is_some() {
            return UNASKED;
        }
        debug_assert!(!cached.dirty && cached.frame.is_some(), "{page:?} is being fetched into a frame");
        if granted && !*has_grant {
            // The message overtook the grant. The page is finished once the grant arrives.
            *data = FetchedData::Failed(cause);
            return Ok(());
        }
        self.fail(page, cause, actions);
        Ok(())
    }

    /// Gives up an unreadable page and fails its waiting operations.
    pub(super) fn fail(&mut self, page: PageId, cause: Cause, actions: &mut Vec<Action>) {
        let cached = self.cached(page);
        assert!(matches!(cached.phase, Phase::Fetching { .. }), "{page:?} was being fetched when its read failed");
        assert!(cached.overwriter.is_none(), "an operation that overwrites {page:?} needs no read of it");
        let mut waiters = core::mem::take(&mut cached.readers);
        waiters.append(&mut cached.writers);
        actions.push(Action::Fail { page, frame: cached.frame(), waiters, cause });
        self.free_frame(page, actions);
    }

    /// The write-back of a dirty copy failed: the copy stays in its frame.
    pub(super) fn on_unwritten(&mut self, page: PageId, copy: CopyVersion, cause: Cause, actions: &mut Vec<Action>) {
        // A grant may have overtaken this message, which then concerns an older copy; or a writer takes the page.
        let is_it = |phase, flushing| phase == Phase::Evicting || flushing;
        let known = self.pages.get_mut(page).filter(|cached| cached.copy == copy);
        let Some(cached) = known.filter(|cached| is_it(cached.phase, cached.flushing) && cached.dirty) else { return };
        if cached.phase == Phase::Evicting {
            cached.phase = Phase::Shared;
        }
        cached.flushing = false;
        let is_recalled = core::mem::take(&mut cached.is_recalled);
        let has_flush = cached.deferred.flush.is_some();
        assert!(!has_flush || self.flushes > 0, "each write-back that is wanted is counted");
        cached.deferred.flush = None;
        self.flushes -= u32::from(has_flush);
        let (evicted, is_closed) = (cached.deferred.evict.take(), cached.access_state == AccessState::Closed);
        // A writer has overtaken this message and accounts for the bytes.
        debug_assert_ne!(cached.phase, Phase::Evicting, "the copy that was not written stays");
        let is_leaving = cached.is_leaving();
        self.end_eviction(page, evicted);
        if !is_leaving {
            actions.push(Action::Unwritten { page, cause });
        }
        if is_closed {
            self.run_deferred(page, actions);
        }
        if is_recalled {
            // The recall may have overtaken this message; it then needs a write-back of its own.
            self.on_write_back(page, Priority::Now, actions);
        }
    }
}

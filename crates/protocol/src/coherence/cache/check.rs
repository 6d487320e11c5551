//! The invariants of a cache between two events, checked in builds with debug assertions.

use super::super::{Access, PageId};
use super::Cache;
use super::page::{AccessState, CachedPage, FetchedData, Phase};

impl Cache {
    /// The page of the event that ends here, and the counters.
    pub(in super::super) fn check(&self) {
        if let Some((page, cached)) = self.pages.touched() {
            cached.check(page);
            let is_dirty_file = cached.dirty && page.space.segment().is_none();
            debug_assert_eq!(
                self.dirty_of_files.contains(&page),
                is_dirty_file,
                "{page:?} is listed while it is dirty"
            );
            debug_assert_eq!(self.frame_of(page), cached.frame, "{page:?} has the same frame in both tables");
            let is_for_others = self.for_others.contains_key(&page);
            debug_assert!(cached.frame.is_none() || !is_for_others, "{page:?} has a frame, so the home has its answer");
        }
        let (frames, awaiting) = (self.frames(), self.starving() + self.awaiting_ahead.len());
        debug_assert!(self.free.is_empty() || awaiting == 0, "no page awaits a frame while one is free");
        debug_assert!(self.free.len() as u32 + self.evictions <= frames, "a page that leaves still has its frame");
        debug_assert!(self.unhurried.len() <= self.evictions as usize, "only pages that leave can be unhurried");
        debug_assert!(self.flushes <= frames, "a page has one write-back at a time");
        debug_assert!(self.for_others.len() <= awaiting, "pages wanted for others await frames");
    }
}

impl CachedPage {
    fn check(&self, page: PageId) {
        debug_assert_eq!(
            self.frame.is_none(),
            self.phase == Phase::AwaitingFrame,
            "{page:?}: other phases have a frame"
        );
        debug_assert!(self.outgoing == 0 || self.phase.has_copy(), "{page:?}: a copy is sent");
        debug_assert!(!self.is_leaving() || !self.is_serving_readers(), "{page:?} leaves after its readers are served");
        self.check_dirty(page);
        self.check_access(page);
        self.check_waiting(page);
    }

    /// Bytes missing from the file.
    fn check_dirty(&self, page: PageId) {
        debug_assert!(!self.dirty || self.phase.has_copy(), "{page:?}: dirty bytes are in a copy");
        debug_assert!(self.dirty || self.phase != Phase::Owned, "{page:?}: an owner accounts for its bytes");
        debug_assert!(self.dirty || self.deferred.flush.is_none(), "{page:?}: dirty bytes are written back");
        let is_written = self.flushing || self.phase == Phase::Evicting;
        debug_assert!(self.dirty || !is_written, "{page:?}: dirty bytes are being written back");
        debug_assert!(is_written || !self.is_recalled, "{page:?}: a recall is noted while a write-back is in flight");
        let is_shared = matches!(self.phase, Phase::Shared | Phase::Upgrading);
        debug_assert!(is_shared || !self.flushing, "{page:?}: no write while the page is written back");
    }

    /// Whether operations may use the page.
    fn check_access(&self, page: PageId) {
        let (deferred, state) = (&self.deferred, self.access_state);
        if let AccessState::Open(access) = state {
            let is_usable = matches!(self.phase, Phase::Shared | Phase::Upgrading | Phase::Owned);
            debug_assert!(is_usable && access == self.access(), "{page:?} is open for {access:?} in {:?}", self.phase);
            debug_assert!(deferred.evict.is_none(), "{page:?} is open, and stays");
            debug_assert!(self.readers.is_empty(), "{page:?} is open, and nobody waits to read it");
            let is_upgrading = self.phase == Phase::Upgrading;
            debug_assert_eq!(self.writers.is_empty(), !is_upgrading, "{page:?}: writers wait for the grant");
        }
        let is_closed = state == AccessState::Closed;
        debug_assert!(!is_closed || !self.phase.has_copy() || deferred.evict.is_some(), "{page:?} is closed to leave");
        debug_assert!(self.phase != Phase::Evicting || is_closed, "{page:?} leaves once no operation uses it");
        let is_closing = state == AccessState::Closing;
        debug_assert!(is_closing || !self.is_leaving(), "{page:?} is given up once it is closed");
        let waits_for_owner = !deferred.serve_readers.is_empty();
        debug_assert!(is_closing || !waits_for_owner, "{page:?}: readers wait for the page to be closed");
        debug_assert!(self.phase == Phase::Owned || !waits_for_owner, "{page:?}: readers wait for an owner only");
    }

    /// The operations that wait for the page.
    fn check_waiting(&self, page: PageId) {
        let is_coming = matches!(self.phase, Phase::AwaitingFrame | Phase::Fetching { .. });
        let nobody_waits = self.readers.is_empty() && self.writers.is_empty() && self.overwriter.is_none();
        debug_assert!(self.ahead.is_none() || (is_coming && nobody_waits), "{page:?}: nobody waits for a read-ahead");
        let may_overwrite = match self.phase {
            Phase::AwaitingFrame => true,
            Phase::Fetching { access, data, granted } => {
                access == Access::Write && data == FetchedData::Missing && !granted
            }
            _ => false,
        };
        debug_assert!(may_overwrite || self.overwriter.is_none(), "{page:?} is overwritten before all else");
        let is_upgrading = matches!(self.phase, Phase::Upgrading | Phase::Leaving { upgrade: true });
        debug_assert!(!is_upgrading || !self.writers.is_empty(), "{page:?}: a writer waits for the grant");
    }
}

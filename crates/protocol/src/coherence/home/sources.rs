//! The choice of the holder that serves a request.

use super::super::PageId;
use super::Home;
use super::holders::Holder;
use super::readers::Readers;
use crate::Rank;

impl Home {
    /// Pages of files are always cached cooperatively.
    pub(super) fn is_cooperative(&self, page: PageId) -> bool {
        self.cooperative || page.space.segment().is_none()
    }

    /// The holder to serve a read for `requester`: the top one, or without cooperative caching only the home itself.
    fn source(&self, page: PageId, requester: Rank) -> Option<Holder> {
        let entry = self.entry(page);
        let is_cooperative = self.is_cooperative(page);
        let may_serve = |rank| rank != requester && (is_cooperative || rank == self.rank);
        entry.holders.iter().copied().rev().find(|holder| may_serve(holder.rank))
    }

    /// The holder to serve a read, among those serving fewer readers than allowed. A page requested by many ranks thus
    /// spreads as a tree.
    pub(super) fn source_of_read(&self, page: PageId, requester: Rank) -> Option<Holder> {
        let entry = self.entry(page);
        let Some(readers) = entry.readers().filter(|_| self.is_cooperative(page)) else {
            return self.source(page, requester);
        };
        match self.hosts.around(requester) {
            Some(host) => self.source_among_hosts(page, requester, readers, &host),
            None => self.free_holder(page, requester, readers),
        }
    }

    /// The topmost holder serving fewer readers of the page than allowed.
    pub(super) fn free_holder(&self, page: PageId, requester: Rank, readers: &Readers) -> Option<Holder> {
        let entry = self.entry(page);
        // Some holders may be serving a reader without a copy; the queue is reconsidered when their Nack arrives.
        let others = entry.holders.len() - usize::from(entry.holder(requester).is_some());
        if readers.len() >= others.saturating_mul(self.readers_each) {
            return None;
        }
        // The holder asked first is the topmost of the serving ones. If it finishes first, this search is short.
        let may_serve = |holder: &Holder| holder.rank != requester && readers.served_by(holder) < self.readers_each;
        let free = entry.holders.iter().copied().rev().find(may_serve);
        debug_assert!(free.is_some(), "{page:?} has fewer readers than its holders may serve");
        free
    }

    /// The holder to serve a write: preferably the dirty owner, because it cannot have dropped its copy unasked.
    pub(super) fn source_of_write(&self, page: PageId, requester: Rank) -> Option<Holder> {
        let entry = self.entry(page);
        debug_assert_ne!(entry.dirty_owner, Some(requester), "a dirty owner that writes {page:?} has a copy");
        entry.dirty_owner.map_or_else(|| self.source(page, requester), |owner| entry.holder(owner))
    }
}

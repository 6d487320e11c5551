//! Recalls: pages to be written back wherever their newest bytes are, because a rank that wrote them flushes their
//! file. A recall takes its turn among the requests about its page, so ranks contending for the page cannot starve it.

use super::super::{Action, Cause, FrameId, PageId, Priority, ToCache, send_cache};
use super::Home;
use super::entry::{Entry, Transaction};
use super::request::{Request, RequestKind};
use crate::{Rank, Space, Violation};
use alloc::vec::Vec;

impl Home {
    /// The pages of a file whose newest bytes are missing from the file, or may be soon, unordered.
    pub fn dirty_pages_of(&self, file: Space) -> impl Iterator<Item = PageId> + '_ {
        let is_dirty = |entry: &Entry| entry.dirty_owner.is_some() || entry.is_writing();
        let transient = self.entries.transient_of(file).filter(move |(_, entry)| is_dirty(entry));
        self.entries.stable_dirty(file).chain(transient.map(|(page, _)| page))
    }

    /// Recalls a page, after earlier requests about it.
    pub(in super::super) fn on_recall(&mut self, page: PageId, actions: &mut Vec<Action>) -> Result<(), Violation> {
        self.ask_itself(page, RequestKind::Recall, Priority::Soon, actions)
    }

    /// Queues a request of the home itself, after earlier ones about the page.
    pub(super) fn ask_itself(
        &mut self,
        page: PageId,
        kind: RequestKind,
        priority: Priority,
        actions: &mut Vec<Action>,
    ) -> Result<(), Violation> {
        let own = self.rank;
        let request = Request { from: own, frame: FrameId(0), kind, priority };
        let taken = self.entries.open(page).ask(page, request, actions);
        taken.map_err(|what| Violation::about(page, own, what))?;
        self.start_waiting(page, actions)
    }

    /// Starts a recall at its turn. It ends at once if the file has the page by now.
    pub(super) fn start_recall(
        &mut self,
        page: PageId,
        request: Request,
        actions: &mut Vec<Action>,
    ) -> Result<(), Violation> {
        debug_assert_eq!(request.kind, RequestKind::Recall, "{page:?} is recalled");
        match self.dirty_owner(page) {
            Some(owner) => self.recall_from(owner, page, request, actions),
            None => {
                actions.push(Action::Recalled { page, cause: None });
                Ok(())
            }
        }
    }

    /// Makes the dirty owner write back before `request` proceeds; it is then at the front of the queue.
    pub(super) fn recall_from(
        &mut self,
        owner: Rank,
        page: PageId,
        request: Request,
        actions: &mut Vec<Action>,
    ) -> Result<(), Violation> {
        debug_assert!(self.entry(page).io.is_none(), "{page:?} is recalled before its request starts");
        let entry = self.entry_mut(page);
        entry.waiting.push_front(request);
        let is_eviction =
            |request: &Request| request.from == owner && matches!(request.kind, RequestKind::Evict { .. });
        if let Some(at) = entry.waiting.iter().position(is_eviction) {
            let eviction = entry.waiting.remove(at).expect("it was just found");
            return self.start(page, eviction, actions);
        }
        let copy = entry.holder(owner).expect("a dirty owner is a holder").copy;
        entry.transaction = Transaction::Recall;
        actions.push(send_cache(owner, page, ToCache::Recall { copy }));
        Ok(())
    }
}

impl Entry {
    /// The write-back failed: every recall of the page fails too.
    pub(super) fn end_recalls(&mut self, page: PageId, cause: Cause, actions: &mut Vec<Action>) {
        let before = self.waiting.len();
        self.waiting.retain(|request| request.kind != RequestKind::Recall);
        let ended = before - self.waiting.len();
        debug_assert!(self.dirty_owner.is_some(), "{page:?} was not written, so its dirty owner keeps the bytes");
        actions.extend((0..ended).map(|_| Action::Recalled { page, cause: Some(cause) }));
    }
}

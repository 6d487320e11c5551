//! Pages fetched and kept by the home's own cache when another rank reads them.

use super::super::{Action, PageId, ToCache, send_cache};
use super::Home;
use super::entry::Transaction;
use super::request::{Request, RequestKind};
use crate::Violation;
use alloc::vec::Vec;

impl Home {
    /// Makes this rank keep a copy of the segment pages it reads from its file for others.
    pub(in super::super) fn keeping(self) -> Home {
        Home { keeps: true, ..self }
    }

    /// Without cooperative caching, or where this rank keeps copies and the page has no holder, bytes of the file reach
    /// another rank through this rank's own cache, which keeps a copy. Returns whether `request` must wait for that; it
    /// is then at the front of the queue.
    ///
    /// The cache may decline, or give the page up before the request is served. The file is then read for the
    /// requester: a request is deferred once.
    pub(super) fn fetch_at_home(
        &mut self,
        page: PageId,
        request: Request,
        actions: &mut Vec<Action>,
    ) -> Result<bool, Violation> {
        let has_own = self.entry(page).holder(self.rank).is_some();
        let keeps = self.keeps && page.space.segment().is_some() && self.entry(page).holders.len() == 0;
        if self.is_cooperative(page) && !keeps || request.from == self.rank || has_own || !self.is_written(page) {
            return Ok(false);
        }
        let version = self.next_version();
        debug_assert_eq!(
            self.entry(page).transaction,
            Transaction::Idle,
            "{page:?} is fetched before its request starts"
        );
        let own = self.rank;
        let entry = self.entry_mut(page);
        let priority = entry.priority_with(&request);
        entry.waiting.push_front(Request { kind: RequestKind::Read { tried_home: true }, ..request });
        let is_use = |kind| !matches!(kind, RequestKind::Evict { .. } | RequestKind::Recall | RequestKind::Dismiss);
        let is_own = |request: &Request| request.from == own && is_use(request.kind);
        if let Some(at) = entry.waiting.iter().position(is_own) {
            let request = entry.waiting.remove(at).expect("it was just found");
            self.start(page, request, actions)?;
        } else {
            entry.transaction = Transaction::AtHome { version };
            actions.push(send_cache(own, page, ToCache::Fetch { version, priority }));
        }
        Ok(true)
    }
}

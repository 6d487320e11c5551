//! I/O that has failed: nothing is lost, and who has asked is told. A file answers errors so; where a segment's backing file fails
//! while somebody waits, the job ends before the protocol hears of it.

use super::super::{Action, Cause, PageId, Priority, ToCache, send_cache};
use super::Home;
use super::entry::{Transaction, WriteData};
use crate::Nonsense;
use alloc::vec::Vec;
use core::mem;

impl Home {
    /// [`Action::Load`] has failed. Of a page that nobody waits for the requester is told, and nothing has happened. Else its
    /// operations fail.
    pub(in super::super) fn on_load_failed(
        &mut self,
        page: PageId,
        cause: Cause,
        actions: &mut Vec<Action>,
    ) -> Result<(), Nonsense> {
        let entry = self.entry_mut(page);
        let is_ahead = entry.io.take().is_some_and(|priority| priority != Priority::Now);
        match &mut entry.transaction {
            Transaction::First { requester, loading: true, .. } => {
                let failed = if is_ahead { ToCache::Unread } else { ToCache::Unreadable { granted: false, cause } };
                actions.push(send_cache(*requester, page, failed));
                entry.transaction = Transaction::Idle;
            }
            Transaction::Write(write) => {
                assert_eq!(write.data, WriteData::Loading);
                write.data = WriteData::Failed(cause);
                self.end_failed_write(page, actions);
            }
            other => panic!("a load failed in {other:?}"),
        }
        self.start_waiting(page, actions)
    }

    /// Ends a write whose page could not be read, once no other copy is left. Then nobody holds the page.
    pub(super) fn end_failed_write(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let entry = self.entry_mut(page);
        let Transaction::Write(write) = &entry.transaction else { return };
        let WriteData::Failed(cause) = write.data else { return };
        if write.acknowledgements > 0 {
            return;
        }
        actions.push(send_cache(write.requester, page, ToCache::Unreadable { granted: write.granted, cause }));
        entry.transaction = Transaction::Idle;
        entry.holders = Default::default();
    }

    /// [`Action::Store`] has failed: the dirty owner keeps its copy, and accounts for the bytes as before.
    pub(in super::super) fn on_store_failed(
        &mut self,
        page: PageId,
        cause: Cause,
        actions: &mut Vec<Action>,
    ) -> Result<(), Nonsense> {
        let entry = self.entry_mut(page);
        let Transaction::WriteBack { from, copy, .. } = mem::take(&mut entry.transaction) else {
            panic!("a store failed outside a write-back");
        };
        entry.io = None;
        actions.push(send_cache(from, page, ToCache::Unwritten { copy, cause }));
        self.start_waiting(page, actions)
    }
}

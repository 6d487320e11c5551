//! Failed I/O: nothing is lost, and the requester is told. Errors of files reach the caller; if a segment's backing
//! file fails while an operation waits, the job ends before the protocol sees it.

use super::super::{Action, Cause, PageId, ToCache, send_cache};
use super::Home;
use super::entry::{Transaction, WriteData};
use crate::Violation;
use alloc::vec::Vec;
use core::mem;

impl Home {
    /// [`Action::Load`] has failed. With a cause, the waiting operations fail. Without one, no operation waited: the
    /// requester is told and the state is unchanged.
    pub(in super::super) fn on_load_failed(
        &mut self,
        page: PageId,
        cause: Option<Cause>,
        actions: &mut Vec<Action>,
    ) -> Result<(), Violation> {
        let entry = self.entry_mut(page);
        assert!(entry.io.is_some(), "{page:?} was being read");
        entry.io = None;
        match (&mut entry.transaction, cause) {
            (Transaction::First { requester, loading: true, .. }, _) => {
                let unreadable = |cause| ToCache::Unreadable { granted: false, cause };
                actions.push(send_cache(*requester, page, cause.map_or(ToCache::Unread, unreadable)));
                entry.transaction = Transaction::Idle;
            }
            (Transaction::Write(write), Some(cause)) => {
                assert_eq!(write.data, WriteData::Loading);
                write.data = WriteData::Failed(cause);
                self.end_failed_write(page, actions);
            }
            (other, _) => panic!("a load failed in {other:?}"),
        }
        self.start_waiting(page, actions)
    }

    /// Ends a write of an unreadable page once no other copy is left. The page then has no holder.
    pub(super) fn end_failed_write(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let entry = self.entry_mut(page);
        let Transaction::Write(write) = &entry.transaction else { return };
        let WriteData::Failed(cause) = write.data else { return };
        if write.acknowledgements > 0 {
            return;
        }
        actions.push(send_cache(write.requester, page, ToCache::Unreadable { granted: write.granted, cause }));
        assert!(entry.dirty_owner.is_none(), "the newest bytes of {page:?} are not in a pool");
        entry.transaction = Transaction::Idle;
        entry.holders = Default::default();
    }

    /// [`Action::Store`] has failed: the dirty owner keeps its copy and still accounts for its bytes.
    pub(in super::super) fn on_store_failed(
        &mut self,
        page: PageId,
        cause: Cause,
        actions: &mut Vec<Action>,
    ) -> Result<(), Violation> {
        let entry = self.entry_mut(page);
        let Transaction::WriteBack { from, copy, .. } = mem::take(&mut entry.transaction) else {
            panic!("a store failed outside a write-back");
        };
        assert_eq!(entry.dirty_owner, Some(from), "{from:?} still accounts for the bytes of {page:?}");
        assert!(entry.io.is_some(), "{page:?} was being written");
        entry.io = None;
        actions.push(send_cache(from, page, ToCache::Unwritten { copy, cause }));
        entry.end_recalls(page, cause, actions);
        self.start_waiting(page, actions)
    }
}

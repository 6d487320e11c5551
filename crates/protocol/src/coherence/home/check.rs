//! The invariants of a page's entry between two events, checked in builds with debug assertions.

use super::super::PageId;
use super::entry::{Entry, Transaction, Write, WriteData};
use super::holders::Holder;

impl Entry {
    /// The fields agree with the transaction.
    pub fn check(&self, page: PageId) {
        let is_holder = self.dirty_owner.is_none_or(|owner| self.holder(owner).is_some());
        debug_assert!(is_holder, "the dirty owner of {page:?} holds it");
        let has_io = match &self.transaction {
            Transaction::First { loading, .. } => *loading,
            Transaction::Write(write) => write.data == WriteData::Loading,
            Transaction::WriteBack { .. } => true,
            _ => false,
        };
        debug_assert_eq!(self.io.is_some(), has_io, "{page:?}: the I/O in flight is the transaction's");
        match &self.transaction {
            Transaction::Idle => debug_assert!(self.waiting.is_empty(), "{page:?}: a request starts once it may"),
            Transaction::Reads(readers) => debug_assert!(!readers.is_empty(), "{page:?}: some reader is being served"),
            Transaction::First { .. } => {
                debug_assert!(self.dirty_owner.is_none(), "{page:?}: the file has the newest bytes");
            }
            Transaction::Write(write) => self.check_write(page, write),
            Transaction::WriteBack { from: rank, copy, .. } => {
                debug_assert_eq!(self.dirty_owner, Some(*rank), "{page:?}: the dirty owner writes back");
                let holder = Holder { rank: *rank, copy: *copy };
                debug_assert!(self.holders.contains(&holder), "{page:?}: a copy is written back until that ends");
            }
            Transaction::AtHome { .. } => {
                debug_assert!(!self.waiting.is_empty(), "{page:?}: a request waits for the home's cache");
            }
            Transaction::Dismissal { acknowledgements, .. } => {
                debug_assert!(*acknowledgements > 0, "{page:?}: some guest has yet to give it up");
                debug_assert!(self.dirty_owner.is_none(), "{page:?}: guests account for no bytes");
            }
            Transaction::Recall => {
                debug_assert!(self.dirty_owner.is_some(), "{page:?}: its dirty owner is to write it back");
                debug_assert!(!self.waiting.is_empty(), "{page:?}: a request waits for the write-back");
            }
        }
    }

    fn check_write(&self, page: PageId, write: &Write) {
        debug_assert!(!write.granted || write.acknowledgements == 0, "{page:?} is granted once no other copy is left");
        let is_awaited = write.acknowledgements > 0 || !write.has_data();
        debug_assert!(write.granted || is_awaited, "{page:?}: a write that waits for nothing is granted");
        match write.data {
            WriteData::There => {}
            WriteData::Forwarded { source, with_grant } => {
                debug_assert_ne!(source.rank, write.requester, "{page:?}: a rank does not serve itself");
                debug_assert!(write.granted || !with_grant, "{page:?}: a grant sent with the data is noted");
            }
            WriteData::Loading | WriteData::Failed(_) => {
                debug_assert!(self.dirty_owner.is_none(), "{page:?}: the file has the newest bytes");
            }
        }
    }
}

//! The home's state of one page: holders, current transaction, and queued requests.

use super::super::{Action, Cause, CopyVersion, FrameId, PageId, Priority, ToCache, send_cache};
use super::holders::{Holder, Holders};
use super::readers::{Reader, Readers};
use super::request::Request;
use crate::Rank;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The outcome of a message: the reason for its rejection, in words, if it makes no sense.
pub(super) type Refusable = Result<(), &'static str>;

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Entry {
    pub holders: Holders,
    /// The holder accounting for bytes missing from the backing file: the owner, or the last one. Always one of
    /// `holders`.
    pub dirty_owner: Option<Rank>,
    pub transaction: Transaction,
    /// Priority of the transaction's load or store, while in flight.
    pub io: Option<Priority>,
    /// In the order of arrival.
    pub waiting: VecDeque<Request>,
}

/// The current transaction on a page; the diagram in [`super`] has the transitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Transaction {
    #[default]
    Idle,
    /// Reads being served by holders. Never empty between two events.
    Reads(Readers),
    /// A read of a page without holders.
    First {
        requester: Rank,
        version: CopyVersion,
        /// The backing file is being read.
        loading: bool,
        forgotten: bool,
    },
    Write(Write),
    /// The dirty owner's copy is being written to the backing file.
    WriteBack {
        from: Rank,
        copy: CopyVersion,
        keep: bool,
    },
    /// The home's own cache must request or decline the page before the request at the front of the queue starts.
    AtHome {
        version: CopyVersion,
    },
    /// The ranks keeping the page for others give it up.
    Dismissal {
        version: CopyVersion,
        /// Holders yet to acknowledge.
        acknowledgements: u32,
    },
    /// The dirty owner must write back before the request at the front of the queue starts.
    Recall,
}

/// A rank is being made the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Write {
    pub requester: Rank,
    pub frame: FrameId,
    pub version: CopyVersion,
    /// Holders yet to acknowledge.
    pub acknowledgements: u32,
    pub data: WriteData,
    /// The requester was granted write access, or will be with the data. It is granted once.
    pub granted: bool,
}

/// Source of a write's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum WriteData {
    /// The requester has it, or this home has sent it.
    There,
    /// `source` was told to send it, together with the grant if `with_grant`.
    Forwarded { source: Holder, with_grant: bool },
    /// The backing file is being read.
    Loading,
    /// The read failed. The requester is told when no other copy is left.
    Failed(Cause),
}

impl Entry {
    pub fn holder(&self, rank: Rank) -> Option<Holder> {
        self.holders.of(rank)
    }

    /// Queues a request until it may start.
    pub fn ask(&mut self, page: PageId, request: Request, actions: &mut Vec<Action>) -> Refusable {
        self.waiting.push_back(request);
        self.hurry(page, request.priority, actions);
        debug_assert!(self.io.is_none_or(|io| io <= request.priority), "{page:?}: its I/O is as urgent as {request:?}");
        Ok(())
    }

    /// An operation now waits for a request of `from`.
    pub fn on_hurry(&mut self, page: PageId, from: Rank, actions: &mut Vec<Action>) -> Refusable {
        for request in self.waiting.iter_mut().filter(|request| request.from == from) {
            request.priority = Priority::Now;
        }
        if let Some(readers) = self.readers_mut() {
            readers.aside.iter_mut().filter(|request| request.from == from).for_each(|it| it.priority = Priority::Now);
            if let Some(reader) = readers.of_mut(from) {
                reader.priority = Priority::Now;
            }
        }
        self.hurry(page, Priority::Now, actions);
        debug_assert!(self.io.is_none_or(|io| io == Priority::Now), "{page:?} is wanted now, and so is its I/O");
        Ok(())
    }

    /// The highest priority among a request and all requests queued behind it.
    pub fn priority_with(&self, request: &Request) -> Priority {
        self.waiting.iter().map(|waiting| waiting.priority).fold(request.priority, Priority::min)
    }

    /// Raises the priority of the load or store in flight, if it is lower.
    fn hurry(&mut self, page: PageId, priority: Priority, actions: &mut Vec<Action>) {
        if let Some(io) = self.io.as_mut().filter(|io| **io > priority) {
            *io = priority;
            actions.push(Action::Hurry { page, priority });
        }
    }

    /// Ends a read: the reader becomes the top holder, unless it has already given up its copy.
    fn push_unless(&mut self, forgotten: bool, holder: Holder) {
        if !forgotten {
            assert!(self.holder(holder.rank).is_none(), "{:?} has one copy at most", holder.rank);
            self.holders.push_top(holder);
        }
    }

    /// Removes a holder, if it still has this copy.
    pub fn forget(&mut self, holder: Holder) -> Refusable {
        if self.holders.contains(&holder) {
            if self.dirty_owner == Some(holder.rank) {
                return Err("word that it has no copy of a page whose newest bytes it has");
            }
            self.holders.remove(holder);
            debug_assert!(self.holder(holder.rank).is_none(), "{:?} had one copy", holder.rank);
            debug_assert!(self.dirty_owner.is_none_or(|owner| self.holder(owner).is_some()), "the dirty owner stays");
            if let Transaction::Reads(readers) = &mut self.transaction {
                readers.aside.stir(holder.rank);
            }
        }
        Ok(())
    }

    /// Removes `rank` from the holders: it reports having no copy.
    pub fn forget_rank(&mut self, rank: Rank) -> Refusable {
        self.holder(rank).map_or(Ok(()), |holder| self.forget(holder))
    }

    /// A rank has given up its clean copy, perhaps before its Done made it a holder.
    pub fn on_forget(&mut self, holder: Holder) -> Refusable {
        match &mut self.transaction {
            Transaction::Reads(readers) => {
                if let Some(reader) = readers.of_mut(holder.rank).filter(|reader| reader.version == holder.copy) {
                    reader.forgotten = true;
                }
            }
            Transaction::First { requester, version, forgotten, .. }
                if *requester == holder.rank && *version == holder.copy =>
            {
                *forgotten = true
            }
            _ => {}
        }
        self.forget(holder)
    }

    /// The home's own cache declines to fetch the page. Its order may already be over.
    pub fn on_decline(&mut self, is_from_home: bool, version: CopyVersion) -> Refusable {
        if !is_from_home {
            return Err("word that it does not fetch a page of which it is not the home");
        }
        if self.transaction == (Transaction::AtHome { version }) {
            self.transaction = Transaction::Idle;
        }
        Ok(())
    }

    /// The requester has the page.
    pub fn on_done(&mut self, from: Rank, version: CopyVersion) -> Refusable {
        const UNASKED: Refusable = Err("word that it has a page, and it was not given it");
        let holder = Holder { rank: from, copy: version };
        match &mut self.transaction {
            Transaction::First { requester, version: expected, loading: false, forgotten }
                if *expected == version && *requester == from =>
            {
                let forgotten = *forgotten;
                self.transaction = Transaction::Idle;
                self.push_unless(forgotten, holder);
            }
            Transaction::Write(write)
                if write.version == version
                    && write.requester == from
                    && write.acknowledgements == 0
                    && write.has_data()
                    && write.granted =>
            {
                self.transaction = Transaction::Idle;
                self.holders = Holders::One(holder);
                self.dirty_owner = Some(from);
            }
            _ => {
                let reader = self.take_reader(|readers| readers.take(from, version));
                let Some(reader) = reader else { return UNASKED };
                self.push_unless(reader.forgotten, holder);
            }
        }
        debug_assert!(self.io.is_none(), "{from:?} has the page, so its I/O has ended");
        Ok(())
    }

    /// The readers being served by holders.
    pub fn readers(&self) -> Option<&Readers> {
        if let Transaction::Reads(readers) = &self.transaction { Some(readers) } else { None }
    }

    pub fn readers_mut(&mut self) -> Option<&mut Readers> {
        if let Transaction::Reads(readers) = &mut self.transaction { Some(readers) } else { None }
    }

    /// Takes a reader out of [`Transaction::Reads`]; the transaction ends with the last reader if none was set aside.
    pub fn take_reader(&mut self, take: impl FnOnce(&mut Readers) -> Option<Reader>) -> Option<Reader> {
        let Transaction::Reads(readers) = &mut self.transaction else { return None };
        let reader = take(readers);
        if readers.is_empty() && readers.aside.is_empty() {
            self.transaction = Transaction::Idle;
        }
        reader
    }

    /// Whether a rank is being made the owner.
    pub fn is_writing(&self) -> bool {
        matches!(self.transaction, Transaction::Write(_))
    }

    pub fn is_quiet(&self) -> bool {
        self.transaction == Transaction::Idle && self.waiting.is_empty()
    }
}

impl Write {
    /// Whether the requester has the data, or it is being sent.
    pub fn has_data(&self) -> bool {
        !matches!(self.data, WriteData::Loading | WriteData::Failed(_))
    }

    /// Whether data sent now carries the grant.
    pub fn grant_with_data(&mut self) -> bool {
        let grant = !self.granted && self.acknowledgements == 0;
        self.granted |= grant;
        debug_assert!(!self.granted || self.acknowledgements == 0, "a write is granted once no other copy is left");
        grant
    }

    /// Gets the data from the backing file, or zeros if no rank has written the page. Returns the load's priority, if
    /// there is a load.
    pub fn fetch_from_file(&mut self, page: PageId, is_written: bool, actions: &mut Vec<Action>) -> Option<Priority> {
        assert_ne!(self.data, WriteData::Loading, "{page:?} is read once for a write");
        if is_written {
            self.data = WriteData::Loading;
            let priority = Priority::Now;
            actions.push(Action::Load { page, to: self.requester, frame: self.frame, priority });
            Some(priority)
        } else {
            self.data = WriteData::There;
            let grant = self.grant_with_data();
            actions.push(send_cache(self.requester, page, ToCache::Data { version: self.version, grant, zeros: true }));
            None
        }
    }
}

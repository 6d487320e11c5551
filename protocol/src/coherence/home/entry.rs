//! What a home knows of one page: its holders, the transaction under way, and the requests that wait.

use super::super::{Action, Cause, CopyVersion, FrameId, PageId, Priority, ToCache, send_cache};
use super::holders::Holders;
use super::readers::{Reader, Readers};
use crate::Rank;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The outcome of a message: what is wrong with it, in words, if it makes no sense.
pub(super) type Refusable = Result<(), &'static str>;

/// A rank with a valid copy of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    /// The rank.
    pub rank: Rank,
    /// Its copy.
    pub copy: CopyVersion,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Entry {
    pub holders: Holders,
    /// The holder that accounts for bytes which the backing file lacks: the owner, or the last one. It is always in
    /// `holders`.
    pub dirty_owner: Option<Rank>,
    pub transaction: Transaction,
    /// How urgent the load or store of the transaction is, while that is under way.
    pub io: Option<Priority>,
    /// In the order of arrival.
    pub waiting: VecDeque<Request>,
}

/// What a rank asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Request {
    pub from: Rank,
    /// The frame of `from` with the page, or for it.
    pub frame: FrameId,
    pub kind: RequestKind,
    pub priority: Priority,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum RequestKind {
    /// `tried_home`: the home's own cache was told to fetch the page for it, and is not told again.
    Read {
        tried_home: bool,
    },
    Write {
        copy: Option<CopyVersion>,
    },
    Overwrite,
    /// Of the home itself: the file is to have the page.
    Recall,
    /// Of the home itself: who keeps the page for others is to give it up.
    Dismiss,
    Evict {
        copy: CopyVersion,
        keep: bool,
    },
}

/// What is under way about a page; the diagram in [`super`] has the transitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Transaction {
    #[default]
    Idle,
    /// Reads that holders serve. Between two events never empty.
    Reads(Readers),
    /// A read of a page that nobody holds.
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
    /// Waits until the home's own cache asks for the page, or declines to, before the request at the front of the queue is
    /// taken.
    AtHome {
        version: CopyVersion,
    },
    /// Ranks that keep the page for others give it up.
    Dismissal {
        version: CopyVersion,
        /// Holders that have not acknowledged yet.
        acknowledgements: u32,
    },
    /// Waits for the dirty owner to write back before the request at the front of the queue is taken.
    Recall,
}

/// A rank is being made the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Write {
    pub requester: Rank,
    pub frame: FrameId,
    pub version: CopyVersion,
    /// Holders that have not acknowledged yet.
    pub acknowledgements: u32,
    pub data: WriteData,
    /// The requester was told that it may write, or will be with the data. It is told once.
    pub granted: bool,
}

/// Where the data of a write comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum WriteData {
    /// The requester has it, or this home has sent it.
    There,
    /// `source` was told to send it, together with the grant if `with_grant`.
    Forwarded { source: Holder, with_grant: bool },
    /// The backing file is being read.
    Loading,
    /// It could not be read. The requester is told when no other copy is left.
    Failed(Cause),
}

impl Entry {
    pub fn holder(&self, rank: Rank) -> Option<Holder> {
        self.holders.of(rank)
    }

    /// Takes a request in, which waits until it may start.
    pub fn ask(&mut self, page: PageId, request: Request, actions: &mut Vec<Action>) -> Refusable {
        self.waiting.push_back(request);
        self.hurry(page, request.priority, actions);
        Ok(())
    }

    /// What a rank has asked for is waited for by now.
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
        Ok(())
    }

    /// How urgent a request is with all those that wait behind it.
    pub fn priority_with(&self, request: &Request) -> Priority {
        self.waiting.iter().map(|waiting| waiting.priority).fold(request.priority, Priority::min)
    }

    /// Makes the load or store under way more urgent, if it is not urgent enough.
    fn hurry(&mut self, page: PageId, priority: Priority, actions: &mut Vec<Action>) {
        if let Some(io) = self.io.as_mut().filter(|io| **io > priority) {
            *io = priority;
            actions.push(Action::Hurry { page, priority });
        }
    }

    /// Ends a read: the reader is the new top holder, unless it has given up its copy already.
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
            if let Transaction::Reads(readers) = &mut self.transaction {
                readers.aside.stir(holder.rank);
            }
        }
        Ok(())
    }

    /// Removes `rank` from the holders: it says that it has no copy.
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

    /// The home's own cache does not fetch the page. The order that it was told may be over by now.
    pub fn on_decline(&mut self, is_from_home: bool, version: CopyVersion) -> Refusable {
        if !is_from_home {
            return Err("word that it does not fetch a page of which it is not the home");
        }
        if self.transaction == (Transaction::AtHome { version }) {
            self.transaction = Transaction::Idle;
        }
        Ok(())
    }

    /// The requester has what it asked for.
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
        Ok(())
    }

    /// The readers that holders were told to serve.
    pub fn readers(&self) -> Option<&Readers> {
        if let Transaction::Reads(readers) = &self.transaction { Some(readers) } else { None }
    }

    pub fn readers_mut(&mut self) -> Option<&mut Readers> {
        if let Transaction::Reads(readers) = &mut self.transaction { Some(readers) } else { None }
    }

    /// Takes a reader out of [`Transaction::Reads`], which ends with the last one if none was put aside.
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
    /// Whether the requester has the data, or is being sent it.
    pub fn has_data(&self) -> bool {
        !matches!(self.data, WriteData::Loading | WriteData::Failed(_))
    }

    /// Whether data sent now carries the grant.
    pub fn grant_with_data(&mut self) -> bool {
        let grant = !self.granted && self.acknowledgements == 0;
        self.granted |= grant;
        grant
    }

    /// Gets the data from the backing file; of a page that no rank has written it is zeros. Returns how urgent the load
    /// is, if there is one.
    pub fn fetch_from_file(&mut self, page: PageId, is_written: bool, actions: &mut Vec<Action>) -> Option<Priority> {
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

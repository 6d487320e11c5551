//! The home side: the directory of a rank's own pages, and the transactions under way about them.
//!
//! ```text
//!            Read, a holder serves it            Read, Write or Evict in their turn, nothing under way
//!          ┌──────────────────────┐             ┌─────────────────────────────────────────────────────┐
//!          ▼                      │             │                                                     ▼
//!   Reads(readers) ──last Done──▶ Idle ◀──Done── First │ Write │ ◀──Stored── WriteBack ◀──Evict── Recall
//! ```
//!
//! Requests about a page are taken in the order of arrival. Reads that holders serve go on side by side; everything else
//! has the page to itself, so that the backing file is read once, and so that no reader is missed by an invalidation.

use super::{Access, Action, Body, CopyVersion, Forward, FrameId, Message, PageId, ToCache, ToHome};
use crate::Rank;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::mem;

/// The directory of one rank's pages.
///
/// A page has an entry while some rank holds it or asks for it; of the others the directory knows one bit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Home {
    rank: Rank,
    cooperative: bool,
    written: Bits,
    entries: BTreeMap<u32, Entry>,
    last_version: CopyVersion,
}

/// A rank with a copy, and which copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    /// The rank.
    pub rank: Rank,
    /// Its copy.
    pub copy: CopyVersion,
}

/// What the home knows of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Entry {
    /// A stack: the back is the top.
    holders: VecDeque<Holder>,
    /// The holder that accounts for bytes the backing file lacks: the owner, or the last one. It is always in `holders`.
    dirty_owner: Option<Rank>,
    transaction: Transaction,
    waiting: VecDeque<Request>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Request {
    Read { from: Rank, frame: FrameId },
    Write { from: Rank, frame: FrameId, copy: Option<CopyVersion> },
    Evict { from: Rank, frame: FrameId, copy: CopyVersion, keep: bool },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Transaction {
    #[default]
    Idle,
    /// Reads that holders serve. Never empty.
    Reads(Vec<Reader>),
    /// A read of a page that nobody holds.
    First {
        requester: Rank,
        version: CopyVersion,
        forgotten: bool,
    },
    Write(Write),
    WriteBack {
        from: Rank,
        copy: CopyVersion,
        keep: bool,
    },
    /// Waits for the dirty owner to write back before the request at the front of the queue is taken.
    Recall,
}

/// A read that `source` has been told to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Reader {
    requester: Rank,
    frame: FrameId,
    version: CopyVersion,
    source: Holder,
    /// The requester has given up the copy already; word of that has overtaken its Done.
    forgotten: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Write {
    requester: Rank,
    frame: FrameId,
    version: CopyVersion,
    /// Holders that have not acknowledged yet.
    acknowledgements: u32,
    data: Data,
    /// The requester was told, or will be with the data, that it may write. It is told once.
    granted: bool,
}

/// Where the data of a write comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Data {
    /// The requester has it, or was sent it by this home.
    There,
    /// `source` was told to send it, together with the grant if `with_grant`.
    Forwarded { source: Holder, with_grant: bool },
    /// The backing file is being read.
    Loading,
}

impl Entry {
    fn position(&self, rank: Rank) -> Option<usize> {
        self.holders.iter().position(|holder| holder.rank == rank)
    }

    fn holds(&self, holder: Holder) -> bool {
        self.holders.contains(&holder)
    }

    /// Puts a new holder on top.
    fn push(&mut self, holder: Holder) {
        assert!(self.position(holder.rank).is_none(), "{:?} has one copy at most", holder.rank);
        self.holders.push_back(holder);
    }

    fn push_unless(&mut self, forgotten: bool, holder: Holder) {
        if !forgotten {
            self.push(holder);
        }
    }

    /// Forgets a copy, if it is still that one.
    fn forget(&mut self, holder: Holder) {
        if let Some(at) = self.holders.iter().position(|known| *known == holder) {
            assert_ne!(self.dirty_owner, Some(holder.rank), "a dirty owner leaves only by an eviction");
            self.holders.remove(at);
        }
    }

    /// `holder` has given up its clean copy, perhaps before it is known to have it.
    fn on_forget(&mut self, holder: Holder) {
        match &mut self.transaction {
            Transaction::Reads(readers) => {
                for reader in readers.iter_mut().filter(|reader| reader.version == holder.copy) {
                    reader.forgotten = true;
                }
            }
            Transaction::First { version, forgotten, .. } if *version == holder.copy => *forgotten = true,
            _ => {}
        }
        self.forget(holder);
    }

    /// Forgets whatever copy `rank` had: it says that it has none.
    fn forget_rank(&mut self, rank: Rank) {
        if let Some(at) = self.position(rank) {
            self.forget(self.holders[at]);
        }
    }

    fn is_unused(&self) -> bool {
        self.holders.is_empty() && self.transaction == Transaction::Idle && self.waiting.is_empty()
    }
}

impl Home {
    /// A directory of `pages` pages, none of them written.
    pub fn new(rank: Rank, pages: u32, cooperative: bool) -> Home {
        Home { rank, cooperative, written: Bits::new(pages), entries: BTreeMap::new(), last_version: CopyVersion(0) }
    }

    /// How many pages the directory has.
    pub fn pages(&self) -> u32 {
        self.written.len
    }

    /// The holders of a page, from the bottom of the stack to its top.
    pub fn holders(&self, index: u32) -> impl Iterator<Item = Holder> + '_ {
        self.entries.get(&index).into_iter().flat_map(|entry| entry.holders.iter().copied())
    }

    /// The holder that accounts for bytes which the backing file lacks.
    pub fn dirty_owner(&self, index: u32) -> Option<Rank> {
        self.entries.get(&index).and_then(|entry| entry.dirty_owner)
    }

    /// Whether the backing file has, or had, bytes of the page.
    pub fn is_written(&self, index: u32) -> bool {
        self.written.get(index)
    }

    /// Whether nothing is under way or waiting.
    pub fn is_quiet(&self) -> bool {
        self.entries.values().all(|entry| entry.transaction == Transaction::Idle && entry.waiting.is_empty())
    }

    /// Whether a rank is being made the owner of the page.
    pub fn is_writing(&self, index: u32) -> bool {
        self.entries.get(&index).is_some_and(|entry| matches!(entry.transaction, Transaction::Write(_)))
    }

    /// How many pages have an entry: those that are held, asked for, or both.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Every version this home remembers, for renumbering in the exhaustive exploration.
    pub fn versions_mut(&mut self) -> Vec<&mut CopyVersion> {
        let mut versions = vec![&mut self.last_version];
        for entry in self.entries.values_mut() {
            versions.extend(entry.holders.iter_mut().map(|holder| &mut holder.copy));
            for request in &mut entry.waiting {
                match request {
                    Request::Write { copy: Some(copy), .. } | Request::Evict { copy, .. } => versions.push(copy),
                    Request::Read { .. } | Request::Write { copy: None, .. } => {}
                }
            }
            match &mut entry.transaction {
                Transaction::Idle | Transaction::Recall => {}
                Transaction::Reads(readers) => {
                    versions.extend(readers.iter_mut().flat_map(|r| [&mut r.version, &mut r.source.copy]));
                }
                Transaction::First { version, .. } | Transaction::WriteBack { copy: version, .. } => {
                    versions.push(version)
                }
                Transaction::Write(write) => {
                    versions.push(&mut write.version);
                    if let Data::Forwarded { source, .. } = &mut write.data {
                        versions.push(&mut source.copy);
                    }
                }
            }
        }
        versions
    }

    /// A message about the page `index` of this home.
    pub(super) fn on_message(&mut self, from: Rank, index: u32, body: ToHome, actions: &mut Vec<Action>) {
        assert!(index < self.pages(), "page {index} of a segment of {} pages", self.pages());
        let entry = self.entries.entry(index).or_default();
        match body {
            ToHome::Read { frame } => entry.waiting.push_back(Request::Read { from, frame }),
            ToHome::Write { frame, copy } => entry.waiting.push_back(Request::Write { from, frame, copy }),
            ToHome::Evict { frame, copy, keep } => {
                let request = Request::Evict { from, frame, copy, keep };
                match entry.transaction {
                    Transaction::Recall if entry.dirty_owner == Some(from) => {
                        self.start(index, request, actions);
                    }
                    _ => entry.waiting.push_back(request),
                }
            }
            ToHome::Forget { copy } => entry.on_forget(Holder { rank: from, copy }),
            ToHome::Done { version } => self.on_done(index, from, version),
            ToHome::Nack { version } => self.on_nack(index, version, actions),
            ToHome::Acknowledge { version } => self.on_acknowledge(index, version, actions),
        }
        self.go_on(index, actions);
    }

    /// [`Action::Load`] is carried out: the page is in the requester's frame.
    pub(super) fn on_loaded(&mut self, index: u32, actions: &mut Vec<Action>) {
        let page = self.page(index);
        let entry = self.entries.get_mut(&index).expect("a load belongs to an transaction");
        let (to, version, grant) = match &mut entry.transaction {
            Transaction::First { requester, version, .. } => (*requester, *version, false),
            Transaction::Write(write) => {
                assert_eq!(write.data, Data::Loading);
                write.data = Data::There;
                (write.requester, write.version, write.grant_with_data())
            }
            other => panic!("a load finished in {other:?}"),
        };
        actions.push(send(to, page, ToCache::Data { version, grant, zeros: false }));
    }

    /// [`Action::Store`] is carried out: the backing file has the dirty owner's bytes.
    pub(super) fn on_stored(&mut self, index: u32, actions: &mut Vec<Action>) {
        let page = self.page(index);
        let entry = self.entries.get_mut(&index).expect("a store belongs to an transaction");
        let Transaction::WriteBack { from, copy, keep } = mem::take(&mut entry.transaction) else {
            panic!("a store finished outside a write-back");
        };
        self.written.set(index);
        entry.dirty_owner = None;
        if !keep {
            entry.forget(Holder { rank: from, copy });
        }
        actions.push(send(from, page, ToCache::Evicted { copy }));
        self.go_on(index, actions);
    }

    /// The requester has what it asked for.
    fn on_done(&mut self, index: u32, from: Rank, version: CopyVersion) {
        let entry = self.entry_mut(index);
        let holder = Holder { rank: from, copy: version };
        match &mut entry.transaction {
            Transaction::Reads(readers) => {
                let at = readers.iter().position(|reader| reader.version == version).expect("a reader is done once");
                let forgotten = readers.remove(at).forgotten;
                if readers.is_empty() {
                    entry.transaction = Transaction::Idle;
                }
                entry.push_unless(forgotten, holder);
            }
            Transaction::First { version: expected, forgotten, .. } => {
                assert_eq!(*expected, version);
                let forgotten = *forgotten;
                entry.transaction = Transaction::Idle;
                entry.push_unless(forgotten, holder);
            }
            Transaction::Write(write) => {
                assert!(write.version == version && write.acknowledgements == 0 && write.granted);
                entry.transaction = Transaction::Idle;
                entry.holders.clear();
                entry.holders.push_back(holder);
                entry.dirty_owner = Some(from);
            }
            other => panic!("{from:?} is done with {version:?} in {other:?}"),
        }
    }

    /// A holder was asked to serve `version` and has nothing: forget it and look again.
    fn on_nack(&mut self, index: u32, version: CopyVersion, actions: &mut Vec<Action>) {
        let page = self.page(index);
        let is_written = self.is_written(index);
        let entry = self.entry_mut(index);
        match &mut entry.transaction {
            Transaction::Reads(readers) => {
                let at = readers.iter().position(|reader| reader.version == version).expect("a refused read is open");
                let Reader { requester, frame, source, .. } = readers.remove(at);
                if readers.is_empty() {
                    entry.transaction = Transaction::Idle;
                }
                entry.forget(source);
                entry.waiting.push_front(Request::Read { from: requester, frame });
            }
            Transaction::Write(write) => {
                let Data::Forwarded { source, with_grant } = write.data else {
                    panic!("nobody was asked for {version:?}")
                };
                // The other holders are being invalidated, so the file is where the data is left.
                write.granted &= !with_grant;
                write.fetch_from_file(page, is_written, actions);
                entry.forget(source);
            }
            other => panic!("{version:?} refused in {other:?}"),
        }
    }

    fn on_acknowledge(&mut self, index: u32, version: CopyVersion, actions: &mut Vec<Action>) {
        let page = self.page(index);
        let Transaction::Write(write) = &mut self.entry_mut(index).transaction else {
            panic!("{version:?} was acknowledged outside a write");
        };
        assert!(write.version == version && write.acknowledgements > 0);
        write.acknowledgements -= 1;
        if write.acknowledgements == 0 && !write.granted && write.data != Data::Loading {
            write.granted = true;
            actions.push(send(write.requester, page, ToCache::Grant { version }));
        }
    }

    /// Takes requests from the queue as long as the first one may start.
    fn go_on(&mut self, index: u32, actions: &mut Vec<Action>) {
        while let Some(entry) = self.entries.get_mut(&index) {
            let Some(request) = entry.waiting.front().copied() else { break };
            if !self.may_start(index, request) {
                break;
            }
            self.entry_mut(index).waiting.pop_front();
            self.start(index, request, actions);
        }
        if self.entries.get(&index).is_some_and(Entry::is_unused) {
            self.entries.remove(&index);
        }
    }

    fn may_start(&self, index: u32, request: Request) -> bool {
        let entry = &self.entries[&index];
        match (&entry.transaction, request) {
            (Transaction::Idle, _) => true,
            // A requester that reads again before its Done came in has to wait for it.
            (Transaction::Reads(readers), Request::Read { from, .. }) => {
                readers.iter().all(|reader| reader.requester != from) && self.source(entry, from).is_some()
            }
            _ => false,
        }
    }

    fn start(&mut self, index: u32, request: Request, actions: &mut Vec<Action>) {
        match request {
            Request::Read { from, frame } => self.start_read(index, from, frame, actions),
            Request::Write { from, frame, copy } => self.start_write(index, from, frame, copy, actions),
            Request::Evict { from, frame, copy, keep } => self.start_evict(index, from, frame, copy, keep, actions),
        }
    }

    fn start_read(&mut self, index: u32, from: Rank, frame: FrameId, actions: &mut Vec<Action>) {
        let page = self.page(index);
        self.entry_mut(index).forget_rank(from);
        let request = Request::Read { from, frame };
        if self.recall(index, from, request, actions) {
            return;
        }
        let version = self.next_version();
        let source = self.source(&self.entries[&index], from);
        let is_written = self.is_written(index);
        let entry = self.entry_mut(index);
        if let Some(at) = source {
            let source = entry.holders.remove(at).expect("the source is a holder");
            entry.holders.push_front(source);
            let reader = Reader { requester: from, frame, version, source, forgotten: false };
            match &mut entry.transaction {
                Transaction::Reads(readers) => readers.push(reader),
                other => *other = Transaction::Reads(vec![reader]),
            }
            let forward = Forward { version, to: from, frame, access: Access::Read, grant: false };
            actions.push(send(source.rank, page, ToCache::Forward(forward)));
        } else {
            entry.transaction = Transaction::First { requester: from, version, forgotten: false };
            actions.push(if is_written {
                Action::Load { page, to: from, frame }
            } else {
                send(from, page, ToCache::Data { version, grant: false, zeros: true })
            });
        }
    }

    fn start_write(
        &mut self,
        index: u32,
        from: Rank,
        frame: FrameId,
        copy: Option<CopyVersion>,
        actions: &mut Vec<Action>,
    ) {
        let page = self.page(index);
        let entry = self.entry_mut(index);
        let has_copy = copy.is_some_and(|copy| entry.holds(Holder { rank: from, copy }));
        if !has_copy {
            entry.forget_rank(from);
        }
        if self.recall(index, from, Request::Write { from, frame, copy }, actions) {
            return;
        }
        let version = self.next_version();
        let source = if has_copy { None } else { self.source_of_write(&self.entries[&index], from) };
        let is_written = self.is_written(index);
        let entry = self.entry_mut(index);
        let mut acknowledgements = 0;
        for holder in entry.holders.iter().filter(|holder| holder.rank != from && Some(**holder) != source) {
            acknowledgements += 1;
            actions.push(send(holder.rank, page, ToCache::Invalidate { version }));
        }
        let alone = acknowledgements == 0;
        let data = source.map_or(Data::There, |source| Data::Forwarded { source, with_grant: alone });
        let mut write = Write { requester: from, frame, version, acknowledgements, data, granted: false };
        if let Some(source) = source {
            write.granted = alone;
            let forward = Forward { version, to: from, frame, access: Access::Write, grant: alone };
            actions.push(send(source.rank, page, ToCache::Forward(forward)));
        } else if !has_copy {
            write.fetch_from_file(page, is_written, actions);
        } else if alone {
            write.granted = true;
            actions.push(send(from, page, ToCache::Grant { version }));
        }
        entry.transaction = Transaction::Write(write);
    }

    fn start_evict(
        &mut self,
        index: u32,
        from: Rank,
        frame: FrameId,
        copy: CopyVersion,
        keep: bool,
        actions: &mut Vec<Action>,
    ) {
        let page = self.page(index);
        let entry = self.entry_mut(index);
        if !entry.holds(Holder { rank: from, copy }) {
            // The copy was taken while this was on its way; whoever took it accounts for the bytes now.
            return;
        }
        if entry.dirty_owner == Some(from) {
            entry.transaction = Transaction::WriteBack { from, copy, keep };
            actions.push(Action::Store { page, from, frame });
            return;
        }
        // A recall has already written it back.
        if !keep {
            entry.forget(Holder { rank: from, copy });
        }
        actions.push(send(from, page, ToCache::Evicted { copy }));
    }

    /// Without cooperative caching, bytes that only another rank's pool has must reach the file before `requester` gets
    /// anything. Returns whether `request` has to wait for that; it is at the front of the queue then.
    fn recall(&mut self, index: u32, requester: Rank, request: Request, actions: &mut Vec<Action>) -> bool {
        let page = self.page(index);
        let (cooperative, home) = (self.cooperative, self.rank);
        let entry = self.entry_mut(index);
        let Some(dirty_owner) =
            entry.dirty_owner.filter(|dirty_owner| !cooperative && *dirty_owner != home && *dirty_owner != requester)
        else {
            return false;
        };
        entry.waiting.push_front(request);
        let evicting = entry
            .waiting
            .iter()
            .position(|waiting| matches!(waiting, Request::Evict { from, .. } if *from == dirty_owner));
        if let Some(at) = evicting {
            let evict = entry.waiting.remove(at).expect("it was just found");
            self.start(index, evict, actions);
        } else {
            let copy = entry.holders[entry.position(dirty_owner).expect("a dirty owner is a holder")].copy;
            entry.transaction = Transaction::Recall;
            actions.push(send(dirty_owner, page, ToCache::Recall { copy }));
        }
        true
    }

    /// Who serves a read for `requester`: the top holder, or without cooperative caching only the home itself.
    fn source(&self, entry: &Entry, requester: Rank) -> Option<usize> {
        (0..entry.holders.len()).rev().find(|at| {
            let rank = entry.holders[*at].rank;
            rank != requester && (self.cooperative || rank == self.rank)
        })
    }

    /// Who serves a write: the dirty owner before all others, because it cannot have dropped its copy unasked.
    fn source_of_write(&self, entry: &Entry, requester: Rank) -> Option<Holder> {
        let at = match entry.dirty_owner {
            Some(dirty_owner) => entry.position(dirty_owner),
            None => self.source(entry, requester),
        };
        at.map(|at| entry.holders[at])
    }

    fn next_version(&mut self) -> CopyVersion {
        self.last_version.0 += 1;
        self.last_version
    }

    fn page(&self, index: u32) -> PageId {
        PageId { home: self.rank, index }
    }

    fn entry_mut(&mut self, index: u32) -> &mut Entry {
        self.entries.get_mut(&index).expect("an transaction keeps its entry")
    }
}

impl Write {
    /// Whether the data sent now carries the grant.
    fn grant_with_data(&mut self) -> bool {
        let grant = !self.granted && self.acknowledgements == 0;
        self.granted |= grant;
        grant
    }

    fn fetch_from_file(&mut self, page: PageId, is_written: bool, actions: &mut Vec<Action>) {
        if is_written {
            self.data = Data::Loading;
            actions.push(Action::Load { page, to: self.requester, frame: self.frame });
        } else {
            self.data = Data::There;
            let grant = self.grant_with_data();
            actions.push(send(self.requester, page, ToCache::Data { version: self.version, grant, zeros: true }));
        }
    }
}

fn send(to: Rank, page: PageId, body: ToCache) -> Action {
    Action::Send { to, message: Message { page, body: Body::Cache(body) } }
}

/// One bit a page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Bits {
    len: u32,
    words: Vec<u64>,
}

impl Bits {
    fn new(len: u32) -> Bits {
        Bits { len, words: vec![0; (len as usize).div_ceil(64)] }
    }

    fn get(&self, index: u32) -> bool {
        self.words[index as usize / 64] >> (index % 64) & 1 == 1
    }

    fn set(&mut self, index: u32) {
        self.words[index as usize / 64] |= 1 << (index % 64);
    }
}

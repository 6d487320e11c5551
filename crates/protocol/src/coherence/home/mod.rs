//! The home side: the directory of a rank's own pages, and the transactions under way about them.
//!
//! ```text
//!          Read, a holder serves it             last Done or Nack
//!        ┌──────────────────────────▶ Reads ──────────────────────────┐
//!        │ Read, no holder serves it            Done                  │
//!        ├──────────────────────────▶ First ──────────────────────────┤
//!        │ Write or Overwrite                   Done                  │
//!   Idle ┼──────────────────────────▶ Write ──────────────────────────┼──▶ Idle
//!        │ Evict by the dirty owner             Stored                │
//!        ├──────────────────────────▶ WriteBack ──────────────────────┘
//!        │ Read or Write, recalled, or  ▲ Evict
//!        │ a flush of the file          │
//!        ├──────────────────────────▶ Recall
//!        │ Dismiss                          last Acknowledge
//!        ├──────────────────────────▶ Dismissal ──────────────────────┤
//!        │ Read that the home's cache is to serve        Decline
//!        └──────────────────────────▶ AtHome ─────────────────────────▶ Idle
//!                                       │ Read or Write of the home's own rank
//!                                       ▼ First or Write
//! ```
//!
//! `AtHome` occurs without cooperative caching, and where homes keep what they read (`keeping.rs`); `Recall` without
//! cooperative caching, and for flushes of a file (`recalls.rs`).
//!
//! A holder serves one reader of a page at a time, or a small number for small pages. A served reader serves others, so
//! a page requested by n ranks at once reaches all of them in about log2(n) page times. A nacked read returns to the
//! queue before later ones. An Evict from a rank other than the dirty owner is answered at once, or is void.
//!
//! A page with many holders is invalidated through relays: a relaying rank tells others and answers for all of them at
//! once ([`relay`]), so the home tells about the square root of their number.
//!
//! Requests about a page are served in the order of arrival. Reads served by holders run concurrently. Every other
//! request has the page to itself, so the backing file is read once, and an invalidation misses no reader.

mod aside;
mod check;
mod entries;
mod entry;
mod failures;
mod guests;
mod holders;
mod home_files;
mod inspect;
mod invalidations;
mod keeping;
mod neighbours;
mod readers;
mod recalls;
mod request;
mod sources;
mod written;

pub use holders::Holder;

use super::{Access, Action, AsInPaper, CopyVersion, Forward, PageId, Priority, ToCache, ToHome, relay, send_cache};
use crate::{Hosts, Rank, Violation};
use alloc::vec::Vec;
use core::mem;
use entries::Entries;
use entry::{Entry, Refusable, Transaction, Write, WriteData};
use readers::{Reader, Readers};
use request::{Request, RequestKind};
use written::Written;

/// The directory of one rank's pages.
///
/// A page has an entry while some rank holds or requests it; for other pages the directory stores one bit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Home {
    rank: Rank,
    cooperative: bool,
    /// Even with cooperative caching, this rank keeps a copy of pages its file is read for.
    keeps: bool,
    hosts: Hosts,
    /// Maximum number of readers of a page served by a holder at a time.
    readers_each: usize,
    /// Maximum number of holders this home invalidates by its own messages; more relay to each other.
    told_itself_max: usize,
    as_in_paper: AsInPaper,
    written: Written,
    entries: Entries,
    last_version: CopyVersion,
}

impl Home {
    /// A directory of `pages` pages, none of them written.
    pub fn new(rank: Rank, pages: u32, cooperative: bool) -> Home {
        let (entries, written, as_in_paper) = (Entries::new(), Written::new(rank, pages), AsInPaper::default());
        let (readers_each, told_itself_max, last_version) = (1, relay::TOLD_ITSELF_MAX, CopyVersion(0));
        let (keeps, hosts) = (false, Hosts::default());
        Home {
            rank,
            cooperative,
            keeps,
            hosts,
            readers_each,
            told_itself_max,
            as_in_paper,
            written,
            entries,
            last_version,
        }
    }

    /// Sets the hosts of the ranks.
    pub(super) fn on_hosts(self, hosts: Hosts) -> Home {
        Home { hosts, ..self }
    }

    /// Sets the maximum number of readers of a page served by a holder at a time.
    pub(super) fn serving_at_once(self, readers_each: usize) -> Home {
        assert!(readers_each > 0, "somebody serves a reader");
        Home { readers_each, ..self }
    }

    /// Selects the paper's behaviour.
    pub(super) fn following_paper(self, as_in_paper: AsInPaper) -> Home {
        let readers_each = if as_in_paper.readers_at_once { usize::MAX } else { self.readers_each };
        Home { readers_each, as_in_paper, ..self }
    }

    /// A message about an existing page of this home.
    pub(super) fn on_message(
        &mut self,
        from: Rank,
        page: PageId,
        body: ToHome,
        actions: &mut Vec<Action>,
    ) -> Result<(), Violation> {
        let entry = self.entries.open(page);
        let asked = |frame, kind, priority| Request { from, frame, kind, priority };
        let taken = match body {
            ToHome::Read { frame, priority } => {
                return self.ask(page, asked(frame, RequestKind::Read { tried_home: false }, priority), actions);
            }
            ToHome::Write { frame, copy } => {
                return self.ask(page, asked(frame, RequestKind::Write { copy }, Priority::Now), actions);
            }
            ToHome::Overwrite { frame } => {
                return self.ask(page, asked(frame, RequestKind::Overwrite, Priority::Now), actions);
            }
            ToHome::Evict { frame, copy, keep, priority } => {
                let request = asked(frame, RequestKind::Evict { copy, keep }, priority);
                if entry.transaction == Transaction::Recall && entry.dirty_owner == Some(from) {
                    self.start(page, request, actions)?;
                    Ok(())
                } else {
                    entry.ask(page, request, actions)
                }
            }
            ToHome::Hurry => entry.on_hurry(page, from, actions),
            ToHome::Forget { copy } => entry.on_forget(Holder { rank: from, copy }),
            ToHome::Done { version } => entry.on_done(from, version),
            ToHome::Nack { version } => self.on_nack(from, page, version, actions),
            ToHome::Acknowledge { version, copies } => self.on_acknowledge(from, page, (version, copies), actions),
            ToHome::Decline { version } => entry.on_decline(from == self.rank, version),
        };
        taken.map_err(|what| Violation::about(page, from, what))?;
        self.start_waiting(page, actions)
    }

    /// Accepts a request. This rank's own goes first if another request waits for it.
    fn ask(&mut self, page: PageId, request: Request, actions: &mut Vec<Action>) -> Result<(), Violation> {
        let is_own = request.from == self.rank;
        let entry = self.entry_mut(page);
        if is_own && matches!(entry.transaction, Transaction::AtHome { .. }) {
            return self.start(page, request, actions);
        }
        if entry.is_quiet() {
            // It need not wait.
            self.start(page, request, actions)?;
        } else {
            let taken = entry.ask(page, request, actions);
            taken.map_err(|what| Violation::about(page, request.from, what))?;
        }
        self.start_waiting(page, actions)
    }

    /// Bytes of a page without an entry are being written to the backing file.
    pub(super) fn on_written(&mut self, page: PageId) {
        assert!(!self.has_entry(page), "{page:?} is held or asked for, and its file is written");
        self.written.set(page);
    }

    /// [`Action::Load`] is done: the page is in the requester's frame.
    pub(super) fn on_loaded(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let entry = self.entry_mut(page);
        assert!(entry.io.is_some(), "{page:?} was being read");
        entry.io = None;
        let (to, version, grant) = match &mut entry.transaction {
            Transaction::First { requester, version, loading, .. } => {
                assert!(*loading, "{page:?} was being read for its first holder");
                *loading = false;
                (*requester, *version, false)
            }
            Transaction::Write(write) => {
                assert_eq!(write.data, WriteData::Loading);
                write.data = WriteData::There;
                (write.requester, write.version, write.grant_with_data())
            }
            other => panic!("a load finished in {other:?}"),
        };
        actions.push(send_cache(to, page, ToCache::Data { version, grant, zeros: false }));
    }

    /// [`Action::Store`] is done: the backing file has the dirty owner's bytes.
    pub(super) fn on_stored(&mut self, page: PageId, actions: &mut Vec<Action>) -> Result<(), Violation> {
        self.written.set(page);
        let entry = self.entry_mut(page);
        let Transaction::WriteBack { from, copy, keep } = mem::take(&mut entry.transaction) else {
            panic!("a store finished outside a write-back");
        };
        assert_eq!(entry.dirty_owner, Some(from), "{from:?} accounted for the bytes of {page:?}");
        assert!(entry.io.is_some(), "{page:?} was being written");
        entry.dirty_owner = None;
        entry.io = None;
        if !keep {
            entry.forget(Holder { rank: from, copy }).expect("it is no dirty owner any more");
        }
        actions.push(send_cache(from, page, ToCache::Evicted { copy }));
        self.start_waiting(page, actions)
    }

    /// The holder told to serve `version` has no copy: forgets the holder, and serves the request in another way.
    fn on_nack(&mut self, from: Rank, page: PageId, version: CopyVersion, actions: &mut Vec<Action>) -> Refusable {
        const UNASKED: Refusable = Err("word that it cannot serve a request, and it was not told to serve it");
        let is_written = self.is_written(page);
        let entry = self.entry_mut(page);
        if let Transaction::Write(write) = &mut entry.transaction {
            let WriteData::Forwarded { source, with_grant } = write.data else { return UNASKED };
            if source.rank != from || write.version != version {
                return UNASKED;
            }
            // The other holders are giving up their copies, so the file is the only source left.
            write.granted &= !with_grant;
            entry.io = write.fetch_from_file(page, is_written, actions);
            return entry.forget(source);
        }
        let served = |readers: &mut Readers| readers.take_version(version, from);
        let Some(Reader { requester, frame, source, priority, tried_home, .. }) = entry.take_reader(served) else {
            return UNASKED;
        };
        entry.forget(source)?;
        debug_assert!(!entry.holders.contains(&source), "{from:?} is asked for {page:?} no more");
        let kind = RequestKind::Read { tried_home };
        self.wait_again(page, Request { from: requester, frame, kind, priority });
        Ok(())
    }

    /// Starts queued requests while the first one may start. Drops an empty entry.
    fn start_waiting(&mut self, page: PageId, actions: &mut Vec<Action>) -> Result<(), Violation> {
        self.start_aside(page, actions)?;
        while let Some(request) = self.entry_mut(page).waiting.front().copied() {
            if self.may_start(page, request) {
                self.entry_mut(page).waiting.pop_front();
                self.start(page, request, actions)?;
            } else if self.put_aside(page, request) {
                self.entry_mut(page).waiting.pop_front();
            } else {
                break;
            }
        }
        self.entries.settle(page);
        Ok(())
    }

    fn may_start(&self, page: PageId, request: Request) -> bool {
        let entry = self.entry(page);
        match (&entry.transaction, request.kind) {
            (Transaction::Idle, _) => true,
            // A requester reading again before its Done has arrived waits for the Done.
            (Transaction::Reads(readers), RequestKind::Read { .. }) => {
                !readers.has(request.from) && self.source_of_read(page, request.from).is_some()
            }
            _ => false,
        }
    }

    fn start(&mut self, page: PageId, request: Request, actions: &mut Vec<Action>) -> Result<(), Violation> {
        debug_assert!(!self.entry(page).is_writing(), "{request:?} waits for the new owner of {page:?}");
        debug_assert!(self.entry(page).io.is_none(), "{request:?} waits for the I/O of {page:?}");
        match request.kind {
            RequestKind::Read { tried_home } => self.start_read(page, request, tried_home, actions),
            RequestKind::Write { copy } => self.start_write(page, request, copy, actions),
            RequestKind::Overwrite => self.start_overwrite(page, request, actions),
            RequestKind::Recall => self.start_recall(page, request, actions),
            RequestKind::Dismiss => {
                self.start_dismissal(page, actions);
                Ok(())
            }
            RequestKind::Evict { copy, keep } => {
                let started = self.start_evict(page, request, copy, keep, actions);
                started.map_err(|what| Violation::about(page, request.from, what))
            }
        }
    }

    fn start_read(
        &mut self,
        page: PageId,
        request: Request,
        tried_home: bool,
        actions: &mut Vec<Action>,
    ) -> Result<(), Violation> {
        let Request { from, frame, priority, .. } = request;
        let forgotten = self.entry_mut(page).forget_rank(from);
        forgotten.map_err(|what| Violation::about(page, from, what))?;
        if priority == Priority::Later && self.source_of_read(page, from).is_none() {
            actions.push(send_cache(from, page, ToCache::Unread));
            return Ok(());
        }
        if self.recall(page, request, actions)? || (!tried_home && self.fetch_at_home(page, request, actions)?) {
            return Ok(());
        }
        let version = self.version_of_read(priority);
        debug_assert!(self.entry(page).holder(from).is_none(), "{from:?} asks for {page:?} without a copy of it");
        let source = self.source_of_read(page, from);
        let is_written = self.is_written(page);
        let entry = self.entry_mut(page);
        if let Some(source) = source {
            entry.holders.sink(source);
            let reader = Reader { requester: from, frame, version, source, priority, tried_home, forgotten: false };
            match &mut entry.transaction {
                Transaction::Reads(readers) => readers.add(reader),
                other => *other = Transaction::Reads(Readers::one(reader)),
            }
            let forward = Forward { version, to: from, frame, access: Access::Read, grant: false };
            actions.push(send_cache(source.rank, page, ToCache::Forward(forward)));
        } else {
            entry.transaction = Transaction::First { requester: from, version, loading: is_written, forgotten: false };
            let priority = entry.priority_with(&request);
            entry.io = is_written.then_some(priority);
            actions.push(if is_written {
                Action::Load { page, to: from, frame, priority }
            } else {
                send_cache(from, page, ToCache::Data { version, grant: false, zeros: true })
            });
        }
        Ok(())
    }

    fn start_write(
        &mut self,
        page: PageId,
        request: Request,
        copy: Option<CopyVersion>,
        actions: &mut Vec<Action>,
    ) -> Result<(), Violation> {
        let Request { from, frame, .. } = request;
        let entry = self.entry_mut(page);
        let has_copy = copy.is_some_and(|copy| entry.holders.contains(&Holder { rank: from, copy }));
        if !has_copy {
            entry.forget_rank(from).map_err(|what| Violation::about(page, from, what))?;
        }
        if self.recall(page, request, actions)? {
            return Ok(());
        }
        let version = self.next_version();
        let source = if has_copy { None } else { self.source_of_write(page, from) };
        assert!(source.is_none_or(|source| source.rank != from), "{from:?} has no copy of {page:?}, and is no source");
        let is_written = self.is_written(page);
        let is_to_lose = |holder: &&Holder| holder.rank != from && Some(**holder) != source;
        let others: Vec<Rank> = self.entry(page).holders.iter().filter(is_to_lose).map(|holder| holder.rank).collect();
        let acknowledgements = self.invalidate(page, &others, version, actions);
        let entry = self.entry_mut(page);
        let alone = acknowledgements == 0;
        let data = source.map_or(WriteData::There, |source| WriteData::Forwarded { source, with_grant: alone });
        let mut write = Write { requester: from, frame, version, acknowledgements, data, granted: false };
        if let Some(source) = source {
            write.granted = alone;
            let forward = Forward { version, to: from, frame, access: Access::Write, grant: alone };
            actions.push(send_cache(source.rank, page, ToCache::Forward(forward)));
        } else if !has_copy {
            entry.io = write.fetch_from_file(page, is_written, actions);
        } else if alone {
            write.granted = true;
            actions.push(send_cache(from, page, ToCache::Grant { version }));
        }
        entry.transaction = Transaction::Write(write);
        Ok(())
    }

    /// Makes the requester the owner without fetching bytes: every holder gives up its copy, including the dirty owner.
    /// The newest bytes are the overwriting operation's, which completes only after the grant.
    fn start_overwrite(&mut self, page: PageId, request: Request, actions: &mut Vec<Action>) -> Result<(), Violation> {
        let Request { from, frame, .. } = request;
        self.entry_mut(page).forget_rank(from).map_err(|what| Violation::about(page, from, what))?;
        if self.recall(page, request, actions)? {
            return Ok(());
        }
        let version = self.next_version();
        debug_assert!(self.entry(page).holder(from).is_none(), "{from:?} asks for {page:?} without a copy of it");
        let holders: Vec<Rank> = self.entry(page).holders.iter().map(|holder| holder.rank).collect();
        let acknowledgements = self.invalidate(page, &holders, version, actions);
        let granted = acknowledgements == 0;
        if granted {
            actions.push(send_cache(from, page, ToCache::Grant { version }));
        }
        let data = WriteData::There;
        let write = Write { requester: from, frame, version, acknowledgements, data, granted };
        self.entry_mut(page).transaction = Transaction::Write(write);
        Ok(())
    }

    fn start_evict(
        &mut self,
        page: PageId,
        request: Request,
        copy: CopyVersion,
        keep: bool,
        actions: &mut Vec<Action>,
    ) -> Refusable {
        let Request { from, frame, .. } = request;
        let entry = self.entry_mut(page);
        if !entry.holders.contains(&Holder { rank: from, copy }) {
            // A writer got the copy while this request was in flight; the writer accounts for the bytes now.
            return Ok(());
        }
        if entry.dirty_owner == Some(from) {
            let may_start = matches!(entry.transaction, Transaction::Idle | Transaction::Recall);
            debug_assert!(may_start, "{page:?} is written back in {:?}", entry.transaction);
            entry.transaction = Transaction::WriteBack { from, copy, keep };
            let priority = entry.priority_with(&request);
            entry.io = Some(priority);
            actions.push(Action::Store { page, from, frame, priority });
            return Ok(());
        }
        // A recall has already written it back.
        if !keep {
            entry.forget(Holder { rank: from, copy })?;
        }
        actions.push(send_cache(from, page, ToCache::Evicted { copy }));
        Ok(())
    }

    /// Without cooperative caching, bytes found only in another rank's pool must reach the file before the requester
    /// gets anything. Returns whether `request` must wait for that; it is then at the front of the queue.
    fn recall(&mut self, page: PageId, request: Request, actions: &mut Vec<Action>) -> Result<bool, Violation> {
        let is_at_hand = |owner: &Rank| self.is_cooperative(page) || [self.rank, request.from].contains(owner);
        let Some(owner) = self.dirty_owner(page).filter(|owner| !is_at_hand(owner)) else { return Ok(false) };
        self.recall_from(owner, page, request, actions)?;
        Ok(true)
    }

    fn next_version(&mut self) -> CopyVersion {
        self.last_version.0 += 1;
        assert!(!self.last_version.is_guest(), "no home issues this many versions");
        self.last_version
    }

    fn entry(&self, page: PageId) -> &Entry {
        self.entries.transient(page).expect("a transaction keeps its entry transient")
    }

    fn entry_mut(&mut self, page: PageId) -> &mut Entry {
        self.entries.transient_mut(page).expect("a transaction keeps its entry transient")
    }
}

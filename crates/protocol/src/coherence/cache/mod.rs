//! The cache side: the pages in a rank's frames, and the operations that wait for them.
//!
//! ```text
//!  Want                      frame              Data                Want to write            Grant
//!   ──▶ AwaitingFrame ──────────────▶ Fetching ────────▶ Shared ─────────────▶ Upgrading ──────────▶ Owned
//!                                      ▲ │                 ▲                       │                  ▲ │
//!                                      │ └─────────────────┼── Data and Grant ─────┼──────────────────┘ │
//!                                      └───────────────────┼── Invalidate or Take ─┘                    │
//!                                                          └── Read or write-back ──────────────────────┘
//!
//!   Shared, Owned ──Evict──▶ clean: frame is free;  dirty: Evicting ──Evicted──▶ frame is free
//!   Shared, being written back ──Evict, Evicted──▶ frame is free
//!   Shared, Owned, Evicting ──Invalidate──▶ frame is free
//!   Shared, Owned, Evicting ──Take──▶ Leaving ──Transferred──▶ frame is free
//! ```
//!
//! For an operation overwriting the whole page, Fetching asks for no data, and the operation fills the frame between
//! Grant and Owned. Read and Take are a [`Forward`] to serve a reader or a writer. A page whose frame is freed while
//! operations wait for it awaits a frame again.
//!
//! A page with a copy is open (operations here use it), closing, or closed. Actions that need it closed are deferred;
//! [`Cache::run_deferred`] runs them.

mod ahead;
mod check;
mod failures;
mod file_pages;
mod for_others;
mod frames;
mod free;
mod inspect;
mod invalidations;
mod notices;
mod page;
mod pages;
mod queue;
mod write_backs;

use super::{Access, Action, CopyVersion, Forward, Outgoing, PageId, ToCache, ToHome, Waiter, send_cache, send_home};
use crate::{Rank, Spaces, Violation};
use alloc::collections::VecDeque;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::mem;
use free::FreeFrames;
use invalidations::Relay;
use notices::Notices;
use page::{AccessState, CachedPage, FetchedData, Phase};
use pages::Pages;
use queue::PageQueue;

/// The outcome of a message: the reason for its rejection, in words, if it makes no sense.
type Refusable = Result<(), &'static str>;

/// The pages of one rank's pool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cache {
    rank: Rank,
    spaces: Spaces,
    pages: Pages,
    free: FreeFrames,
    /// Pages with waiting operations that await a frame; the front is next.
    awaiting_frame: VecDeque<PageId>,
    /// Read-ahead pages that await a frame. They come after the others.
    awaiting_ahead: PageQueue,
    /// The pages of both queues wanted by this rank's home to serve other ranks, with the home's order.
    for_others: BTreeMap<PageId, CopyVersion>,
    /// Frames [`Cache::on_evict`] was told to free that are not free yet.
    evictions: u32,
    /// The pages among them whose evictions are less urgent than for a waiting operation.
    unhurried: PageQueue,
    /// Number of pages with a write-back among their deferred actions.
    flushes: u32,
    /// Dirty pages of files.
    dirty_of_files: BTreeSet<PageId>,
    /// Clean evictions not yet reported to the homes.
    notices: Notices,
    /// Invalidations this rank has relayed to others.
    relays: Vec<Relay>,
}

impl Cache {
    /// The pool of `rank`: `frames` free frames, at least 1, for pages of `spaces`.
    pub fn new(rank: Rank, frames: u32, spaces: Spaces) -> Cache {
        assert!(frames > 0, "a pool has at least one frame");
        let notices = Notices::new(frames, spaces.ranks());
        Cache {
            rank,
            spaces,
            pages: Pages::new(frames),
            free: FreeFrames::new(frames),
            awaiting_frame: VecDeque::new(),
            awaiting_ahead: PageQueue::default(),
            for_others: BTreeMap::new(),
            evictions: 0,
            unhurried: PageQueue::default(),
            flushes: 0,
            dirty_of_files: BTreeSet::new(),
            notices,
            relays: Vec::new(),
        }
    }

    /// A message about an existing page. Any holder may send [`ToCache::Data`], any relaying rank the messages about an
    /// invalidation; only the page's home sends the others.
    pub(super) fn on_message(
        &mut self,
        from: Rank,
        page: PageId,
        body: ToCache,
        actions: &mut Vec<Action>,
    ) -> Result<(), Violation> {
        let taken = match body {
            ToCache::Data { version, grant, zeros } => self.on_data(page, version, grant, zeros, actions),
            ToCache::Invalidate { version } => self.on_invalidate(from, page, version, actions),
            ToCache::Relay { version, to } => self.on_relay(from, page, version, to, actions),
            ToCache::Acknowledge { version, copies } => self.on_acknowledge(page, version, copies, actions),
            _ if from != self.spaces.home(page) => Err("an order that only the home of the page gives"),
            ToCache::Forward(forward) => self.on_forward(page, forward, actions),
            ToCache::Grant { version } => self.on_grant(page, version, actions),
            ToCache::Evicted { copy } => self.on_evicted(page, copy, actions),
            ToCache::Recall { copy } => {
                self.on_recall(page, copy, actions);
                Ok(())
            }
            ToCache::Unread => self.on_unread(page, actions),
            ToCache::Unreadable { granted, cause } => self.on_unreadable(page, granted, cause, actions),
            ToCache::Unwritten { copy, cause } => {
                self.on_unwritten(page, copy, cause, actions);
                Ok(())
            }
            ToCache::Fetch { version, priority } => self.on_fetch(page, version, priority, actions),
        };
        taken.map_err(|what| Violation::about(page, from, what))
    }

    pub(super) fn on_want(&mut self, page: PageId, access: Access, waiter: Waiter, actions: &mut Vec<Action>) {
        assert!(self.spaces.has(page), "{page:?} is wanted, and exists");
        let is_new = !self.contains(page);
        let cached = self.pages.get_or_default(page);
        match access {
            Access::Read => cached.readers.push(waiter),
            Access::Write => cached.writers.push(waiter),
        }
        if is_new {
            self.await_frame(page, actions);
        } else if cached.ahead.take().is_some() {
            self.hurry_fetch(page, actions);
        } else if matches!(cached.access_state, AccessState::Open(_)) {
            self.open(page, actions);
        }
    }

    pub(super) fn on_overwrite(&mut self, page: PageId, waiter: Waiter, actions: &mut Vec<Action>) {
        assert!(self.spaces.has(page), "{page:?} is wanted, and exists");
        if !self.may_overwrite(page) {
            return self.on_want(page, Access::Write, waiter, actions);
        }
        let is_new = !self.contains(page);
        let cached = self.pages.get_or_default(page);
        cached.overwriter = Some(waiter);
        if is_new {
            self.await_frame(page, actions);
        } else if cached.ahead.take().is_some() {
            self.hurry_fetch(page, actions);
        }
    }

    pub(super) fn on_closed(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let cached = self.cached(page);
        assert_eq!(cached.access_state, AccessState::Closing, "{page:?} was not closing");
        cached.access_state = AccessState::Closed;
        self.run_deferred(page, actions);
    }

    pub(super) fn on_transferred(&mut self, outgoing: Outgoing, actions: &mut Vec<Action>) {
        let Outgoing { page, forward, from } = outgoing;
        let data = ToCache::Data { version: forward.version, grant: forward.grant, zeros: false };
        actions.push(send_cache(forward.to, page, data));
        let cached = self.cached(page);
        assert_eq!(cached.frame, Some(from), "{page:?} stays in its frame while it is sent");
        match (forward.access, cached.phase) {
            (Access::Write, Phase::Leaving { upgrade: true }) => {
                cached.phase = Phase::Fetching { access: Access::Write, data: FetchedData::Missing, granted: false };
            }
            (Access::Write, Phase::Leaving { upgrade: false }) => self.free_frame(page, actions),
            (Access::Read, _) => {
                assert!(cached.outgoing > 0, "each transfer of {page:?} ends once");
                cached.outgoing -= 1;
                if cached.outgoing == 0 && cached.access_state == AccessState::Closed && cached.deferred.evict.is_some()
                {
                    self.run_deferred(page, actions);
                }
            }
            (Access::Write, phase) => panic!("{page:?} went to a writer in {phase:?}"),
        }
    }

    /// The page is in its frame: transferred, read from the file, cleared, or overwritten.
    pub(super) fn on_filled(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let Phase::Fetching { data, .. } = &mut self.cached(page).phase else {
            panic!("{page:?} was not being fetched")
        };
        assert!(matches!(*data, FetchedData::Missing | FetchedData::Clearing), "{page:?} is filled once, not {data:?}");
        *data = FetchedData::There;
        self.finish_fetch(page, actions);
    }

    /// A home tells this rank to serve a requester.
    fn on_forward(&mut self, page: PageId, forward: Forward, actions: &mut Vec<Action>) -> Refusable {
        if forward.to == self.rank {
            return Err("an order to serve the own request");
        }
        let Some(cached) = self.pages.get_mut(page).filter(|cached| cached.phase.has_copy()) else {
            actions.push(send_home(self.spaces.home(page), page, ToHome::Nack { version: forward.version }));
            return Ok(());
        };
        if cached.is_leaving() {
            return Err("an order to serve a page that is being given up");
        }
        debug_assert!(cached.frame.is_some(), "the copy of {page:?} is in a frame");
        match forward.access {
            Access::Write if cached.is_serving_readers() => {
                return Err("an order to give up a page that readers are being served with");
            }
            Access::Write => {
                cached.deferred.serve_writer = Some(forward);
                self.close(page, actions);
            }
            Access::Read if cached.phase == Phase::Owned => {
                cached.deferred.serve_readers.push(forward);
                self.close(page, actions);
            }
            Access::Read => {
                cached.outgoing += 1;
                actions.push(Action::Transfer(Outgoing { page, from: cached.frame(), forward }));
            }
        }
        Ok(())
    }

    fn on_grant(&mut self, page: PageId, version: CopyVersion, actions: &mut Vec<Action>) -> Refusable {
        const UNASKED: Refusable = Err("a grant that nobody asked for");
        let Some(cached) = self.pages.get_mut(page) else { return UNASKED };
        // A rank about to write has served all its readers, and no other rank is to write.
        let is_settled = cached.access_state != AccessState::Closing && !cached.is_serving_readers();
        match &mut cached.phase {
            Phase::Upgrading if is_settled => {
                debug_assert!(!cached.writers.is_empty(), "an operation waits to write {page:?}");
                cached.copy = version;
                self.become_owner(page, actions);
            }
            Phase::Fetching { access: Access::Write, data, granted: granted @ false } => {
                if !matches!(*data, FetchedData::Missing | FetchedData::Failed(_)) && cached.copy != version {
                    return Err("a grant for another transaction than the data");
                }
                cached.copy = version;
                *granted = true;
                if let Some(waiter) = cached.overwriter.take() {
                    *data = FetchedData::Clearing;
                    actions.push(Action::Fill { page, frame: cached.frame(), waiter });
                }
                self.finish_fetch(page, actions);
            }
            _ => return UNASKED,
        }
        Ok(())
    }

    fn on_data(
        &mut self,
        page: PageId,
        version: CopyVersion,
        grant: bool,
        zeros: bool,
        actions: &mut Vec<Action>,
    ) -> Refusable {
        const UNASKED: Refusable = Err("data that nobody asked for");
        let Some(cached) = self.pages.get_mut(page) else { return UNASKED };
        let Phase::Fetching { access, data: data @ FetchedData::Missing, granted } = &mut cached.phase else {
            return UNASKED;
        };
        if cached.overwriter.is_some() {
            return Err("data of a page that is to be overwritten");
        }
        if grant && (*granted || *access == Access::Read) {
            return Err("data with a grant that nobody asked for");
        }
        if *granted && cached.copy != version {
            return Err("data for another transaction than the grant");
        }
        debug_assert!(!cached.dirty && cached.outgoing == 0, "{page:?} is fetched, so there is no copy of it");
        cached.copy = version;
        *granted |= grant;
        if zeros {
            *data = FetchedData::Clearing;
            let frame = cached.frame();
            actions.push(Action::Clear { page, frame });
        } else {
            self.on_filled(page, actions);
        }
        Ok(())
    }

    fn on_evicted(&mut self, page: PageId, copy: CopyVersion, actions: &mut Vec<Action>) -> Refusable {
        // A grant may have overtaken this message, which then concerns an older copy.
        let Some(cached) = self.pages.get_mut(page).filter(|cached| cached.copy == copy) else { return Ok(()) };
        if cached.phase == Phase::Evicting {
            if cached.is_serving_readers() {
                return Err("the end of an eviction of a page that readers are being served with");
            }
            debug_assert!(cached.deferred.evict.is_some(), "the driver has chosen {page:?} to leave");
            self.free_frame(page, actions);
        } else if cached.flushing {
            debug_assert!(cached.dirty, "{page:?} had bytes to be written back");
            let is_evicted = cached.access_state == AccessState::Closed && cached.deferred.evict.is_some();
            self.mark_clean(page);
            if is_evicted {
                self.evict(page, actions);
            }
        }
        Ok(())
    }

    /// Opens the page once its request is answered: with the data and, for a write, the grant.
    fn finish_fetch(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let home = self.spaces.home(page);
        let cached = self.cached(page);
        match cached.phase {
            Phase::Fetching { access: Access::Read, data: FetchedData::There, .. } => {
                debug_assert!(cached.overwriter.is_none(), "an operation that overwrites {page:?} asks to write");
                (cached.phase, cached.ahead) = (Phase::Shared, None);
                actions.push(send_home(home, page, ToHome::Done { version: cached.copy }));
                self.open(page, actions);
            }
            Phase::Fetching { access: Access::Write, data: FetchedData::There, granted: true } => {
                self.become_owner(page, actions);
            }
            Phase::Fetching { data: FetchedData::Failed(cause), granted: true, .. } => self.fail(page, cause, actions),
            _ => {}
        }
    }

    fn become_owner(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let home = self.spaces.home(page);
        let cached = self.cached(page);
        assert!(!cached.is_leaving() && !cached.is_serving_readers(), "{page:?} gets an owner, and nobody else a copy");
        cached.phase = Phase::Owned;
        // The grant voids a flush in flight: its Evict names the copy from before the grant.
        (cached.flushing, cached.is_recalled) = (false, false);
        let (was_dirty, flush) = (mem::replace(&mut cached.dirty, true), cached.deferred.flush.is_some());
        actions.push(send_home(home, page, ToHome::Done { version: cached.copy }));
        if !was_dirty && page.space.segment().is_none() {
            let is_new = self.dirty_of_files.insert(page);
            assert!(is_new, "{page:?} was clean, and not listed");
        }
        self.open(page, actions);
        if flush {
            self.write_back(page, actions);
        }
    }

    /// Opens the page and hands it to the waiters its copy suffices for. If others are left, asks the home for write
    /// access.
    fn open(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let home = self.spaces.home(page);
        let cached = self.cached(page);
        assert!(cached.phase.has_copy() && cached.phase != Phase::Evicting, "{page:?} is opened in {:?}", cached.phase);
        let access = cached.access();
        let mut waiters = mem::take(&mut cached.readers);
        if access == Access::Write {
            waiters.append(&mut cached.writers);
        }
        if cached.access_state != AccessState::Open(access) || !waiters.is_empty() {
            cached.access_state = AccessState::Open(access);
            actions.push(Action::Open { page, frame: cached.frame(), access, waiters });
        }
        if cached.phase == Phase::Shared && !cached.writers.is_empty() {
            cached.phase = Phase::Upgrading;
            let write = ToHome::Write { frame: cached.frame(), copy: Some(cached.copy) };
            actions.push(send_home(home, page, write));
        }
    }

    /// Runs the page's deferred actions as soon as no operation here uses it.
    fn close(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let cached = self.cached(page);
        assert!(cached.phase.has_copy(), "{page:?} is closed in {:?}", cached.phase);
        match cached.access_state {
            AccessState::Open(_) => {
                cached.access_state = AccessState::Closing;
                actions.push(Action::Close(page));
            }
            AccessState::Closing => {}
            AccessState::Closed => self.run_deferred(page, actions),
        }
    }

    /// Runs the deferred actions of a closed page, then reopens it if its copy stays.
    fn run_deferred(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let cached = self.cached(page);
        assert_eq!(cached.access_state, AccessState::Closed, "no operation uses {page:?} any more");
        debug_assert!(!cached.is_leaving() || !cached.is_serving_readers(), "{page:?} leaves after its readers' turn");
        let upgrade = cached.phase == Phase::Upgrading;
        if let Some(asked) = cached.deferred.invalidate.take() {
            self.acknowledge(page, asked, actions);
            self.mark_clean(page);
            if upgrade {
                // The frame is kept for the answer to this rank's own write request, now at the home.
                self.cached(page).phase =
                    Phase::Fetching { access: Access::Write, data: FetchedData::Missing, granted: false };
            } else {
                self.free_frame(page, actions);
            }
            return;
        }
        if let Some(forward) = cached.deferred.serve_writer.take() {
            self.mark_clean(page);
            let cached = self.cached(page);
            cached.phase = Phase::Leaving { upgrade };
            actions.push(Action::Transfer(Outgoing { page, from: cached.frame(), forward }));
            return;
        }
        if cached.phase == Phase::Owned {
            cached.phase = Phase::Shared;
        }
        for forward in mem::take(&mut cached.deferred.serve_readers) {
            cached.outgoing += 1;
            actions.push(Action::Transfer(Outgoing { page, from: cached.frame(), forward }));
        }
        if cached.deferred.evict.is_some() {
            self.evict(page, actions);
            return;
        }
        if cached.deferred.flush.is_some() {
            self.write_back(page, actions);
        }
        self.open(page, actions);
    }

    fn cached(&mut self, page: PageId) -> &mut CachedPage {
        self.pages.get_mut(page).expect("the page is known here")
    }
}

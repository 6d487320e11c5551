//! Runs the protocol of one rank: takes its actions to the conduit and the storage, and brings their completions back.
//!
//! The [`Engine`] is single-threaded state behind a lock. Whoever holds the lock calls [`Engine::drive`], then, without
//! the lock, carries out the [`Work`] that came of it: nothing touches the client's memory or copies a page under the
//! lock. [`Progress`] decides who drives and who sleeps.

mod progress;
mod reserve;
mod residency;
mod storage_server;
mod work;

pub use progress::{Locked, Progress};
pub use residency::{Residents, TooMany};
pub use storage_server::StorageServer;
pub use work::{Copy, Part, Work};

use crate::am::{self, Messages, Taken};
use crate::barrier::{self, Barrier};
use crate::coherence::{Action, Event, FrameId, Message, Outgoing, PageId, Protocol, Waiter};
use crate::error::UserError;
use crate::large_pages::LargePages;
use crate::page_table::{Closing, PageTable, Slot};
use crate::pool::Lru;
use crate::readahead::ReadAhead;
use crate::space::AddressSpace;
use reserve::Reserve;
use slab::Slab;
use std::collections::{HashSet, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;
use vgasnet_conduit::{Arrival, Busy, Conduit, Rank, Token, Transfer, Urgency};

/// First byte of the messages of the client's barrier; the protocol's own tags are smaller.
const TAG_BARRIER: u8 = 32;

/// First byte of the messages of the barrier at the end of the job.
const TAG_FAREWELL: u8 = 33;

/// The engine of one rank.
pub struct Engine {
    conduit: Arc<dyn Conduit>,
    space: Arc<AddressSpace>,
    protocol: Protocol,
    barrier: Barrier,
    farewell: Barrier,
    messages: Arc<Messages>,
    storage: StorageServer,
    lru: Lru,
    readahead: ReadAhead,
    /// Pages that are being fetched ahead.
    ahead: HashSet<PageId>,
    /// Parts that wait for a page; a [`Waiter`] is a place in it.
    parts: Slab<Part>,
    /// Page transfers under way.
    transfers: Slab<Outgoing>,
    /// Closing pages that somebody still uses.
    closing: Vec<PageId>,
    events: VecDeque<Event>,
    actions: Vec<Action>,
    /// Messages that the conduit has not taken yet.
    outbox: VecDeque<(Rank, Vec<u8>)>,
    inbox: Vec<Arrived>,
    work: VecDeque<Work>,
    /// Something happened that waiting threads may wait for, besides completed operations.
    news: bool,
    /// Why the job has to end.
    broken: Option<UserError>,
    residents: Residents,
    reserve: Reserve,
    /// Frames that have held a page.
    used: Box<[bool]>,
    large_pages: Arc<LargePages>,
}

/// How much of each kind an engine holds at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Messages that the conduit has not taken yet.
    pub messages: usize,
    /// Parts of operations that wait for a page.
    pub parts: usize,
    /// Page transfers to other ranks' frames.
    pub transfers: usize,
    /// Pages between the file and a frame.
    pub storage_operations: usize,
    /// Closing pages that somebody still uses.
    pub closing: usize,
    /// Pages that are being fetched ahead.
    pub ahead: usize,
    /// Work that nobody has taken.
    pub work: usize,
}

#[derive(Debug)]
enum Arrived {
    Protocol(Rank, Message),
    Barrier(barrier::Message),
    Farewell(barrier::Message),
    Complete(Token),
    /// Something for the client's Active Messages, which have it.
    News,
    Malformed(Rank, u8),
}

impl Engine {
    /// An engine for a rank whose cache has as many frames as `protocol` says.
    pub fn new(
        conduit: Arc<dyn Conduit>,
        space: Arc<AddressSpace>,
        protocol: Protocol,
        storage: StorageServer,
    ) -> Engine {
        let (frames, page_bytes) = (protocol.cache.frames() as usize, space.page_bytes());
        let large_pages = Arc::new(LargePages::new(space.own.pool, protocol.cache.frames()));
        let residents = Residents::new(protocol.cache.frames());
        Engine {
            barrier: Barrier::new(conduit.rank(), conduit.ranks()),
            farewell: Barrier::new(conduit.rank(), conduit.ranks()),
            messages: Arc::new(Messages::new(conduit.ranks())),
            lru: Lru::new(protocol.cache.frames()),
            readahead: ReadAhead::new(space.page_bytes(), protocol.cache.frames()),
            ahead: HashSet::new(),
            conduit,
            space,
            protocol,
            storage,
            parts: Slab::new(),
            transfers: Slab::new(),
            closing: Vec::new(),
            events: VecDeque::new(),
            actions: Vec::new(),
            outbox: VecDeque::new(),
            inbox: Vec::new(),
            work: VecDeque::new(),
            news: false,
            broken: None,
            residents,
            reserve: Reserve::new(frames as u32, page_bytes),
            used: vec![false; frames].into(),
            large_pages,
        }
    }

    /// The protocol's state.
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// The storage server.
    pub fn storage(&self) -> &StorageServer {
        &self.storage
    }

    /// The client's Active Messages.
    pub fn messages(&self) -> &Arc<Messages> {
        &self.messages
    }

    /// The memory of the pool.
    pub fn large_pages(&self) -> &Arc<LargePages> {
        &self.large_pages
    }

    /// The barrier.
    pub fn barrier(&mut self) -> &mut Barrier {
        &mut self.barrier
    }

    /// Makes a part of an operation wait for its page.
    pub fn submit(&mut self, part: Part) {
        let (page, access) = (part.piece.page, part.copy.access());
        let waiter = Waiter(self.parts.insert(part) as u32);
        self.handle(Event::Want { page, access, waiter });
        let range = self.readahead.on_miss(page, self.space.pages_of(page.home));
        self.fetch_ahead(page.home, range);
    }

    /// A page that was fetched ahead is used for the first time: fetches what may come after it.
    pub fn read_ahead(&mut self, page: PageId) {
        let range = self.readahead.on_use(page, self.space.pages_of(page.home));
        self.fetch_ahead(page.home, range);
    }

    fn fetch_ahead(&mut self, home: Rank, range: Option<RangeInclusive<u32>>) {
        for index in range.into_iter().flatten() {
            let page = PageId { home, index };
            let slot = self.space.slots.of(page);
            let is_here = self.space.memories.iter().flatten().any(|memory| memory.table.is_readable(slot));
            if self.ahead.len() >= self.ahead_max() {
                return;
            }
            if !is_here && !self.protocol.cache.contains(page) {
                self.ahead.insert(page);
                self.handle(Event::Prefetch(page));
            }
        }
    }

    /// Pages that may be on their way ahead of their use at a time: real ones queue behind them.
    fn ahead_max(&self) -> usize {
        (self.protocol.cache.frames() as usize / 2).max(1)
    }

    /// Starts writing every dirty page back; done when [`Engine::is_flushed`].
    pub fn flush(&mut self) {
        self.handle(Event::Flush);
    }

    /// Whether every page that was dirty at the last flush is written back, except those that the client has pinned: they
    /// are when it unpins them.
    pub fn is_flushed(&self) -> bool {
        let is_held = |page: PageId| page.home == self.space.rank && self.residents.has(page.index);
        self.protocol.cache.flushed() || self.protocol.cache.unflushed().all(is_held)
    }

    /// Arrives at the client's barrier.
    ///
    /// # Errors
    /// The client has notified already.
    pub fn notify(&mut self, name: barrier::Name) -> Result<(), barrier::Misuse> {
        let notified = self.barrier.notify(name, &mut post(&mut self.outbox, TAG_BARRIER));
        self.after_barrier();
        notified
    }

    /// Says that this rank's program is over. Once.
    pub fn leave(&mut self) {
        let left = self.farewell.notify(barrier::Name::Anonymous, &mut post(&mut self.outbox, TAG_FAREWELL));
        assert_eq!(left, Ok(()), "a rank leaves once");
        self.after_barrier();
    }

    /// Whether every rank's program is over.
    pub fn everyone_left(&self) -> bool {
        self.farewell.is_released()
    }

    /// An event that work outside the lock has led to.
    pub fn complete(&mut self, event: Event) {
        self.handle(event);
    }

    /// Takes up everything that has arrived and sets off what it calls for. Returns whether there was anything.
    ///
    /// # Errors
    /// A page could not be read or written, or a message made no sense: the job has to end.
    pub fn drive(&mut self) -> Result<bool, UserError> {
        let mut worked = self.flush_outbox();
        worked |= self.poll_conduit()?;
        worked |= self.storage.poll(&mut self.events, &mut self.work)?;
        worked |= self.poll_closing();
        self.handle_events();
        if !worked && self.work.is_empty() {
            self.handle(Event::Idle);
        }
        self.broken.take().map_or(Ok(worked), Err)
    }

    /// What is to be done without the lock, in this order.
    pub fn take_work(&mut self) -> Option<Work> {
        self.work.pop_front()
    }

    /// The conduit had no room for a transfer: it is to be done again.
    pub fn put_back(&mut self, work: Work) {
        self.work.push_front(work);
    }

    /// Whether something happened since the last call that waiting threads may wait for.
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    /// Whether messages wait for room in the conduit, so that nobody may sleep long.
    pub fn is_held_up(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// What the engine holds now; all of it is bounded by the frames of the job and the operations of the client.
    pub fn held(&self) -> Held {
        Held {
            messages: self.outbox.len(),
            parts: self.parts.len(),
            transfers: self.transfers.len(),
            storage_operations: self.storage.operations(),
            closing: self.closing.len(),
            ahead: self.ahead.len(),
            work: self.work.len(),
        }
    }

    fn poll_conduit(&mut self) -> Result<bool, UserError> {
        let (inbox, messages, news) = (&mut self.inbox, &self.messages, &mut self.news);
        let mut worked = self.conduit.poll(&mut |arrival| {
            let arrived = note(arrival, messages);
            *news |= matches!(arrived, Some(Arrived::News));
            inbox.extend(arrived);
        });
        let mut inbox = std::mem::take(&mut self.inbox);
        for arrived in inbox.drain(..) {
            worked = true;
            self.on_arrived(arrived)?;
        }
        self.inbox = inbox;
        Ok(worked)
    }

    fn on_arrived(&mut self, arrived: Arrived) -> Result<(), UserError> {
        match arrived {
            Arrived::News => {}
            Arrived::Protocol(from, message) => self.handle(Event::Message { from, message }),
            Arrived::Barrier(message) => {
                self.barrier.on_message(message, &mut post(&mut self.outbox, TAG_BARRIER));
                self.after_barrier();
            }
            Arrived::Farewell(message) => {
                self.farewell.on_message(message, &mut post(&mut self.outbox, TAG_FAREWELL));
                self.after_barrier();
            }
            Arrived::Complete(token) => match storage_server::operation_of(token) {
                Some(id) => self.storage.on_transferred(id, &mut self.events, &mut self.work),
                None => {
                    let outgoing = self.transfers.remove(token.0 as usize / 2);
                    self.handle(Event::Transferred(outgoing));
                }
            },
            Arrived::Malformed(from, tag) => {
                return Err(UserError::new(format!(
                    "rank {from} sent a message of unknown kind {tag}; do all ranks run the same version of vgasnet?"
                )));
            }
        }
        Ok(())
    }

    fn after_barrier(&mut self) {
        self.news |= self.barrier.is_released() || self.farewell.is_released();
        self.flush_outbox();
    }

    fn poll_closing(&mut self) -> bool {
        let (space, events, broken) = (&self.space, &mut self.events, &mut self.broken);
        let before = self.closing.len();
        self.closing.retain(|page| {
            let frame = space.own.table.poll_closed(space.slots.of(*page));
            if let Some(frame) = frame {
                hide(space, *page, frame, broken);
                events.push_back(Event::Closed(*page));
            }
            frame.is_none()
        });
        before != self.closing.len()
    }

    fn handle(&mut self, event: Event) {
        self.events.push_back(event);
        self.handle_events();
    }

    fn handle_events(&mut self) {
        loop {
            while let Some(event) = self.events.pop_front() {
                let mut actions = std::mem::take(&mut self.actions);
                let flushing = !self.protocol.cache.flushed();
                self.protocol.handle(event, &mut actions);
                self.news |= flushing && self.protocol.cache.flushed();
                for action in actions.drain(..) {
                    self.act(action);
                }
                self.actions = actions;
            }
            let Some(frame) = self.next_eviction() else { return };
            self.events.push_back(Event::Evict(frame));
        }
    }

    /// The frame to give up now, if any: because a page waits for it, or ahead of that.
    fn next_eviction(&mut self) -> Option<FrameId> {
        if self.protocol.cache.wants_frame() {
            self.reserve.on_starved();
            return self.victim();
        }
        let wants_more = self.reserve.wants_more(self.protocol.cache.frames_coming_free());
        // What was fetched ahead is not thrown out before its use.
        if wants_more { self.unused(|table, slot| !table.is_ahead(slot)) } else { None }
    }

    /// The frame that a page waits for: the least recently used that nobody uses now, else the least recently used.
    fn victim(&mut self) -> Option<FrameId> {
        if let Some(local) = &self.space.local {
            local.age();
        }
        let found = self.unused(|_, _| true);
        // A page that is in use now is waited for; one that the client holds might be for ever.
        let (space, cache, residents) = (&self.space, &self.protocol.cache, &self.residents);
        let is_held = |page: PageId| page.home == space.rank && residents.has(page.index);
        let passing = |frame| cache.evictable(frame) && cache.page_in(frame).is_some_and(|page| !is_held(page));
        found.or_else(|| self.lru.find(&space.own.pool, passing))
    }

    /// The least recently used frame whose page nobody uses now, and that suits.
    fn unused(&mut self, suits: impl Fn(&PageTable, Slot) -> bool) -> Option<FrameId> {
        let (space, cache) = (&self.space, &self.protocol.cache);
        let table = &space.own.table;
        let unused = |frame| {
            let page = cache.page_in(frame).filter(|_| cache.evictable(frame));
            page.map(|page| space.slots.of(page)).is_some_and(|slot| !table.is_pinned(slot) && suits(table, slot))
        };
        self.lru.find(&space.own.pool, unused)
    }

    fn act(&mut self, action: Action) {
        let table = &self.space.own.table;
        if let Action::Send { message, .. } = &action {
            if let Some(frame) = message.frame() {
                self.large_pages.on_use(frame);
                self.reserve.on_taken();
            }
        }
        match action {
            Action::Send { to, message } if to == self.space.rank => {
                self.events.push_back(Event::Message { from: to, message });
            }
            Action::Send { to, message } => self.send(to, &message.encode()),
            Action::Open { page, frame, access, waiters } => {
                self.space.own.pool.touch(frame);
                self.used[frame.0 as usize] = true;
                let slot = self.space.slots.of(page);
                table.open(slot, frame, access, !waiters.is_empty());
                // Operations that joined the fetch use it now.
                if self.ahead.remove(&page) && waiters.is_empty() {
                    table.mark_ahead(slot);
                }
                if !waiters.is_empty() {
                    let parts = self.take_parts(page, &waiters);
                    self.work.push_back(Work::Copies { page, frame, parts });
                }
            }
            Action::Close(page) => {
                let is_own = page.home == self.space.rank;
                if !(is_own && self.residents.put_off(page.index)) {
                    self.close(page);
                }
            }
            Action::Transfer(outgoing) => {
                let pool = &self.space.own.pool;
                let token = Token(self.transfers.insert(outgoing) as u64 * 2);
                self.work.push_back(Work::Put(Transfer {
                    peer: outgoing.forward.to,
                    peer_offset_bytes: pool.offset_bytes(outgoing.forward.frame),
                    own_offset_bytes: pool.offset_bytes(outgoing.from),
                    len_bytes: pool.page_bytes(),
                    token,
                }));
            }
            // Memory that nobody has written is zeros already.
            Action::Clear { page, frame } if !self.used[frame.0 as usize] => {
                self.events.push_back(Event::Cleared(page))
            }
            Action::Clear { page, frame } => self.work.push_back(Work::Clear { page, frame }),
            Action::Load { page, to, frame } => self.storage.load(page, to, frame, &mut self.work),
            Action::Store { page, from, frame } => self.storage.store(page, from, frame, &mut self.work),
        }
    }

    /// The parts that waited for a page and are done now.
    fn take_parts(&mut self, page: PageId, waiters: &[Waiter]) -> Vec<Part> {
        let parts: Vec<Part> = waiters.iter().map(|waiter| self.parts.remove(waiter.0 as usize)).collect();
        for _ in parts.iter().filter(|part| matches!(part.copy, Copy::Admit(_, None))) {
            self.residents.on_pinned(page.index);
        }
        parts
    }

    /// Lets nobody begin to use a page, and hides it once nobody does.
    fn close(&mut self, page: PageId) {
        match self.space.own.table.close(self.space.slots.of(page)) {
            Closing::Done(frame) => {
                hide(&self.space, page, frame, &mut self.broken);
                self.events.push_back(Event::Closed(page));
            }
            Closing::Pinned => self.closing.push(page),
        }
    }

    /// Sends a message, when the conduit has room for it.
    pub fn send(&mut self, to: Rank, bytes: &[u8]) {
        let taken = if self.outbox.is_empty() { self.conduit.send(to, bytes, &[], Urgency::Now) } else { Err(Busy) };
        if taken == Err(Busy) {
            self.outbox.push_back((to, bytes.to_vec()));
        }
    }

    fn flush_outbox(&mut self) -> bool {
        let mut sent = false;
        while let Some((to, bytes)) = self.outbox.front() {
            if self.conduit.send(*to, bytes, &[], Urgency::Now) == Err(Busy) {
                break;
            }
            self.outbox.pop_front();
            sent = true;
        }
        sent
    }
}

/// Takes a page that is closed and not pinned out of the segment, if it is shown there.
fn hide(space: &AddressSpace, page: PageId, frame: FrameId, broken: &mut Option<UserError>) {
    let hidden = space.local.as_ref().map_or(Ok(()), |local| local.hide(page, frame));
    if let Err(errno) = hidden {
        let error = std::io::Error::from_raw_os_error(errno);
        *broken = Some(UserError::new(format!("cannot unmap a page of the segment: {error}; raise vm.max_map_count")));
    }
}

/// Where a barrier puts its messages.
fn post(outbox: &mut VecDeque<(Rank, Vec<u8>)>, tag: u8) -> impl FnMut(Rank, barrier::Message) + '_ {
    move |to, message| outbox.push_back((to, message.encode(tag).to_vec()))
}

/// What a sink does: decodes and notes. What is for the client's Active Messages is copied there at once.
fn note(arrival: Arrival<'_>, messages: &Messages) -> Option<Arrived> {
    match arrival {
        Arrival::Complete(token) => Some(Arrived::Complete(token)),
        Arrival::Message { from, bytes } => {
            let tag = bytes.first().copied().unwrap_or_default();
            let known = match tag {
                TAG_BARRIER => barrier::Message::decode(bytes).map(Arrived::Barrier),
                TAG_FAREWELL => barrier::Message::decode(bytes).map(Arrived::Farewell),
                am::TAG_MESSAGE..=am::TAG_CREDIT => match messages.on_arrival(from, bytes) {
                    Taken::News => Some(Arrived::News),
                    Taken::Noted => return None,
                    Taken::Malformed => None,
                },
                _ => Message::decode(bytes).ok().map(|message| Arrived::Protocol(from, message)),
            };
            Some(known.unwrap_or(Arrived::Malformed(from, tag)))
        }
    }
}

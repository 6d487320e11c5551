//! Runs the protocol of one rank: takes its actions to the conduit and the storage, and brings their completions back.
//!
//! The [`Engine`] is single-threaded state behind a lock. The thread that has the lock calls [`Engine::drive`]. It then
//! carries out the resulting [`Work`] without the lock: nothing touches the client's memory or copies a page under the
//! lock. The [`Driver`] decides which thread drives and which sleep.

mod actions;
mod aging;
mod arrivals;
mod as_in_paper;
mod background;
mod block_frames;
mod driver;
mod eviction;
mod fault_service;
mod file_flushes;
mod file_sizes;
mod file_state;
mod files;
mod guests;
mod host_barriers;
mod job_barrier;
mod last_words;
mod loans;
mod locks;
mod outbox;
mod page_statistics;
mod pending;
mod performing;
mod pins;
mod prefetch;
mod serving;
mod shipping;
mod sleepers;
mod storage_queue;
mod storage_server;
mod tuning;
mod wait;
mod wait_mode;
mod work;
mod write_behind;
mod writes;

pub use arrivals::{Received, Receiver, TAG_ABOVE};
pub use driver::{Driver, Fail, Locked};
pub use file_flushes::OwnFlush;
pub use file_state::FileState;
pub use files::{Unwritten, joined};
pub use outbox::messages_in;
pub use pending::Pending;
pub use pins::TooManyPins;
pub use shipping::{Delivery, Shipment};
pub use storage_server::{BlockCopies, BlockPlace, EndedRead, OverlaidBlocks, PageRead, StorageServer};
pub use tuning::protocol;
pub use wait::CallerWork;
pub use wait_mode::WaitMode;
pub use work::Work;
pub use writes::{Purpose, WritesSince};

use crate::error::UserError;
use crate::memory::{AddressSpace, FRAMES_MIN, Frames};
use crate::request::Part;
use crate::stats;
use crate::storage::BLOCK_BYTES;
use arrivals::Arrived;
use eviction::page_released_by;
use files::OpenFiles;
use guests::Guests;
use last_words::LastWords;
use outbox::Outbox;
use page_statistics::PageStatistics;
use pins::PinSet;
use prefetch::Prefetch;
use serving::Served;
use shipping::Shipping;
use slab::Slab;
use std::collections::VecDeque;
use std::sync::Arc;
use vgasnet_conduit::Conduit;
use vgasnet_protocol::Rank;
use vgasnet_protocol::barrier::Barrier;
use vgasnet_protocol::coherence::{Access, Action, CoherenceBody, Event, Outgoing, PageId, Protocol, ToCache, Waiter};
use vgasnet_protocol::file_locks::FileLocks;
use vgasnet_protocol::ordered::OrderedMap;
use vgasnet_protocol::replacement::{BlockFrames, PolicyKind, Reserve};
use vgasnet_protocol::shipping::Meters;
use write_behind::WriteBehind;
use writes::KnownWrites;

/// First byte of the messages of the client's barrier; the coherence protocol's own tags are smaller.
const TAG_BARRIER: u8 = 32;

/// First byte of the messages of the barrier at the end of the job.
const TAG_FAREWELL: u8 = 33;

/// First byte of several messages of the coherence protocol that go as one.
const TAG_BUNDLE: u8 = 30;

/// The engine of one rank.
pub struct Engine {
    conduit: Arc<dyn Conduit>,
    space: Arc<AddressSpace>,
    protocol: Protocol,
    barrier: Barrier,
    farewell: Barrier,
    last_words: LastWords,
    receiver: Arc<dyn Receiver>,
    storage: StorageServer,
    frames: Frames,
    prefetch: Prefetch,
    guests: Guests,
    reserve: Reserve,
    block_frames: BlockFrames,
    /// Pages whose write-back was begun because they would be evicted soon.
    cleaned_ahead: u64,
    /// Pages go first that other ranks have, too.
    spares_only_copies: bool,
    pins: PinSet,
    /// More is lent than the pins allow, and asked back.
    awaits_loans: bool,
    /// The last whole drive has left nothing under way, and nothing has come or was asked for since, but messages for the rooms above.
    is_settled: bool,
    /// Parts that wait for a page; a [`Waiter`] is a place in it.
    parts: Slab<Part>,
    /// Page transfers under way.
    transfers: Slab<Outgoing>,
    /// Closing pages that are still pinned.
    closing: Vec<PageId>,
    events: VecDeque<Event>,
    actions: Vec<Action>,
    outbox: Outbox,
    shipping: Shipping,
    /// Requests of other ranks for bytes of pages.
    served: Slab<Served>,
    /// Messages to this home about pages of whose blocks jobs make use, until those end.
    held: OrderedMap<PageId, Vec<Event>>,
    page_statistics: PageStatistics,
    arrived: Vec<Arrived>,
    writes: KnownWrites,
    files: OpenFiles,
    write_behind: WriteBehind,
    locks: FileLocks,
    work: VecDeque<Work>,
    /// Transfers for which the conduit had no room, until the next drive.
    refused: Vec<Work>,
    /// An event has happened for which threads may wait, other than the completion of an operation.
    has_event: bool,
    /// Why the job has to end.
    broken: Option<UserError>,
}

/// How an engine goes about its work.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Chooses the frames to evict.
    pub policy: PolicyKind,
    /// Caching is cooperative, as the protocol's is.
    pub cooperative: bool,
    /// Small operations whose page is not here may be carried out where it is: what a request costs besides its bytes, as
    /// [`vgasnet_protocol::shipping::REQUEST_BYTES`]. `None`: their page is moved each time.
    pub ships: Option<u64>,
    /// Pages that leave the last pool which has them are offered to other ranks, so many at a time at most, and pages of others are
    /// kept in idle frames. 0: neither, as without cooperative caching.
    pub offers_max: u32,
}

impl Engine {
    /// An engine for the rank, pages and frames of `protocol`. Messages for the rooms above go to `receiver`.
    pub fn new(
        conduit: Arc<dyn Conduit>,
        space: Arc<AddressSpace>,
        protocol: Protocol,
        storage: StorageServer,
        receiver: Arc<dyn Receiver>,
        manner: Manner,
    ) -> Engine {
        let Manner { policy, cooperative, ships, offers_max } = manner;
        let (frames, page_bytes) = (protocol.cache.frames(), space.page_bytes());
        let meters = Meters::new(space.rank, page_bytes, frames, ships.unwrap_or_default());
        Engine {
            barrier: Barrier::new(conduit.rank(), conduit.ranks()),
            farewell: Barrier::new(conduit.rank(), conduit.ranks()),
            last_words: LastWords::default(),
            receiver,
            frames: Frames::new(Arc::clone(&space), frames, policy),
            prefetch: Prefetch::new(page_bytes, frames),
            guests: Guests::new(&*conduit, frames, if cooperative { offers_max } else { 0 }),
            reserve: Reserve::new(frames, page_bytes),
            block_frames: BlockFrames::new(frames, page_bytes / BLOCK_BYTES, FRAMES_MIN),
            cleaned_ahead: 0,
            spares_only_copies: true,
            pins: PinSet::new(frames),
            awaits_loans: false,
            is_settled: false,
            outbox: Outbox::new(Arc::clone(&conduit)),
            shipping: Shipping::new(meters, page_bytes, conduit.message_bytes_max(), ships.is_some(), cooperative),
            served: Slab::new(),
            held: OrderedMap::new(),
            page_statistics: PageStatistics::new(Arc::clone(&conduit), Arc::clone(&space), frames),
            locks: FileLocks::new(conduit.ranks(), conduit.message_bytes_max()),
            conduit,
            space,
            protocol,
            storage,
            parts: Slab::new(),
            transfers: Slab::new(),
            closing: Vec::new(),
            events: VecDeque::new(),
            actions: Vec::new(),
            arrived: Vec::new(),
            writes: KnownWrites::default(),
            files: OpenFiles::default(),
            write_behind: WriteBehind::default(),
            work: VecDeque::new(),
            refused: Vec::new(),
            has_event: false,
            broken: None,
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

    /// The frames of the own pool.
    pub fn frames(&self) -> &Frames {
        &self.frames
    }

    /// Pages by which streams move on: the first use of one page in so many is to be told.
    pub fn stream_step(&self) -> u32 {
        self.prefetch.step()
    }

    /// How many dirty pages were written back because they would be evicted soon, so far.
    pub fn cleaned_ahead(&self) -> u64 {
        self.cleaned_ahead
    }

    /// Takes a part of an operation whose page is not here: has it carried out where the page is, or makes it wait for the page.
    pub fn submit(&mut self, part: Part) {
        let kept = if self.may_ship(&part) { self.ship_or_keep(part) } else { Some(part) };
        kept.into_iter().for_each(|part| self.fetch_for(part));
    }

    /// Makes a part wait for its page.
    fn fetch_for(&mut self, part: Part) {
        let Some(part) = self.pass_or_hold(part) else { return };
        let page = part.piece.page;
        self.guests.on_missed();
        self.page_statistics.on_part(&part);
        // Puts of whole pages need no page ahead: they read none.
        if part.overwrites(self.space.page_bytes()) {
            let waiter = Waiter(self.parts.insert(part) as u32);
            return self.handle(Event::Overwrite { page, waiter });
        }
        self.outbox.begin_together();
        self.want(part);
        self.prefetch_after_miss(page);
        self.outbox.end_together();
    }

    /// As [`Engine::fetch_for`], for a part of another rank, or one that no stream is made of.
    fn want(&mut self, part: Part) {
        let Some(part) = self.pass_or_hold(part) else { return };
        if self.writes.are_noted() {
            self.note_wanted(&part);
        }
        let (page, access) = (part.piece.page, part.copy.access());
        let waiter = Waiter(self.parts.insert(part) as u32);
        self.handle(Event::Want { page, access, waiter });
    }

    /// As [`Engine::submit`], for a thread that waits for this part and nothing else. If the page, or one block of it, is to
    /// be read from the own disk, the thread may have to do that itself, and then calls [`Engine::end_read`].
    #[must_use]
    #[inline(never)]
    pub fn submit_or_read(&mut self, part: Part) -> Option<PageRead> {
        let page = part.piece.page;
        let blocks_to_read = self.storage.blocks_to_read();
        self.submit(part);
        let read = self.storage.take_read(page).or_else(|| self.storage.take_block_read(blocks_to_read));
        if read.is_some() {
            // What else the part has brought about is not to wait for the read.
            self.storage.advance(&mut self.work);
        }
        read
    }

    /// A thread has done the read of a page.
    ///
    /// # Errors
    /// The page could not be read: the job has to end.
    pub fn end_read(&mut self, read: EndedRead) -> Result<(), UserError> {
        self.is_settled = false;
        self.storage.end_read(read, &mut self.events, &mut self.work)?;
        self.handle_events();
        Ok(())
    }

    /// Starts writing every dirty page back; done when [`Engine::is_flushed`].
    pub fn flush(&mut self) {
        self.handle(Event::Flush);
    }

    /// Whether every page that was dirty at the last flush is written back. Pages that the client has pinned do not
    /// count: they are written back when it unpins them.
    pub fn is_flushed(&self) -> bool {
        self.protocol.cache.flushed() || self.protocol.cache.unflushed().all(|page| self.is_pinned(page))
    }

    /// Takes an event that results from work outside the lock.
    pub fn complete(&mut self, event: Event) {
        self.handle(event);
    }

    /// Handles everything that has arrived. Returns whether there was anything.
    ///
    /// # Errors
    /// A page could not be read or written, or a message made no sense: the job has to end.
    pub fn drive(&mut self) -> Result<bool, UserError> {
        let mut worked = self.is_settled && self.poll_conduit()?;
        if worked && self.is_settled {
            // What has come changes nothing here.
            return Ok(true);
        }
        self.work.extend(self.refused.drain(..));
        worked |= self.outbox.flush();
        worked |= self.poll_conduit()?;
        worked |= self.storage.poll(&mut self.events, &mut self.work)?;
        worked |= self.poll_closing();
        self.poll_loans();
        // Who waits for such a page to be forgotten looks for it: this engine does not.
        worked |= self.frames.retry_victims() && self.files.waiting > 0;
        self.handle_events();
        self.balance_frames();
        self.retry_held();
        self.retry_dismissed();
        self.write_aged();
        if self.shipping.is_waiting() {
            self.send_shipments();
        }
        self.storage.advance(&mut self.work);
        // A flush that finds nothing to write is done by that, and there may be no other drive.
        self.answer_flushes();
        self.is_settled = self.has_nothing_under_way();
        self.broken.clone().map_or(Ok(worked), Err)
    }

    /// Takes the next piece of work, to be done without the lock, in order.
    pub fn take_work(&mut self) -> Option<Work> {
        let work = self.work.pop_front();
        if let Some(Work::UnmapUnused { frame, .. }) = &work {
            self.frames.on_unmapping(*frame);
        }
        work
    }

    /// Takes back a transfer for which the conduit had no room. It is work again from the next drive on, and holds up no other
    /// until then.
    pub fn put_back(&mut self, work: Work) {
        self.refused.push(work);
    }

    /// Whether an event has happened since the last call for which threads may wait.
    pub fn take_event(&mut self) -> bool {
        std::mem::take(&mut self.has_event)
    }

    /// Whether messages or transfers wait for room in the conduit, so that nobody may sleep long.
    pub fn is_held_up(&self) -> bool {
        !self.outbox.is_empty() || !self.refused.is_empty()
    }

    /// Keeps a message of the rooms above, for which the conduit had no room, until it has.
    pub fn keep_message(&mut self, to: Rank, bytes: Box<[u8]>) {
        self.outbox.keep(to, bytes);
    }

    fn poll_closing(&mut self) -> bool {
        let before = self.closing.len();
        let closing = std::mem::take(&mut self.closing);
        for page in closing {
            match self.space.poll_closed(page) {
                Some(frame) => self.on_closed(page, frame),
                None => self.closing.push(page),
            }
        }
        before != self.closing.len()
    }

    fn handle(&mut self, event: Event) {
        self.events.push_back(event);
        self.handle_events();
    }

    /// Does nothing once the job has to end: the protocol's state may mean nothing then.
    fn handle_events(&mut self) {
        while self.broken.is_none() {
            while let Some(event) = self.events.pop_front() {
                if let Some(page) = self.page_at_home(&event) {
                    if self.storage.has_jobs(page) {
                        self.hold_back(page, event);
                        continue;
                    }
                    if let Err(refused) = self.storage.unmap_blocks(page) {
                        self.broken = Some(refused);
                        return;
                    }
                }
                self.note_message(&event);
                let noted = self.note_event(&event);
                let mut actions = std::mem::take(&mut self.actions);
                if stats::is_on() {
                    self.page_statistics.on_event(&event, &self.protocol.cache);
                }
                let released = page_released_by(&event);
                let flushing = !self.protocol.cache.flushed();
                if let Err(nonsense) = self.protocol.handle(event, &mut actions) {
                    self.broken = Some(arrivals::refused(nonsense));
                    return;
                }
                noted.into_iter().for_each(|page| self.note_writer(page));
                self.has_event |= flushing && self.protocol.cache.flushed();
                for action in actions.drain(..) {
                    if stats::is_on() {
                        self.page_statistics.on_action(&action);
                    }
                    self.act(action);
                }
                self.outbox.end_event();
                self.actions = actions;
                let frame = released.and_then(|page| self.protocol.cache.frame_of(page));
                frame.into_iter().for_each(|frame| self.frames.release(frame));
            }
            // A search without a victim may have found pages to be written back.
            match self.next_eviction() {
                Some(frame) => self.events.push_back(Event::Evict(frame)),
                None if self.events.is_empty() => return,
                None => {}
            }
        }
    }

    /// A page in the frame of an operation is whole.
    pub fn end_lay_over(&mut self, operation: usize) {
        self.storage.on_whole(operation, &mut self.events, &mut self.work);
        self.handle_events();
    }

    /// The page of a message to this home.
    fn page_at_home(&self, event: &Event) -> Option<PageId> {
        let Event::Message { message, .. } = event else { return None };
        let is_to_home = matches!(message.body, CoherenceBody::Home(_)) && self.is_home(message.page);
        is_to_home.then_some(message.page)
    }

    /// A message is about to come to the cache: notes what it means for the page's frame and its meter.
    fn note_message(&mut self, event: &Event) {
        let Event::Message { from, message } = event else { return };
        let CoherenceBody::Cache(body) = message.body else { return };
        let is_taken = match body {
            ToCache::Invalidate { .. } | ToCache::Relay { .. } => true,
            ToCache::Forward(forward) => forward.access == Access::Write,
            ToCache::Data { .. } => return self.note_source(*from, message.page),
            ToCache::Evicted { .. } => return self.files.forget_unwritten(message.page),
            ToCache::Unread => {
                let frame = self.protocol.cache.frame_of(message.page);
                return frame.into_iter().for_each(|frame| self.frames.spoil(frame));
            }
            _ => false,
        };
        if !is_taken {
            return;
        }
        // It is for its next holder to write, and may leave this pool if it comes back.
        self.files.forget_unwritten(message.page);
        if self.space.own.table.is_open(message.page, Access::Write) {
            self.shipping.meters.on_lost(message.page);
        }
    }

    /// Whether the page exists and this rank is its home.
    fn is_home(&self, page: PageId) -> bool {
        let spaces = self.protocol.spaces();
        spaces.has(page) && spaces.home(page) == self.space.rank
    }

    /// Whether the client has pinned the page.
    fn is_pinned(&self, page: PageId) -> bool {
        self.space.is_own(page) && self.pins.has(page.index)
    }
}

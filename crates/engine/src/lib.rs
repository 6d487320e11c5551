//! Runs the protocol of one rank: takes its actions to the conduit and the storage, and brings their completions back.
//!
//! The [`Engine`] is single-threaded state behind a lock. The thread that has the lock calls [`Engine::drive`]. It then
//! carries out the resulting [`Work`] without the lock: nothing touches the client's memory or copies a page under the
//! lock. The [`Driver`] decides which thread drives and which sleep.

mod actions;
mod aging;
mod arrivals;
mod arriving;
mod as_in_paper;
mod block_frames;
mod bytes;
mod driver;
mod eviction;
mod file_flushes;
mod file_sizes;
mod file_state;
mod files;
mod guests;
mod loans;
mod locks;
mod meeting;
mod meetings;
mod outbox;
mod page_statistics;
mod pending;
mod pins;
mod prefetch;
mod queue;
pub mod request;
mod small_operations;
mod status;
mod storage_queue;
mod storage_server;
mod tuning;
mod waiting;
mod work;
mod write_behind;
mod writes;

pub use arrivals::{Received, Receiver, TAG_ABOVE};
pub use driver::{CallerWork, Driver, Fail, Locked, WaitMode};
pub use file_flushes::OwnFlush;
pub use file_state::FileState;
pub use files::{Unwritten, joined};
pub use outbox::messages_in;
pub use pending::Pending;
pub use pins::TooManyPins;
pub use storage_server::{EndedRead, PageRead, StorageServer};
pub use tuning::protocol;
pub use work::{BlockCopies, BlockPlace, Delivery, OverlaidBlocks, Shipment, Work};
pub use writes::{Purpose, WritesSince};

use crate::request::Part;
use arrivals::Arrivals;
use bytes::Bytes;
use eviction::page_released_by;
use files::OpenFiles;
use guests::Guests;
use meetings::Meetings;
use outbox::Outbox;
use page_statistics::PageStatistics;
use pins::PinSet;
use prefetch::Prefetch;
use queue::Queue;
use status::Status;
use std::sync::Arc;
use vgasnet_conduit::Conduit;
use vgasnet_memory::{AddressSpace, FRAMES_MIN, Frames};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Access, CoherenceBody, Event, PageId, Protocol, ToCache};
use vgasnet_protocol::file_locks::FileLocks;
use vgasnet_protocol::replacement::{BlockFrames, PolicyKind, Reserve};
use vgasnet_protocol::shipping::Meters;
use vgasnet_settings::UserError;
use vgasnet_stats as stats;
use vgasnet_storage::BLOCK_BYTES;
use waiting::Waiting;
use write_behind::WriteBehind;
use writes::KnownWrites;

/// The engine of one rank. It joins parts with private state: its methods ask one part and hand the answer to another.
pub struct Engine {
    conduit: Arc<dyn Conduit>,
    space: Arc<AddressSpace>,
    protocol: Protocol,
    meetings: Meetings,
    arrivals: Arrivals,
    bytes: Bytes,
    outbox: Outbox,
    waiting: Waiting,
    queue: Queue,
    status: Status,
    storage: StorageServer,
    frames: Frames,
    prefetch: Prefetch,
    guests: Guests,
    reserve: Reserve,
    block_frames: BlockFrames,
    /// Number of early write-backs of pages that were due for eviction.
    cleaned_ahead: u64,
    /// Pages with a copy in another pool are evicted first.
    spares_only_copies: bool,
    pins: PinSet,
    /// More frames are lent than the pins allow, and have been asked back.
    awaits_loans: bool,
    /// Closing pages that are still pinned.
    closing: Vec<PageId>,
    page_statistics: PageStatistics,
    writes: KnownWrites,
    files: OpenFiles,
    write_behind: WriteBehind,
    locks: FileLocks,
}

/// An engine's options.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Chooses the frames to evict.
    pub policy: PolicyKind,
    /// Whether caching is cooperative; equal to the protocol's option.
    pub cooperative: bool,
    /// Small operations on absent pages may be carried out at the page's holder. The value is a request's overhead in
    /// bytes, as [`vgasnet_protocol::shipping::REQUEST_BYTES`]. `None`: the page is moved each time.
    pub ships: Option<u64>,
    /// Maximum number of pages on offer. The last resident copy of a page is offered to other ranks before its
    /// eviction, and pages of others are kept in idle frames. 0, as without cooperative caching: neither.
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
        options: EngineOptions,
    ) -> Engine {
        let EngineOptions { policy, cooperative, ships, offers_max } = options;
        let (frames, page_bytes) = (protocol.cache.frames(), space.page_bytes());
        let meters = Meters::new(space.rank, page_bytes, frames, ships.unwrap_or_default());
        Engine {
            meetings: Meetings::new(conduit.rank(), conduit.ranks()),
            arrivals: Arrivals::new(receiver),
            bytes: Bytes::new(
                space.rank,
                meters,
                page_bytes,
                conduit.message_bytes_max(),
                ships.is_some(),
                cooperative,
            ),
            outbox: Outbox::new(Arc::clone(&conduit)),
            waiting: Waiting::default(),
            queue: Queue::default(),
            status: Status::default(),
            frames: Frames::new(Arc::clone(&space), frames, policy),
            prefetch: Prefetch::new(page_bytes, frames),
            guests: Guests::new(&*conduit, frames, if cooperative { offers_max } else { 0 }),
            reserve: Reserve::new(frames, page_bytes),
            block_frames: BlockFrames::new(frames, page_bytes / BLOCK_BYTES, FRAMES_MIN),
            cleaned_ahead: 0,
            spares_only_copies: true,
            pins: PinSet::new(frames),
            awaits_loans: false,
            page_statistics: PageStatistics::new(Arc::clone(&conduit), Arc::clone(&space), frames),
            locks: FileLocks::new(conduit.ranks(), conduit.message_bytes_max()),
            conduit,
            space,
            protocol,
            storage,
            closing: Vec::new(),
            writes: KnownWrites::default(),
            files: OpenFiles::default(),
            write_behind: WriteBehind::default(),
        }
    }

    /// The transport and the job's address space.
    fn conduit_and_space(&self) -> (Arc<dyn Conduit>, Arc<AddressSpace>) {
        (Arc::clone(&self.conduit), Arc::clone(&self.space))
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

    /// Pages by which streams advance: the engine is told of the first use of one page in this many.
    pub fn stream_step(&self) -> u32 {
        self.prefetch.step()
    }

    /// Number of early write-backs of pages that were due for eviction.
    pub fn cleaned_ahead(&self) -> u64 {
        self.cleaned_ahead
    }

    /// Takes a part of an operation on an absent page: ships it to the page's holder or makes it wait for the page.
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
        // Puts of whole pages do not read, so no read-ahead follows.
        if part.overwrites(self.space.page_bytes()) {
            let waiter = self.waiting.add(part);
            return self.handle(Event::Overwrite { page, waiter });
        }
        self.outbox.begin_together();
        self.want(part);
        self.prefetch_after_miss(page);
        self.outbox.end_together();
    }

    /// As [`Engine::fetch_for`], for parts of other ranks and parts outside streams.
    fn want(&mut self, part: Part) {
        let Some(part) = self.pass_or_hold(part) else { return };
        if self.writes.are_noted() {
            self.note_wanted(&part);
        }
        let (page, access) = (part.piece.page, part.copy.access());
        let waiter = self.waiting.add(part);
        self.handle(Event::Want { page, access, waiter });
    }

    /// As [`Engine::submit`], for a thread that waits for this part only. If the page or one of its blocks is to be
    /// read from the own disk, the thread may have to do the read, and then calls [`Engine::end_read`].
    #[must_use]
    #[inline(never)]
    pub fn submit_or_read(&mut self, part: Part) -> Option<PageRead> {
        let page = part.piece.page;
        let blocks_to_read = self.storage.blocks_to_read();
        self.submit(part);
        let read = self.storage.take_read(page).or_else(|| self.storage.take_block_read(blocks_to_read));
        if read.is_some() {
            // Other operations started by the part must not wait for the read.
            self.storage.advance(self.queue.todo());
        }
        read
    }

    /// A thread has finished the read of a page.
    ///
    /// # Errors
    /// The page could not be read: the job has to end.
    pub fn end_read(&mut self, read: EndedRead) -> Result<(), UserError> {
        self.status.unsettle();
        self.storage.end_read(read, self.queue.todo())?;
        self.handle_events();
        Ok(())
    }

    /// Starts the write-back of all dirty pages. [`Engine::is_flushed`] reports completion.
    pub fn flush(&mut self) {
        self.handle(Event::Flush);
    }

    /// Whether every page dirty at the last flush is written back. Pages pinned by the client do not count: they are
    /// written back when it unpins them.
    pub fn is_flushed(&self) -> bool {
        self.protocol.cache.flushed() || self.protocol.cache.unflushed().all(|page| self.is_pinned(page))
    }

    /// Handles an event that results from work outside the lock.
    pub fn complete(&mut self, event: Event) {
        self.handle(event);
    }

    /// Handles all arrivals. Returns whether there were any.
    ///
    /// # Errors
    /// A page could not be read or written, or a message is malformed: the job has to end.
    pub fn drive(&mut self) -> Result<bool, UserError> {
        let mut worked = self.status.is_settled() && self.poll_conduit()?;
        if worked && self.status.is_settled() {
            // The arrivals were for the rooms above only.
            return Ok(true);
        }
        self.queue.retry_refused();
        worked |= self.outbox.flush();
        worked |= self.poll_conduit()?;
        worked |= self.storage.poll(self.queue.todo())?;
        worked |= self.poll_closing();
        self.poll_loans();
        // Threads that wait for such a page to be dropped look for it; the engine does not.
        worked |= self.frames.retry_victims() && self.is_awaited_for_files();
        self.handle_events();
        self.balance_frames();
        self.retry_held();
        self.retry_dismissed();
        self.write_aged();
        if self.bytes.is_waiting() {
            self.send_shipments();
        }
        self.storage.advance(self.queue.todo());
        // A flush without dirty data completes here, and no other drive may follow.
        self.answer_flushes();
        self.status.end_drive(self.has_nothing_in_flight());
        self.status.check().map(|()| worked)
    }

    /// Takes the next work item, to be performed in order and without the lock.
    pub fn take_work(&mut self) -> Option<Work> {
        let work = self.queue.next_work();
        if let Some(Work::UnmapUnused { frame, .. }) = &work {
            self.frames.on_unmapping(*frame);
        }
        work
    }

    /// Whether work items wait for a thread.
    fn has_work(&self) -> bool {
        self.queue.has_work()
    }

    /// A request has arrived: the next drive is a full one.
    fn unsettle(&mut self) {
        self.status.unsettle();
    }

    /// Whether threads wait for a file event without notification.
    fn is_awaited_for_files(&self) -> bool {
        self.files.waiting > 0
    }

    /// Takes back a transfer refused by the conduit. It is queued again at the next drive and delays no other work
    /// until then.
    pub fn put_back(&mut self, work: Work) {
        self.queue.put_back(work);
    }

    /// Whether an event has happened since the last call for which threads may be waiting.
    pub fn take_event(&mut self) -> bool {
        self.status.take_event()
    }

    /// Whether messages or transfers wait for room in the conduit, which bounds all sleeps.
    pub fn is_held_up(&self) -> bool {
        !self.outbox.is_empty() || self.queue.has_refused()
    }

    /// Keeps a message of the rooms above until the conduit has room.
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
        self.queue.raise(event);
        self.handle_events();
    }

    /// Stops once the job has to end, since the protocol's state may be inconsistent.
    fn handle_events(&mut self) {
        while !self.status.is_broken() {
            while let Some(event) = self.queue.next_event() {
                if let Some(page) = self.page_at_home(&event) {
                    if self.storage.has_jobs(page) {
                        self.bytes.hold(page, event);
                        continue;
                    }
                    if let Err(refused) = self.storage.unmap_blocks(page) {
                        self.status.break_by(refused);
                        return;
                    }
                }
                self.note_message(&event);
                let noted = self.note_event(&event);
                let mut actions = self.queue.take_actions();
                if stats::is_on() {
                    self.page_statistics.on_event(&event, &self.protocol.cache);
                }
                let released = page_released_by(&event);
                let flushing = !self.protocol.cache.flushed();
                if let Err(violation) = self.protocol.handle(event, &mut actions) {
                    self.status.break_by(arrivals::refused(violation));
                    return;
                }
                noted.into_iter().for_each(|page| self.note_writer(page));
                self.status.note_event_if(flushing && self.protocol.cache.flushed());
                for action in actions.drain(..) {
                    if stats::is_on() {
                        self.page_statistics.on_action(&action);
                    }
                    self.act(action);
                }
                self.outbox.end_event();
                self.queue.return_actions(actions);
                let frame = released.and_then(|page| self.protocol.cache.frame_of(page));
                frame.into_iter().for_each(|frame| self.frames.release(frame));
            }
            // A search without a victim may have queued write-backs.
            match self.next_eviction() {
                Some(frame) => self.queue.raise(Event::Evict(frame)),
                None if !self.queue.has_events() => return,
                None => {}
            }
        }
    }

    /// The page in an operation's frame is complete.
    pub fn end_lay_over(&mut self, operation: usize) {
        self.storage.on_whole(operation, self.queue.todo());
        self.handle_events();
    }

    /// The page of a message to this home.
    fn page_at_home(&self, event: &Event) -> Option<PageId> {
        let Event::Message { message, .. } = event else { return None };
        let is_to_home = matches!(message.body, CoherenceBody::Home(_)) && self.is_home(message.page);
        is_to_home.then_some(message.page)
    }

    /// Notes the effect of a message to the cache on the page's frame and meter.
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
                return frame.into_iter().for_each(|frame| self.frames.mark_filled(frame));
            }
            _ => false,
        };
        if !is_taken {
            return;
        }
        // The next holder will write it, and it may leave this pool if it comes back.
        self.files.forget_unwritten(message.page);
        if self.space.own.table.is_open(message.page, Access::Write) {
            self.bytes.on_lost(message.page);
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

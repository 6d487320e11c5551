//! Runs the protocol of one rank: takes its actions to the conduit and the storage, and brings their completions back.
//!
//! The [`Engine`] is single-threaded state behind a lock. The thread that has the lock calls [`Engine::drive`]. It then
//! carries out the resulting [`Work`] without the lock: nothing touches the client's memory or copies a page under the
//! lock. The [`Driver`] decides which thread drives and which sleep.

mod actions;
mod arrivals;
mod caching_bar;
mod closing_reports;
mod drive;
mod driver;
mod evicting;
mod fault_service;
mod fetching;
mod file_service;
mod file_waits;
mod file_writes;
mod host_barriers;
mod job_barrier;
mod outbox;
mod page_statistics;
mod paging;
mod pending;
mod performing;
mod pinning;
pub mod request;
mod serving;
mod shared_files;
mod shipping;
mod sleepers;
mod storage_server;
mod tuning;
mod wait;
mod wait_mode;
mod work;

pub use arrivals::{Received, Receiver, TAG_ABOVE};
pub use driver::{Driver, Fail, Locked};
pub use file_service::{FileState, OwnFlush, Purpose, Unwritten, WritesSince, joined};
pub use outbox::messages_in;
pub use paging::TooManyPins;
pub use pending::Pending;
pub use shipping::{Delivery, Shipment};
pub use storage_server::{BlockCopies, BlockPlace, EndedRead, OverlaidBlocks, PageRead, StorageServer};
pub use tuning::protocol;
pub use wait::CallerWork;
pub use wait_mode::WaitMode;
pub use work::Work;

use crate::request::Part;
use arrivals::Arrived;
use closing_reports::ClosingReports;
use file_service::FileService;
use outbox::Outbox;
use page_statistics::PageStatistics;
use paging::Paging;
use serving::Served;
use shipping::Shipping;
use slab::Slab;
use std::collections::VecDeque;
use std::sync::Arc;
use vgasnet_conduit::Conduit;
use vgasnet_memory::{AddressSpace, Frames};
use vgasnet_protocol::Rank;
use vgasnet_protocol::barrier::Barrier;
use vgasnet_protocol::coherence::{Action, Event, Outgoing, PageId, Protocol, Waiter};
use vgasnet_protocol::ordered::OrderedMap;
use vgasnet_protocol::replacement::PolicyKind;
use vgasnet_protocol::shipping::Meters;
use vgasnet_settings::UserError;

/// First byte of the client barrier's messages. The coherence protocol's own tags are smaller.
const TAG_BARRIER: u8 = 32;

/// First byte of the messages of the barrier at the end of the job.
const TAG_FAREWELL: u8 = 33;

/// First byte of a bundle of coherence messages.
const TAG_BUNDLE: u8 = 30;

/// The engine of one rank.
pub struct Engine {
    conduit: Arc<dyn Conduit>,
    space: Arc<AddressSpace>,
    protocol: Protocol,
    barrier: Barrier,
    farewell: Barrier,
    closing_reports: ClosingReports,
    receiver: Arc<dyn Receiver>,
    storage: StorageServer,
    paging: Paging,
    /// Nothing is in flight and no request has arrived since the last full drive, except messages for the rooms above.
    is_settled: bool,
    /// Parts waiting for a page; a [`Waiter`] is an index into it.
    parts: Slab<Part>,
    /// Page transfers in flight.
    transfers: Slab<Outgoing>,
    events: VecDeque<Event>,
    actions: Vec<Action>,
    outbox: Outbox,
    shipping: Shipping,
    /// Requests of other ranks for bytes of pages.
    served: Slab<Served>,
    /// Messages to this home about pages with jobs on their blocks, held until the jobs end.
    held: OrderedMap<PageId, Vec<Event>>,
    page_statistics: PageStatistics,
    arrived: Vec<Arrived>,
    files: FileService,
    work: VecDeque<Work>,
    /// Transfers refused by the conduit for lack of room, until the next drive.
    refused: Vec<Work>,
    /// An event other than an operation's completion has happened, and threads may be waiting for it.
    has_event: bool,
    /// The error that ends the job.
    broken: Option<UserError>,
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
    /// What the engine does to save time later.
    pub optimisations: Optimisations,
}

/// Optimisations of an engine. A job uses all; the cluster model measures them one by one.
#[derive(Clone, Copy, Debug)]
pub struct Optimisations {
    /// Pages are read and evicted ahead of need.
    pub works_ahead: bool,
    /// Pages with a copy in another pool are evicted first.
    pub spares_only_copies: bool,
    /// Messages to a peer are sent together.
    pub bundles: bool,
}

impl Optimisations {
    /// All optimisations.
    pub const ALL: Optimisations = Optimisations { works_ahead: true, spares_only_copies: true, bundles: true };
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
        let EngineOptions { cooperative, ships, optimisations, .. } = options;
        let (frames, page_bytes) = (protocol.cache.frames(), space.page_bytes());
        let meters = Meters::new(space.rank, page_bytes, frames, ships.unwrap_or_default());
        Engine {
            barrier: Barrier::new(conduit.rank(), conduit.ranks()),
            farewell: Barrier::new(conduit.rank(), conduit.ranks()),
            closing_reports: ClosingReports::default(),
            receiver,
            paging: Paging::new(Arc::clone(&space), conduit.ranks(), frames, &options),
            is_settled: false,
            outbox: Outbox::new(Arc::clone(&conduit), optimisations.bundles),
            shipping: Shipping::new(meters, page_bytes, conduit.message_bytes_max(), ships.is_some(), cooperative),
            served: Slab::new(),
            held: OrderedMap::new(),
            page_statistics: PageStatistics::new(Arc::clone(&conduit), Arc::clone(&space), frames),
            files: FileService::new(space.rank, conduit.ranks(), conduit.message_bytes_max()),
            conduit,
            space,
            protocol,
            storage,
            parts: Slab::new(),
            transfers: Slab::new(),
            events: VecDeque::new(),
            actions: Vec::new(),
            arrived: Vec::new(),
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
        self.paging.frames()
    }

    /// Pages by which streams advance: the engine is told of the first use of one page in this many.
    pub fn stream_step(&self) -> u32 {
        self.paging.stream_step()
    }

    /// Number of early write-backs of pages that were due for eviction.
    pub fn cleaned_ahead(&self) -> u64 {
        self.paging.cleaned_ahead()
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
        self.paging.on_missed();
        self.page_statistics.on_part(&part);
        // Puts of whole pages do not read, so no read-ahead follows.
        if part.overwrites(self.space.page_bytes()) {
            let waiter = Waiter(self.parts.insert(part) as u32);
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
        if self.notes_writes() {
            self.note_wanted(&part);
        }
        let (page, access) = (part.piece.page, part.copy.access());
        let waiter = Waiter(self.parts.insert(part) as u32);
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
            self.storage.advance(&mut self.work);
        }
        read
    }

    /// A thread has finished the read of a page.
    ///
    /// # Errors
    /// The page could not be read: the job has to end.
    pub fn end_read(&mut self, read: EndedRead) -> Result<(), UserError> {
        self.is_settled = false;
        self.storage.end_read(read, &mut self.events, &mut self.work)?;
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
        self.protocol.cache.flushed() || self.protocol.cache.unflushed().all(|page| self.paging.is_pinned(page))
    }

    /// Handles an event that results from work outside the lock.
    pub fn complete(&mut self, event: Event) {
        self.handle(event);
    }

    /// Takes the next work item, to be performed in order and without the lock.
    pub fn take_work(&mut self) -> Option<Work> {
        let work = self.work.pop_front();
        if let Some(Work::UnmapUnused { frame, .. }) = &work {
            self.paging.on_unmapping(*frame);
        }
        work
    }

    /// Takes back a transfer refused by the conduit. It is queued again at the next drive and delays no other work
    /// until then.
    pub fn put_back(&mut self, work: Work) {
        self.refused.push(work);
    }

    /// Whether an event has happened since the last call for which threads may be waiting.
    pub fn take_event(&mut self) -> bool {
        std::mem::take(&mut self.has_event)
    }

    /// Whether messages or transfers wait for room in the conduit, which bounds all sleeps.
    pub fn is_held_up(&self) -> bool {
        !self.outbox.is_empty() || !self.refused.is_empty()
    }

    /// Keeps a message of the rooms above until the conduit has room.
    pub fn keep_message(&mut self, to: Rank, bytes: Box<[u8]>) {
        self.outbox.keep(to, bytes);
    }

    /// The page in an operation's frame is complete.
    pub fn end_lay_over(&mut self, operation: usize) {
        self.storage.on_whole(operation, &mut self.events, &mut self.work);
        self.handle_events();
    }

    /// Whether the page exists and this rank is its home.
    fn is_home(&self, page: PageId) -> bool {
        let spaces = self.protocol.spaces();
        spaces.has(page) && spaces.home(page) == self.space.rank
    }
}

//! The engine of one rank.

mod actions;
mod arriving;
mod check;
mod drive;
mod evicting;
mod fetching;
mod file_writes;
mod meeting;
mod pending;
mod pinning;
mod shared_files;
mod small_operations;
mod striding;

use small_operations::Kept;

pub use pending::Pending;

use crate::arrivals::{Arrivals, Receiver};
use crate::bytes::Bytes;
use crate::file_service::FileService;
use crate::meetings::Meetings;
use crate::neighbour_reads::{NeighbourRead, NeighbourReads};
use crate::outbox::Outbox;
use crate::page_statistics::PageStatistics;
use crate::paging::Paging;
use crate::queue::Queue;
use crate::request::Part;
use crate::status::Status;
use crate::storage_server::{EndedRead, PageRead, StorageServer};
use crate::waiting::Waiting;
use crate::work::Work;
use std::sync::Arc;
use vgasnet_conduit::Conduit;
use vgasnet_memory::{AddressSpace, Frames};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Event, PageId, Protocol};
use vgasnet_protocol::replacement::PolicyKind;
use vgasnet_protocol::shipping::Meters;
use vgasnet_protocol::strides::Strides;
use vgasnet_settings::UserError;

/// The engine of one rank. It joins components with private state: its methods ask one component and hand the answer to
/// another.
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
    paging: Paging,
    files: FileService,
    page_statistics: PageStatistics,
    neighbour_reads: Arc<NeighbourReads>,
    /// `None` if nothing is read ahead.
    strides: Option<Strides>,
}

/// A read left to the thread that waits for it.
pub enum ThreadRead {
    /// Of a page or block of the own disk.
    Own(PageRead),
    /// Of bytes of a neighbour's page.
    Neighbour(NeighbourRead),
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
        assert_eq!(conduit.rank(), space.rank, "the conduit and the address space are of one rank");
        let EngineOptions { cooperative, ships, optimisations, .. } = options;
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
            outbox: Outbox::new(Arc::clone(&conduit), optimisations.bundles),
            waiting: Waiting::default(),
            queue: Queue::default(),
            status: Status::default(),
            paging: Paging::new(Arc::clone(&space), conduit.ranks(), frames, &options),
            page_statistics: PageStatistics::new(Arc::clone(&conduit), Arc::clone(&space), frames),
            strides: optimisations.works_ahead.then(Strides::default),
            neighbour_reads: NeighbourReads::new(Arc::clone(&space), protocol.spaces().clone()),
            files: FileService::new(space.rank, conduit.ranks(), conduit.message_bytes_max()),
            conduit,
            space,
            protocol,
            storage,
        }
    }

    /// The transport and the job's address space.
    pub(crate) fn conduit_and_space(&self) -> (Arc<dyn Conduit>, Arc<AddressSpace>) {
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

    /// Updates the rows that are counted by inspection. Called before a snapshot.
    pub fn count_used(&mut self) {
        self.page_statistics.count_used();
    }

    /// Takes a part of an operation on an absent page: ships it to the page's holder or makes it wait for the page.
    pub fn submit(&mut self, part: Part) {
        let end_bytes = part.piece.offset_bytes + part.piece.len_bytes;
        assert!(end_bytes <= self.space.page_bytes(), "a part lies in its page, {:?}", part.piece.page);
        let piece = part.piece;
        match self.ship_or_keep(part) {
            Kept::Nothing => self.read_ahead_of(&piece),
            Kept::ToFetch(part) => self.fetch_for(part),
            Kept::ToShip(part, home) => {
                self.bytes.ship(home, part);
                self.read_ahead_of(&piece);
            }
        }
    }

    /// Makes a part wait for its page.
    fn fetch_for(&mut self, part: Part) {
        let Some(part) = self.pass_or_hold(part) else { return };
        let page = part.piece.page;
        debug_assert!(self.protocol.spaces().has(page), "{page:?} is asked for, and exists");
        self.paging.on_missed();
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
        if self.notes_writes() {
            self.note_wanted(&part);
        }
        let (page, access) = (part.piece.page, part.copy.access());
        debug_assert!(self.protocol.spaces().has(page), "{page:?} exists");
        let waiter = self.waiting.add(part);
        self.handle(Event::Want { page, access, waiter });
    }

    /// As [`Engine::submit`], for a thread that waits for this part only. The thread may have to read the page or one
    /// of its blocks from the own disk, and then calls [`Engine::end_read`]. Or it may have to read the bytes at a
    /// neighbour, and calls [`Engine::ship`] if it cannot.
    #[must_use]
    #[inline(never)]
    pub fn submit_or_read(&mut self, part: Part) -> Option<ThreadRead> {
        let (piece, blocks_to_read) = (part.piece, self.storage.blocks_to_read());
        let is_in_blocks = match self.ship_or_keep(part) {
            Kept::Nothing => true,
            Kept::ToFetch(part) => {
                self.fetch_for(part);
                false
            }
            Kept::ToShip(part, home) if self.neighbour_reads.may_read(&part, home) => {
                self.read_ahead_of(&piece);
                return Some(ThreadRead::Neighbour(self.neighbour_reads.read(part, home)));
            }
            Kept::ToShip(part, home) => {
                self.bytes.ship(home, part);
                true
            }
        };
        let read = self.storage.take_read(piece.page).or_else(|| self.storage.take_block_read(blocks_to_read));
        if is_in_blocks {
            self.read_ahead_of(&piece);
        }
        if read.is_some() {
            // Other operations started by the part must not wait for the read.
            self.storage.advance(self.queue.todo());
        }
        read.map(ThreadRead::Own)
    }

    /// Ships a part that could not be read at its neighbour.
    pub fn ship(&mut self, part: Part, home: Rank) {
        self.status.unsettle();
        self.bytes.ship(home, part);
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
        self.protocol.cache.flushed() || self.protocol.cache.unflushed().all(|page| self.paging.is_pinned(page))
    }

    /// Handles an event that results from work outside the lock.
    pub fn complete(&mut self, event: Event) {
        self.handle(event);
    }

    /// Takes the next work item, to be performed in order and without the lock.
    pub fn take_work(&mut self) -> Option<Work> {
        let work = self.queue.next_work();
        if let Some(Work::UnmapUnused { pages }) = &work {
            self.paging.on_unmapping(pages);
        }
        work
    }

    /// Whether work items wait for a thread.
    pub(crate) fn has_work(&self) -> bool {
        self.queue.has_work()
    }

    /// A request has arrived: the next drive is a full one.
    pub(crate) fn unsettle(&mut self) {
        self.status.unsettle();
    }

    /// A thread begins to wait for a file event, or ends its wait.
    pub(crate) fn await_files(&mut self, is_awaited: bool) {
        self.files.set_awaited(is_awaited);
    }

    /// Whether threads wait for a file event without notification.
    pub(crate) fn is_awaited_for_files(&self) -> bool {
        self.files.is_awaited()
    }

    /// Takes back a transfer refused by the conduit. It is queued again at the next drive and delays no other work
    /// until then.
    pub fn put_back(&mut self, work: Work) {
        self.queue.put_back(work);
    }

    /// Whether an event has happened since the last call for which threads may be waiting.
    pub fn take_news(&mut self) -> bool {
        self.status.take_news()
    }

    /// Whether messages or transfers wait for room in the conduit, which bounds all sleeps.
    pub fn is_held_up(&self) -> bool {
        !self.outbox.is_empty() || self.queue.has_refused()
    }

    /// Keeps a message of the rooms above until the conduit has room.
    pub fn keep_message(&mut self, to: Rank, bytes: Box<[u8]>) {
        self.outbox.keep(to, bytes);
    }

    /// The page in an operation's frame is complete.
    pub fn end_lay_over(&mut self, operation: usize) {
        self.storage.on_whole(operation, self.queue.todo());
        self.handle_events();
    }

    /// Whether the page exists and this rank is its home.
    fn is_home(&self, page: PageId) -> bool {
        let spaces = self.protocol.spaces();
        spaces.has(page) && spaces.home(page) == self.space.rank
    }
}

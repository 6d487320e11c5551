//! The runtime of a rank from attach on: its engine with the helper thread, and the rooms above.

use super::attach::segments_of;
use super::{ATTACH, ranks_on_host, say, threads};
use crate::am::{self, Am, Handlers, Messages};
use crate::coll::Coll;
use crate::fault;
use crate::files::Files;
use crate::ops::{CopySettings, Ops};
use std::io;
use std::sync::{Arc, mpsc};
use std::thread;
use vgasnet_conduit::Conduit;
use vgasnet_engine::request::Completions;
use vgasnet_engine::{self as engine, CallerWork, Driver, Engine, EngineOptions, Fail, Optimisations, StorageServer};
use vgasnet_memory::{
    AddressSpace, BlockMapper, Loans, MappingRoom, PageMapper, READ_COPIES_MIN, ReadCopies, RemapMapper, Segment,
    SegmentView, Segments, Shape, all_frames, block_frames, guard_end, memories, offers_copies, staging_frames,
};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::FrameId;
use vgasnet_protocol::guests::offers_max;
use vgasnet_protocol::replacement::PolicyKind;
use vgasnet_protocol::shipping::REQUEST_BYTES;
use vgasnet_protocol::{Hosts, Limits, RankSizes};
use vgasnet_settings::Config;
use vgasnet_settings::UserError;
use vgasnet_storage::{BLOCK_BYTES, Storage};
use vgasnet_sys::interposed::{self, Refused};
use vgasnet_sys::observers::is_under_valgrind;

/// The state of an attached rank.
pub struct Runtime {
    space: Arc<AddressSpace>,
    driver: Arc<Driver>,
    ops: Arc<Ops>,
    am: Arc<Am>,
    coll: Arc<Coll>,
    files: Files,
}

/// The work for client threads in a call: collectives, then handlers.
struct Calls {
    am: Arc<Am>,
    coll: Arc<Coll>,
}

impl CallerWork for Calls {
    fn may_work(&self) -> bool {
        !am::is_in_handler()
    }

    fn is_pending(&self) -> bool {
        self.am.messages().has_pending() || self.coll.has_work()
    }

    fn work(&self) -> bool {
        // Collectives first: handlers may arrive as fast as they run.
        self.coll.advance() || self.am.run_one()
    }
}

impl Runtime {
    /// Starts the engine, the threads and the rooms above, for a rank whose conduit has attached with these shapes.
    ///
    /// # Errors
    /// The system refuses a thread, a mapping or a signal handler.
    pub fn new(
        conduit: Arc<dyn Conduit>,
        config: &Config,
        segments: Box<[Segment]>,
        shapes: &[Shape],
        storage: Box<dyn Storage>,
        handlers: Arc<Handlers>,
        fail: Fail,
    ) -> Result<Runtime, UserError> {
        let rank = conduit.rank();
        let own = shapes[rank.index()];
        let memories = memories(&*conduit, shapes, config.page_bytes as usize, config.caching.peer_memory);
        let space = AddressSpace::new(rank, Segments::new(segments), memories);
        let (view, block_mapper) = open_view(&conduit, &space, shapes, config)?;
        let space = Arc::new(space.with_view(view.clone()));
        let page_bytes = space.page_bytes();
        let (first_of_blocks, blocks) = blocks_of(own, page_bytes);
        let staging = (own.frames..first_of_blocks.0).map(FrameId).collect();
        let segments = segments_of(shapes, config);
        let server = StorageServer::new(Arc::clone(&space), storage, staging, (first_of_blocks, blocks));
        let mut server = server.with_homes(segments.clone());
        if let Some((mapper, most)) = block_mapper {
            server = server.with_mapped_blocks(mapper, most);
        }
        let sizes = shapes.iter().map(|Shape { pages, frames }| RankSizes { pages: *pages, frames: *frames });
        let limits = Limits::new(rank, sizes).with_homes(segments);
        let hosts = Hosts::of((0..conduit.ranks()).map(|rank| conduit.host_of(Rank(rank))));
        let protocol = engine::protocol(limits, hosts, config.caching.cooperative, page_bytes);
        let protocol = if config.caching.home_keeps { protocol.keeping_at_home() } else { protocol };
        let messages = Arc::new(Messages::new(&*conduit, handlers));
        let spin_us = default_spin_us(&*conduit);
        let options = EngineOptions {
            policy: PolicyKind::default(),
            cooperative: config.caching.cooperative,
            ships: config.caching.ships.then_some(REQUEST_BYTES),
            offers_max: if config.caching.keeps_guests { offers_max(shapes[rank.index()].frames) } else { 0 },
            optimisations: Optimisations::ALL,
        };
        let engine = Engine::new(conduit, Arc::clone(&space), protocol, server, Arc::clone(&messages) as _, options);
        let driver = Arc::new(Driver::new(engine, Arc::new(Completions::default()), config.caching.cooperative, fail));
        driver.set_spin(spin_us);
        if let Some(view) = view {
            let installed = fault::install(view, Arc::clone(&driver), guard_end(space.own_segment()));
            installed.map_err(|errno| refused("handle SIGSEGV", &io::Error::from_raw_os_error(errno)))?;
            put_interposed_in_place(rank);
        }
        let (helped, prepared) = (Arc::clone(&driver), Arc::clone(&driver));
        start_thread("vgasnet-helper", move || helped.help())?;
        start_thread("vgasnet-memory", move || prepared.prepare_memory())?;
        Ok(Runtime::on(driver, messages, config))
    }

    /// The rooms above an engine. They live as long as the process, since they and the driver refer to each other.
    fn on(driver: Arc<Driver>, messages: Arc<Messages>, config: &Config) -> Runtime {
        let cache_bytes = config.get_cache_bytes as usize;
        let copies = CopySettings { cache_bytes, checks: config.checks_readonly, report: super::report };
        let ops = Arc::new(Ops::new(Arc::clone(&driver), config.caching.cooperative, config.strict, copies));
        let am = Arc::new(Am::new(Arc::clone(&ops), messages));
        let coll = Coll::new(Arc::clone(&am));
        driver.set_caller_work(Arc::new(Calls { am: Arc::clone(&am), coll: Arc::clone(&coll) }));
        let files = Files::new(Arc::clone(&coll), Arc::clone(&ops), Arc::new(say));
        Runtime { space: Arc::clone(driver.space()), driver, ops, am, coll, files }
    }

    /// The job's address space.
    #[inline]
    pub fn space(&self) -> &AddressSpace {
        &self.space
    }

    /// The driver of this rank's engine, also used to wait.
    #[inline]
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Gets and puts, blocking or not; pins and hints.
    #[inline]
    pub fn ops(&self) -> &Ops {
        &self.ops
    }

    /// The client's Active Messages.
    pub fn am(&self) -> &Am {
        &self.am
    }

    /// Shared files.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// The collectives of teams.
    pub fn coll(&self) -> &Coll {
        &self.coll
    }
}

/// The first block frame of a rank, and its number of blocks.
fn blocks_of(own: Shape, page_bytes: usize) -> (FrameId, usize) {
    let first = own.frames + staging_frames(page_bytes);
    (FrameId(first), block_frames(own.frames, page_bytes) as usize * page_bytes / BLOCK_BYTES)
}

/// Copies of blocks for loads take one byte for this many of the pool, and at most so many.
const READ_COPIES_PART: usize = 16;
const READ_COPIES_BYTES_MAX: usize = 64 << 20;

/// Maximum number of copies of blocks at a rank.
fn read_copies(own: Shape, page_bytes: usize) -> usize {
    (own.frames as usize * page_bytes / READ_COPIES_PART).min(READ_COPIES_BYTES_MAX) / BLOCK_BYTES
}

/// Starts a thread with a descriptor for the copies, in case the program closes all that it finds.
fn keep_descriptor(copies: Arc<ReadCopies>) -> Result<(), UserError> {
    let (tell, told) = mpsc::channel();
    start_thread("vgasnet-copies", move || {
        copies.keep_descriptor();
        let _ = tell.send(());
        loop {
            thread::park();
        }
    })?;
    // It fails only if the thread has ended, and that thread does not end.
    let _ = told.recv();
    Ok(())
}

/// A copy of a block costs less than a page of this size.
const COPIED_PAGE_BYTES_MIN: usize = 32 << 10;

/// Whether mapping a block may pay for a load or store of a page on the disk: two blocks cost no more than the page. Copies
/// pay for pages of several blocks.
fn pays_to_map_blocks(own: Shape, page_bytes: usize) -> bool {
    let is_cheap = 2 * (REQUEST_BYTES + BLOCK_BYTES as u64) <= REQUEST_BYTES + page_bytes as u64;
    let has_copies = || read_copies(own, page_bytes) >= READ_COPIES_MIN && offers_copies();
    is_cheap || page_bytes >= COPIED_PAGE_BYTES_MIN && has_copies()
}

/// A mapper of blocks, and the maximum number it may map.
type BlockMapping = (Box<dyn BlockMapper>, u32);

/// The own segment as memory, if the conduit allows a second mapping of the pool, and its mapper of blocks. With
/// cooperative caching neighbours lend frames.
fn open_view(
    conduit: &Arc<dyn Conduit>,
    space: &AddressSpace,
    shapes: &[Shape],
    config: &Config,
) -> Result<(Option<Arc<SegmentView>>, Option<BlockMapping>), UserError> {
    let own = shapes[space.rank.index()];
    let (frames, segment, page_bytes) = (own.frames, space.own_segment(), space.page_bytes());
    if segment.size_bytes == 0 || !conduit.capabilities().second_mapping || is_under_valgrind() {
        return Ok((None, None));
    }
    let pool = conduit.pool(space.rank).expect("a rank that has attached has a pool");
    let mapper = RemapMapper::new(segment, page_bytes, pool, all_frames(frames, page_bytes))
        .map_err(|error| refused("map the pool a second time", &error))?;
    let lenders = space.lenders(|rank| {
        let shape = shapes.get(rank.index()).filter(|_| config.caching.cooperative)?;
        let mapper = mapper.of_neighbour(conduit.pool(rank)?, shape.frames);
        // Pages of a neighbour's pool without a second mapping are copied.
        mapper.ok().map(|mapper| Box::new(mapper) as Box<dyn PageMapper>)
    });
    // Whole pages are mapped if the system cannot map blocks, or if the blocks are at another rank.
    let has_blocks = config.caching.ships && !config.caching.cyclic_homes && pays_to_map_blocks(own, page_bytes);
    let block_mapper = mapper.of_blocks().filter(|_| has_blocks);
    let all_blocks = all_frames(frames, page_bytes) as usize * (page_bytes / BLOCK_BYTES);
    let wanted = block_mapper.as_ref().map_or(0, |_| u32::try_from(all_blocks).unwrap_or(u32::MAX));
    let room = MappingRoom::observe(lenders.iter().any(Option::is_some), wanted);
    tell_of_room(&**conduit, &room, shapes);
    let loans = Loans::new(Arc::clone(conduit), lenders, frames, room.loans_max);
    let view =
        SegmentView::new(space.rank, Arc::clone(&space.segments), space.own, frames, Box::new(mapper), room.areas_max);
    let block_mapper = block_mapper.map(|mapper| {
        // Stores map blocks, and pages without access lie between those with copies.
        let half = room.blocks_max() / 2;
        let most = if mapper.use_copies(read_copies(own, page_bytes), half) { half } else { room.blocks_max() };
        (mapper, most)
    });
    if let Some(copies) = block_mapper.as_ref().and_then(|(mapper, _)| mapper.copies()) {
        keep_descriptor(copies)?;
    }
    let block_mapper = block_mapper.map(|(mapper, most)| (Box::new(mapper) as Box<dyn BlockMapper>, most));
    Ok((Some(Arc::new(view.with_loans(loans))), block_mapper))
}

/// The first rank of a host warns if a pool there has more pages than the system can map.
fn tell_of_room(conduit: &dyn Conduit, room: &MappingRoom, shapes: &[Shape]) {
    let rank = conduit.rank();
    let mut of_host = (0..).map(Rank).zip(shapes).filter(|(other, _)| conduit.host_of(*other) == conduit.host_of(rank));
    if of_host.clone().next().is_none_or(|(first, _)| first != rank) {
        return;
    }
    let limit = of_host.by_ref().filter_map(|(_, shape)| Some((room.limit_for(*shape)?, shape.frames))).max();
    if let Some((limit, frames)) = limit {
        say(&format!(
            "rank {rank}: {ATTACH}: warning: a pool has {frames} pages, of which the system lets loads and stores reach {} at \
             a time where they lie apart, and each other page costs a fault again; set sysctl -w vm.max_map_count={limit}, or \
             VGASNET_PAGE_SIZE larger",
            room.areas_max / 2,
        ));
    }
}

/// How long a waiting thread spins before it sleeps: not at all if another rank may need the processor. If arrivals do
/// not end a sleep, it spins as long as another rank takes to read a block and answer: by the system's timers even the
/// shortest sleep is longer.
fn default_spin_us(conduit: &dyn Conduit) -> u32 {
    const SPIN_US: u32 = 50;
    const SPIN_BETWEEN_POLLS_US: u32 = 200;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    match conduit.capabilities().wakes_on_arrival {
        _ if ranks_on_host(conduit) as usize > processors => 0,
        true => SPIN_US,
        false => SPIN_BETWEEN_POLLS_US,
    }
}

/// Has a program that loaded the library by dlopen call the library's `sigaction` and its relatives. Rank 0 warns for
/// all: as a rule they run the same program.
fn put_interposed_in_place(rank: Rank) {
    let Err(Refused(path)) = interposed::put_in_place() else { return };
    if rank.0 == 0 {
        say(&format!(
            "rank {rank}: {ATTACH}: warning: loaded by dlopen, the library does not see which signal handlers the program \
             installs; loads and stores in segments fail once it handles SIGSEGV or SIGBUS; start it with LD_PRELOAD={}",
            path.display()
        ));
    }
}

fn refused(what: &str, error: &io::Error) -> UserError {
    UserError::new(format!("cannot {what}: {error}; see ulimit -v and vm.max_map_count"))
}

fn start_thread<T: Send + 'static>(name: &str, body: impl FnOnce() -> T + Send + 'static) -> Result<(), UserError> {
    let started = threads::start(name, body);
    started
        .map(drop)
        .map_err(|error| UserError::new(format!("cannot start a thread: {error}; raise `ulimit -u` and `ulimit -v`")))
}

//! What a rank has from attach on: its place in the address space, its engine, and the helper thread.

use crate::am::Messages;
use crate::barrier::{Misuse, Name};
use crate::budget::Budget;
use crate::coherence::{FrameId, Protocol};
use crate::coll::Collectives;
use crate::config::Config;
use crate::engine::{Engine, Progress, StorageServer};
use crate::error::UserError;
use crate::handles::{CompletionId, Completions};
use crate::local::{self, Local, SecondMapping};
use crate::page_table::{PageTable, Slots};
use crate::pool::Pool;
use crate::segment::guard_end;
use crate::space::{AddressSpace, RankMemory, Segment};
use crate::storage::Storage;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vgasnet_conduit::{Conduit, Rank, Region, blocking_signals};

/// Memory for copies of what non-blocking puts have left to write, in bytes.
const COPIES_BYTES: usize = 16 << 20;

/// Frames through which a home passes pages of ranks whose memory it cannot reach.
pub const STAGING_FRAMES: u32 = 2;

/// What each rank tells the others about its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Pages of its segment.
    pub pages: u32,
    /// Frames of its pool, without those for staging.
    pub frames: u32,
}

/// A rank that has attached.
pub struct Runtime {
    conduit: Arc<dyn Conduit>,
    space: Arc<AddressSpace>,
    completions: Arc<Completions>,
    progress: Arc<Progress>,
    messages: Arc<Messages>,
    collectives: Collectives,
    /// The ranks to look at for a page besides its home: none without cooperative caching.
    neighbours: Box<[usize]>,
    copies: Budget,
    cooperative: bool,
    leaving: AtomicBool,
}

/// The memory of every rank that is mapped here, after the conduit has attached.
pub fn memories(conduit: &dyn Conduit, shapes: &[Shape], page_bytes: usize, share: bool) -> Box<[Option<RankMemory>]> {
    let slots = Slots::new(shapes.iter().map(|shape| shape.pages));
    let memory = |(rank, shape): (usize, &Shape)| {
        let is_own = conduit.rank().index() == rank;
        let rank = Rank(rank as u32);
        let (pool, table) = (conduit.pool(rank)?, conduit.table(rank)?);
        let stamp_bytes = Pool::stamp_bytes(shape.frames + STAGING_FRAMES);
        let stamps = Region { address: table.address, len_bytes: stamp_bytes };
        let words = Region { address: table.address + stamp_bytes, len_bytes: slots.table_bytes() };
        let memory = RankMemory { table: PageTable::new(words), pool: Pool::new(pool, stamps, page_bytes) };
        (is_own || share).then_some(memory)
    };
    shapes.iter().enumerate().map(memory).collect()
}

/// Bytes of shared memory that a rank's page table and stamps take.
pub fn table_bytes(shapes: &[Shape], own: Shape) -> usize {
    Pool::stamp_bytes(own.frames + STAGING_FRAMES) + Slots::new(shapes.iter().map(|shape| shape.pages)).table_bytes()
}

impl Runtime {
    /// The engine of a rank whose conduit has attached with these shapes, with its helper thread running.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn new(
        conduit: Arc<dyn Conduit>,
        config: &Config,
        segments: Box<[Segment]>,
        shapes: &[Shape],
        storage: Box<dyn Storage>,
        fail: fn(&UserError) -> !,
    ) -> Result<Runtime, UserError> {
        let rank = conduit.rank();
        let own = shapes[rank.index()];
        let memories = memories(&*conduit, shapes, config.page_bytes as usize, config.peer_memory);
        let slots = Slots::new(shapes.iter().map(|shape| shape.pages));
        let segment = segments[rank.index()];
        let space = AddressSpace::new(rank, segments, slots, memories);
        let local = open_local(&*conduit, &space, own.frames)?;
        let space = Arc::new(space.with_local(local.clone()));
        let completions = Arc::new(Completions::default());
        let staging = (own.frames..own.frames + STAGING_FRAMES).map(FrameId).collect();
        let server = StorageServer::new(Arc::clone(&space), storage, staging);
        let protocol = Protocol::new(rank, own.pages, own.frames, config.cooperative);
        let engine = Engine::new(Arc::clone(&conduit), Arc::clone(&space), protocol, server);
        let messages = Arc::clone(engine.messages());
        let progress =
            Arc::new(Progress::new(engine, Arc::clone(&conduit), Arc::clone(&space), Arc::clone(&completions), fail));
        progress.set_spin(default_spin_us(&*conduit));
        if let Some(local) = local {
            let bell: Arc<Progress> = Arc::clone(&progress);
            let installed = local::fault::install(local, bell, rank.0, guard_end(segment));
            installed.map_err(|errno| refused("handle SIGSEGV", &io::Error::from_raw_os_error(errno)))?;
        }
        let (helped, prepared) = (Arc::clone(&progress), Arc::clone(&progress));
        start_thread("vgasnet-helper", move || helped.help())?;
        start_thread("vgasnet-memory", move || prepared.prepare_memory())?;
        Ok(Runtime {
            collectives: Collectives::new(rank, conduit.ranks()),
            neighbours: neighbours(&space, config.cooperative),
            conduit,
            space,
            completions,
            progress,
            messages,
            copies: Budget::new(COPIES_BYTES),
            cooperative: config.cooperative,
            leaving: AtomicBool::new(false),
        })
    }

    /// Where everything is.
    #[inline]
    pub fn space(&self) -> &AddressSpace {
        &self.space
    }

    /// The completions of this rank.
    #[inline]
    pub fn completions(&self) -> &Completions {
        &self.completions
    }

    /// The engine with its threads.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The client's Active Messages.
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// The collectives of teams.
    pub(crate) fn collectives(&self) -> &Collectives {
        &self.collectives
    }

    /// The own segment.
    pub(crate) fn own_segment(&self) -> Segment {
        self.space.segments[self.space.rank.index()]
    }

    /// The transport.
    pub(crate) fn conduit(&self) -> &dyn Conduit {
        &*self.conduit
    }

    /// The other ranks whose pools may serve this rank directly, besides the home's.
    pub(crate) fn neighbours(&self) -> &[usize] {
        &self.neighbours
    }

    /// Room for copies of what non-blocking puts have left to write.
    pub(crate) fn copies(&self) -> &Budget {
        &self.copies
    }

    /// Tells a rank of this host that a page it is closing is not used any more.
    #[cold]
    pub(crate) fn kick(&self, rank: usize) {
        if let Some(memory) = &self.space.memories[rank] {
            memory.table.kick();
            self.conduit.wake(Rank(rank as u32));
        }
    }

    /// Waits until nothing is pending in a completion.
    pub fn wait(&self, completion: CompletionId) {
        self.wait_until(&|| self.completions.is_done(completion));
    }

    /// Arrives at the barrier. Without cooperative caching, this rank's dirty pages are written back first.
    ///
    /// # Errors
    /// The client has notified already.
    pub fn barrier_notify(&self, name: Name) -> Result<(), Misuse> {
        if !self.cooperative {
            self.progress.engine().flush();
            self.wait_until(&|| self.progress.engine().is_flushed());
        }
        let notified = self.progress.engine().notify(name);
        self.poll();
        notified
    }

    /// Waits until every rank has arrived, and says whether the names match.
    ///
    /// # Errors
    /// The client has not notified.
    pub fn barrier_wait(&self, name: Name) -> Result<bool, Misuse> {
        loop {
            if let Some(matched) = self.progress.engine().barrier().finish(name)? {
                return Ok(matched);
            }
            self.wait_until(&|| self.progress.engine().barrier().is_released());
        }
    }

    /// As [`Runtime::barrier_wait`], but `None` where it would wait.
    ///
    /// # Errors
    /// The client has not notified.
    pub fn barrier_try(&self, name: Name) -> Result<Option<bool>, Misuse> {
        self.poll();
        self.progress.engine().barrier().finish(name)
    }

    /// What the barrier that has just ended was called.
    ///
    /// # Errors
    /// None has just ended, or it did not match.
    pub fn barrier_result(&self) -> Result<Name, Misuse> {
        self.progress.engine().barrier().result()
    }

    /// Says that this rank's program is over, and waits until every rank's is, or `done` says that it is late enough.
    /// Until then this rank serves the others. Returns whether every rank's program is over.
    pub fn leave(&self, done: &dyn Fn() -> bool) -> bool {
        if !self.leaving.swap(true, Ordering::SeqCst) {
            self.progress.engine().leave();
            self.progress.step();
        }
        self.wait_until(&|| self.progress.engine().everyone_left() || done());
        self.progress.engine().everyone_left()
    }
}

/// The own segment as memory, where the conduit lets the pool be mapped a second time.
fn open_local(conduit: &dyn Conduit, space: &AddressSpace, frames: u32) -> Result<Option<Arc<Local>>, UserError> {
    let segment = space.segments[space.rank.index()];
    if segment.size_bytes == 0 || !conduit.capabilities().second_mapping {
        return Ok(None);
    }
    let pool = conduit.pool(space.rank).expect("a rank that has attached has a pool");
    let window = SecondMapping::new(segment, space.page_bytes(), pool, frames)
        .map_err(|error| refused("map the pool a second time", &error))?;
    let slots = space.slots.clone();
    let shown_max = local::shown_max();
    let local = Local::new(space.rank, segment, space.own, slots, frames, Box::new(window), shown_max);
    Ok(Some(Arc::new(local)))
}

/// How long a waiting thread looks again before it sleeps: not at all where another rank may need the processor.
fn default_spin_us(conduit: &dyn Conduit) -> u32 {
    const SPIN_US: u32 = 50;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if crate::job::ranks_on_host(conduit) as usize <= processors { SPIN_US } else { 0 }
}

fn refused(what: &str, error: &io::Error) -> UserError {
    UserError::new(format!("cannot {what}: {error}; see ulimit -v and vm.max_map_count"))
}

fn neighbours(space: &AddressSpace, cooperative: bool) -> Box<[usize]> {
    let is_neighbour = |rank: &usize| cooperative && *rank != space.rank.index() && space.memories[*rank].is_some();
    (0..space.memories.len()).filter(is_neighbour).collect()
}

/// A thread of the library takes no signals: they are the client's.
fn start_thread(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), UserError> {
    let thread = std::thread::Builder::new().name(name.into());
    blocking_signals(|| thread.spawn(body))
        .map(drop)
        .map_err(|error| UserError::new(format!("cannot start a thread: {error}; raise ulimit -u")))
}

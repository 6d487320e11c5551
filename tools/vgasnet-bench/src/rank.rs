//! A rank of the job, and operations common to all benchmarks.

use crate::plan::{BLOCK_BYTES, Layout, MAIL_BYTES, Spec, Workload};
use crate::{
    Stop, ahead, blocks, collectives, cycle, false_sharing, faults, gets, hit, lists, messages, operations, page_size,
    reads, small, stream, sweep, table, threads, triad,
};
use serde::Serialize;
use std::fs::OpenOptions;
use std::path::Path;
use std::time::{Duration, Instant};
use vgasnet::job::Runtime;
use vgasnet::job::{self, Failure};
use vgasnet::ops::{Operation, Remote};
pub use vgasnet_measuring::disk::disk_bytes;
use vgasnet_settings::UserError;

use vgasnet_conduit::launchers::MPI_RANK_VARIABLES;
use vgasnet_protocol::barrier::Name;
use vgasnet_protocol::coherence::{Access, PageId};

/// Errors of this program are reported under this name.
const CALL: &str = "vgasnet-bench";

/// Ends the job with one line.
pub fn fail(line: impl Into<String>) -> ! {
    job::fail(CALL, &UserError::new(line))
}

/// Does the work named by `spec`, and ends the process.
pub fn run(spec: &str) -> Result<u8, Stop> {
    let mut launched = std::iter::once(vgasnet_smp::JOB_VARIABLE).chain(MPI_RANK_VARIABLES);
    if launched.all(|name| std::env::var_os(name).is_none()) {
        return Err(Stop::usage("\"rank\" is for the ranks that vgasnet-bench starts; see --help"));
    }
    let spec: Spec =
        serde_json::from_str(spec).map_err(|error| Stop::usage(format!("what a rank is told: {error}")))?;
    if let Some(serve) = mapped_work(spec.workload) {
        serve(&spec);
        return Ok(0);
    }
    let rank = Rank::start(&spec)?;
    match spec.workload {
        Workload::Sequential | Workload::Random => rank.report(&spec, reads::run(&rank, &spec)),
        Workload::PageSize => rank.report(&spec, page_size::run(&rank, &spec)),
        Workload::Sweep => rank.report(&spec, sweep::run(&rank, &spec)),
        Workload::FalseSharing => rank.report(&spec, false_sharing::run(&rank, &spec)),
        Workload::Hit => rank.report(&spec, hit::run(&rank, &spec)),
        Workload::Triad | Workload::MappedTriad => rank.report(&spec, triad::run(&rank, &spec)),
        Workload::Fault => rank.report(&spec, faults::run(&rank, &spec)),
        Workload::FaultThreads => rank.report(&spec, threads::run(&rank, &spec)),
        Workload::Messages => rank.report(&spec, messages::run(&rank, &spec)),
        Workload::Lists => rank.report(&spec, lists::run(&rank, &spec)),
        Workload::Operations => rank.report(&spec, operations::run(&rank, &spec)),
        Workload::Collectives => rank.report(&spec, collectives::run(&rank, &spec)),
        Workload::Stream => rank.report(&spec, stream::run(&rank, &spec)),
        Workload::Ahead => rank.report(&spec, ahead::run(&rank, &spec)),
        Workload::Loop => rank.report(&spec, cycle::run(&rank, &spec)),
        Workload::Blocks | Workload::MappedBlocks => rank.report(&spec, blocks::run(&rank, &spec)),
        Workload::Small | Workload::MappedSmall => rank.report(&spec, small::run(&rank, &spec)),
        Workload::Table | Workload::MappedTable => rank.report(&spec, table::run(&rank, &spec)),
        Workload::Gets => rank.report(&spec, gets::run(&rank, &spec)),
    }
    job::exit(0)
}

/// The work of a process that is not a rank.
fn mapped_work(workload: Workload) -> Option<fn(&Spec)> {
    match workload {
        Workload::MappedTriad => Some(triad::mapped::serve),
        Workload::MappedBlocks => Some(blocks::serve),
        Workload::MappedSmall => Some(small::mapped::serve),
        Workload::MappedTable => Some(table::serve),
        _ => None,
    }
}

/// This rank after attach.
pub struct Rank {
    pub runtime: &'static Runtime,
    pub me: u32,
    pub ranks: u32,
    pub page_bytes: usize,
    pub pool_bytes: u64,
    first_layout: Layout,
}

impl Rank {
    fn start(spec: &Spec) -> Result<Rank, Stop> {
        let stop = |failure: Failure| {
            if let Some(line) = failure.line {
                job::report(CALL, &line);
            }
            Stop::failure("")
        };
        leave_alternate_stack();
        let job = job::init().map_err(stop)?;
        let (me, ranks, config) = (job.conduit().rank().0, job.conduit().ranks(), job.config());
        let layout = Layout::new(me, ranks, spec, config);
        let first_layout = Layout::new(0, ranks, spec, config);
        let mut handlers = messages::handlers();
        let table = if spec.workload == Workload::Messages { &mut handlers[..] } else { &mut [] };
        let runtime = job::attach_with(layout.segment_bytes, table).map_err(stop)?;
        let page_bytes = config.page_bytes as usize;
        Ok(Rank { runtime, me, ranks, page_bytes, pool_bytes: config.pool_bytes, first_layout })
    }

    pub fn is_first(&self) -> bool {
        self.me == 0
    }

    /// The directory of the backing files.
    pub fn storage_dir(&self) -> &'static Path {
        job::job().map_or_else(|| Path::new("/"), |job| &job.config().storage_dir)
    }

    /// Waits for all ranks.
    pub fn barrier(&self) {
        let matched = self
            .runtime
            .driver()
            .barrier_notify(Name::Anonymous)
            .and_then(|()| self.runtime.driver().barrier_wait(Name::Anonymous));
        assert_eq!(matched, Ok(true), "nobody names a barrier");
    }

    /// A blocking get from `offset` of `rank`'s segment.
    #[inline]
    pub fn get(&self, rank: u32, offset: u64, to: &mut [u8]) {
        let remote = self.remote(rank, offset, to.len());
        // SAFETY: the slice is valid for its length, and borrowed exclusively until the call returns.
        if let Err(error) = unsafe { self.runtime.ops().transfer(Operation::Get(to.as_mut_ptr()), remote) } {
            job::fail(CALL, &error);
        }
    }

    /// A blocking put to `offset` of `rank`'s segment.
    pub fn put(&self, rank: u32, offset: u64, from: &[u8]) {
        let remote = self.remote(rank, offset, from.len());
        // SAFETY: the slice is valid for its length, and not written before the call returns.
        if let Err(error) = unsafe { self.runtime.ops().transfer(Operation::Put(from.as_ptr()), remote) } {
            job::fail(CALL, &error);
        }
    }

    #[inline]
    fn remote(&self, rank: u32, offset: u64, len_bytes: usize) -> Remote {
        let base = self.segment_base(rank);
        Remote { rank, address: base + offset as usize, len_bytes }
    }

    /// The start address of `rank`'s segment.
    pub fn segment_base(&self, rank: u32) -> usize {
        self.runtime.space().segments.of(vgasnet_protocol::Rank(rank)).base
    }

    /// The start of this rank's own segment, for loads and stores.
    pub fn own_segment(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.runtime.space().own_segment().base)
    }

    /// Whether `rank` has the page at `offset` of rank 0's segment open; `None` if its memory is not mapped here.
    pub fn is_open_at(&self, rank: u32, offset: u64) -> Option<bool> {
        let space = self.runtime.space();
        let page = PageId::of_segment(vgasnet_conduit::Rank(0), (offset / self.page_bytes as u64) as u32);
        space.memories.get(rank as usize).map(|memory| memory.table.is_open(page, Access::Read))
    }

    /// Writes back all dirty pages of this rank, and keeps them.
    pub fn write_back(&self) {
        let driver = self.runtime.driver();
        driver.engine().flush();
        driver.wait_until(&|| driver.engine().protocol().cache.flushed());
    }

    /// Evicts all pages from this rank's pool. Dirty pages are written back.
    pub fn empty_pool(&self) {
        let driver = self.runtime.driver();
        // Each call starts evictions that need a driver to continue them, so this cannot be a condition to sleep on.
        while !driver.engine().discard_all() {
            driver.step();
        }
    }

    /// Gives every rank the words of all ranks. Collective.
    pub fn gather(&self, mine: [u64; 4]) -> Vec<[u64; 4]> {
        let place = |rank: u32| self.first_layout.mail_offset + u64::from(rank) * MAIL_BYTES;
        let bytes: Vec<u8> = mine.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(0, place(self.me), &bytes);
        self.barrier();
        let mut all = vec![0; self.ranks as usize * MAIL_BYTES as usize];
        self.get(0, place(0), &mut all);
        self.barrier();
        let mut words = words(&all);
        (0..self.ranks).map(|_| [0; 4].map(|_: u64| words.next().unwrap_or(0))).collect()
    }

    /// The time from the common start of `work` on all ranks to the end of the last rank.
    pub fn time(&self, work: impl FnOnce()) -> Duration {
        self.barrier();
        let start = Instant::now();
        work();
        self.barrier();
        start.elapsed()
    }

    /// Rank 0 leaves its measurements for the process that started the job.
    fn report(&self, spec: &Spec, found: impl Serialize) {
        if !self.is_first() {
            return;
        }
        let written = OpenOptions::new().write(true).open(&spec.report);
        let written = written.and_then(|file| serde_json::to_writer(file, &found).map_err(Into::into));
        if let Err(error) = written {
            fail(format!("cannot leave a report: {error}"));
        }
    }
}

/// Gives up the alternate signal stack of a thread. Each thread of a Rust program has one, threads of C programs do
/// not. A thread running on such a stack has its faulting pages fetched by another thread.
pub fn leave_alternate_stack() {
    let none = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: this thread is not in a signal handler, so the alternate stack is unused.
    unsafe { libc::sigaltstack(&raw const none, std::ptr::null_mut()) };
}

/// The little-endian words of `bytes`.
pub fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|bytes| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
}

/// Resident memory for one block, so no measurement starts with page faults.
pub fn block_buffer() -> Vec<u8> {
    vec![0xA5; BLOCK_BYTES as usize]
}

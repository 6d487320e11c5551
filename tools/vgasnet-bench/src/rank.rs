//! A rank of the job, and operations common to all benchmarks.

use crate::benchmark::Benchmark;
use crate::launch::launcher_variable;
use crate::plan::{BLOCK_BYTES, Layout, MAIL_BYTES, Spec};
use crate::report::Figures;
use crate::{Stop, benchmarks};
use std::fs::OpenOptions;
use std::path::Path;
use std::time::{Duration, Instant};
use vgasnet::am::Entry;
use vgasnet::job::{self, Failure, Runtime};
use vgasnet::ops::{Operation, Remote};
pub use vgasnet_measuring::disk::disk_bytes;
use vgasnet_protocol::barrier::Name;
use vgasnet_protocol::coherence::{Access, PageId};
use vgasnet_settings::UserError;

/// Errors of this program are reported under this name.
const CALL: &str = "vgasnet-bench";

/// Ends the job with one line.
pub fn fail(line: impl Into<String>) -> ! {
    job::fail(CALL, &UserError::new(line))
}

/// Does the work of the rank's orders, and ends the process.
pub fn run(spec: &str) -> Result<u8, Stop> {
    if launcher_variable().is_none() {
        return Err(Stop::usage("\"rank\" is for the ranks that vgasnet-bench starts; see --help"));
    }
    let told = |error: serde_json::Error| Stop::usage(format!("what a rank is told: {error}"));
    let spec: Spec = serde_json::from_str(spec).map_err(told)?;
    let entry = benchmarks::ALL.iter().find(|entry| entry.name == spec.benchmark);
    let entry = entry.ok_or_else(|| Stop::usage(format!("there is no benchmark {}", spec.benchmark)))?;
    (entry.rank)(&spec)
}

/// The work of a rank for a benchmark, or of a process that maps a file.
pub fn work<B: Benchmark>(spec: &Spec) -> Result<u8, Stop> {
    let options: B = serde_json::from_value(spec.options.clone()).map_err(Stop::usage)?;
    if spec.is_mapped {
        options.serve(spec);
        return Ok(0);
    }
    let rank = Rank::start(spec, &mut B::handlers())?;
    let figures = options.measure(&rank, spec);
    rank.report(spec, &figures);
    job::exit(0)
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
    fn start(spec: &Spec, handlers: &mut [Entry]) -> Result<Rank, Stop> {
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
        let runtime = job::attach_with(layout.segment_bytes, handlers).map_err(stop)?;
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

    /// Whether ranks of one host use each other's frames directly.
    pub fn has_peer_memory(&self) -> bool {
        job::job().is_some_and(|job| job.config().caching.peer_memory)
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

    /// Puts whole pages to `owner`'s segment, each filled by `page`, which gets the offset. The last may be partial.
    pub fn fill(&self, owner: u32, data_bytes: u64, mut page: impl FnMut(u64, &mut [u8])) {
        let mut bytes = vec![0; self.page_bytes];
        for offset in (0..data_bytes).step_by(self.page_bytes) {
            let part = &mut bytes[..self.page_bytes.min((data_bytes - offset) as usize)];
            page(offset, part);
            self.put(owner, offset, part);
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
    fn report(&self, spec: &Spec, figures: &Figures) {
        if !self.is_first() {
            return;
        }
        let written = OpenOptions::new().write(true).open(&spec.report);
        let written = written.and_then(|file| serde_json::to_writer(file, figures).map_err(Into::into));
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

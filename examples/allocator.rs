//! An ordinary allocator, made for memory, hands out blocks of a segment sixteen times the size of the pool.
//!
//! The heap of each rank is its whole segment. The allocator's lists lie there too, between the blocks. Two threads
//! allocate blocks of random sizes, fill them, check them and free them.
//!
//! ```text
//! cargo build --release --example allocator
//! VGASNET_POOL_SIZE=16M VGASNET_PAGE_SIZE=64K target/release/vgasnetrun -n 2 target/release/examples/allocator
//! ```

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use talc::DefaultBinning;
use talc::base::Talc;
use talc::source::Manual;
use vgasnet::job::{self, Failure};
use vgasnet_memory::Segment;
use vgasnet_protocol::barrier::Name;
use vgasnet_settings::UserError;

/// Errors of this program are reported under this name.
const CALL: &str = "allocator";

const THREADS: u64 = 2;

/// The size of a heap, and its largest allocated part, in pools.
const HEAP_POOLS: u64 = 16;
const LIVE_POOLS: u64 = 8;

/// Blocks freed and replaced by each thread after its share of the heap is full.
const EXCHANGES: u32 = 300;

/// A heap shared by threads. Talc keeps its lists in the heap, so page faults may occur while the lock is held.
struct Heap {
    talc: Mutex<Talc<Manual, DefaultBinning>>,
}

/// Allocated memory. The holder of this value owns it.
struct Block {
    start: NonNull<u8>,
    layout: Layout,
    /// Determines the bytes in the memory.
    seed: u64,
}

impl Heap {
    fn new(segment: Segment) -> Option<Heap> {
        let mut talc = Talc::new(Manual);
        let start = std::ptr::with_exposed_provenance_mut(segment.base);
        // SAFETY: the segment can be read and written like memory. This program uses it only through the heap, and no
        // other rank puts anything there.
        unsafe { talc.claim(start, segment.size_bytes) }.map(|_| Heap { talc: Mutex::new(talc) })
    }

    fn lock(&self) -> MutexGuard<'_, Talc<Manual, DefaultBinning>> {
        self.talc.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: no layout in this program is empty.
        unsafe { self.lock().allocate(layout) }
    }

    /// Allocates a block and fills it.
    fn take_filled(&self, layout: Layout, seed: u64) -> Option<Block> {
        let start = self.take(layout)?;
        let mut random = fastrand::Rng::with_seed(seed);
        // SAFETY: the memory was allocated just now with this size, and has no other user. Its bytes are initialized:
        // an unwritten segment reads as zeros.
        random.fill(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), layout.size()) });
        Some(Block { start, layout, seed })
    }

    fn give_back(&self, block: Block) {
        // SAFETY: the block was allocated with this layout. It is consumed here, so it is freed only once.
        unsafe { self.lock().deallocate(block.start.as_ptr(), block.layout) }
    }
}

// SAFETY: a block owns its memory exclusively, in any thread.
unsafe impl Send for Block {}

impl Block {
    /// Whether the block still has its bytes and the requested alignment.
    fn is_intact(&self) -> bool {
        let mut expected = vec![0; self.layout.size()];
        fastrand::Rng::with_seed(self.seed).fill(&mut expected);
        // SAFETY: the memory was allocated with this size, and belongs to this block until it is freed.
        let is = unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) };
        is == expected && self.start.addr().get() % self.layout.align() == 0
    }
}

/// Sizes from one byte to an eighth of the pool, with small sizes as likely as large ones.
fn random_layout(random: &mut fastrand::Rng, pool_bytes: u64) -> Layout {
    let most = 1 << random.u32(0..=(pool_bytes / 8).ilog2());
    let size = random.usize(1..=most);
    Layout::from_size_align(size, 1 << random.u32(0..=12)).expect("a small power of two")
}

/// Fills this thread's share of the heap, then replaces blocks. Returns the remaining blocks and their total size.
fn work(heap: &Heap, pool_bytes: u64, seed: u64) -> Result<(Vec<Block>, u64), String> {
    let random = &mut fastrand::Rng::with_seed(seed);
    let (share_bytes, mut live_bytes, mut exchanges) = (LIVE_POOLS * pool_bytes / THREADS, 0, 0);
    let mut blocks: Vec<Block> = Vec::new();
    loop {
        if live_bytes < share_bytes {
            let layout = random_layout(random, pool_bytes);
            let block = heap.take_filled(layout, random.u64(..));
            blocks.push(block.ok_or_else(|| format!("no room for {} bytes of {live_bytes}", layout.size()))?);
            live_bytes += layout.size() as u64;
        } else if exchanges == EXCHANGES {
            return Ok((blocks, live_bytes));
        } else {
            let block = blocks.swap_remove(random.usize(..blocks.len()));
            if !block.is_intact() {
                return Err(format!("a block of {} bytes has changed; seed {seed}", block.layout.size()));
            }
            live_bytes -= block.layout.size() as u64;
            exchanges += 1;
            heap.give_back(block);
        }
    }
}

/// Runs the threads, then checks and frees all blocks. One block nearly as large as the heap is available afterwards.
fn run(segment: Segment, pool_bytes: u64, rank: u32) -> Result<String, String> {
    let heap = Heap::new(segment).ok_or("the segment is too small for a heap")?;
    let seeds = (0..THREADS).map(|thread| u64::from(rank) * THREADS + thread);
    let done: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = seeds
            .map(|seed| {
                scope.spawn({
                    let heap = &heap;
                    move || work(heap, pool_bytes, seed)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("errors are returned")).collect()
    });
    let (mut live, mut live_bytes) = (0, 0);
    for done in done {
        let (blocks, bytes) = done?;
        (live, live_bytes) = (live + blocks.len(), live_bytes + bytes);
        for block in blocks {
            if !block.is_intact() {
                return Err(format!("a block of {} bytes has changed in the end", block.layout.size()));
            }
            heap.give_back(block);
        }
    }
    let most = Layout::from_size_align(segment.size_bytes - (64 << 10), 1).map_err(|error| error.to_string())?;
    heap.take(most).ok_or_else(|| format!("blocks that were given back do not make up {} bytes", most.size()))?;
    Ok(format!("rank {rank}: {live} blocks of {live_bytes} bytes in a heap of {} bytes", segment.size_bytes))
}

fn barrier(runtime: &job::Runtime) {
    let matched =
        runtime.driver().barrier_notify(Name::Anonymous).and_then(|()| runtime.driver().barrier_wait(Name::Anonymous));
    assert_eq!(matched, Ok(true), "nobody names a barrier");
}

fn or_fail<T>(result: Result<T, Failure>) -> T {
    result.unwrap_or_else(|failure| match failure.line {
        Some(line) => job::fail(CALL, &line),
        // Another rank has reported the reason.
        None => std::process::exit(1),
    })
}

fn main() {
    let job = or_fail(job::init());
    let (rank, pool_bytes) = (job.conduit().rank(), job.config().pool_bytes);
    let runtime = or_fail(job::attach(HEAP_POOLS * pool_bytes));
    match run(runtime.space().segments.of(rank), pool_bytes, rank.0) {
        Ok(line) => println!("{line}"),
        Err(line) => job::fail(CALL, &UserError::new(line)),
    }
    barrier(runtime);
    job::exit(0)
}

//! Threads that hit: what each of them reads now, so that it is not taken away, and what they have counted.
//!
//! A thread says which key it reads before it looks whether the entry is open ([`Shard::begin`]). Who wants an entry away closes it, and
//! looks then whether anybody reads its key. With a full barrier between the two steps on both sides, one sees the other. Readers do
//! without theirs while it is known that nothing goes, or while only one thread reads, which is also who closes: *unfenced*. Before
//! another closes something, all are told to be *fenced*, and a barrier goes through all threads.

use crate::sync::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::atomic::compiler_fence;
use vgasnet_protocol::get_cache::{Hash, Seen};

/// One thread's. Two cache lines: processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Shard {
    /// The mark of the key that the thread reads; 0: none.
    reads: AtomicU64,
    /// The thread is among those whose marks are looked at.
    pub is_known: AtomicBool,
    hits: AtomicU64,
    bytes_hit: AtomicU64,
    dormant: AtomicU64,
    bytes_dormant: AtomicU64,
}

/// All threads'.
#[derive(Debug)]
pub(crate) struct Readers {
    shards: Box<[Shard]>,
    is_fenced: AtomicBool,
}

/// What a thread says that it reads. Where keys have equal marks, one is kept for the sake of the other.
pub(crate) fn mark(hash: Hash) -> u64 {
    hash.bits() | 1
}

/// Adds to a count that only this thread changes.
#[inline]
fn add(count: &AtomicU64, more: u64) -> u64 {
    let sum = count.load(Ordering::Relaxed) + more;
    count.store(sum, Ordering::Relaxed);
    sum
}

impl Shard {
    /// The thread reads a key from now on, if the entry that it finds after this is open.
    #[inline]
    pub fn begin(&self, mark: u64, readers: &Readers) {
        // Release: what it read before is over.
        self.reads.store(mark, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
        // Told after the store: a barrier that comes between the two finds the mark there. Acquire: who is told of no barriers has seen
        // closed what was closed while there were some.
        if readers.is_fenced.load(Ordering::Acquire) {
            fence(Ordering::SeqCst);
        }
    }

    /// It does not read any more.
    #[inline]
    pub fn end(&self) {
        self.reads.store(0, Ordering::Release);
    }

    /// Whether the thread may begin: it is known, and this is no signal handler that came while it reads.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.reads.load(Ordering::Relaxed) == 0 && self.is_known.load(Ordering::Relaxed)
    }

    /// A get of so many bytes hit. Returns how many have.
    #[inline]
    pub fn on_hit(&self, bytes: u32) -> u64 {
        add(&self.bytes_hit, u64::from(bytes));
        add(&self.hits, 1)
    }

    /// A get of so many bytes was not looked up.
    #[inline]
    pub fn on_dormant(&self, bytes: u32) {
        add(&self.dormant, 1);
        add(&self.bytes_dormant, u64::from(bytes));
    }
}

impl Readers {
    /// Nobody reads.
    pub fn new(threads: u32, is_fenced: bool) -> Readers {
        let shards = (0..threads).map(|_| Shard::default()).collect();
        Readers { shards, is_fenced: AtomicBool::new(is_fenced) }
    }

    /// A thread's, if it has a number.
    #[inline]
    pub fn shard(&self, number: u32) -> Option<&Shard> {
        self.shards.get(number as usize)
    }

    /// Whether threads have barriers of their own.
    #[inline]
    pub fn is_fenced(&self) -> bool {
        self.is_fenced.load(Ordering::Relaxed)
    }

    /// Sets that. What was closed before is settled only by a barrier in all threads after this.
    pub fn set_fenced(&self, is_fenced: bool) {
        self.is_fenced.store(is_fenced, Ordering::Release);
    }

    /// Whether one of some threads may read a key. After the entry was closed, and that was settled, nobody begins to.
    pub fn are_reading(&self, threads: &[u32], mark: u64) -> bool {
        // Acquire: who has ended has read.
        mark != 0 && threads.iter().any(|number| self.shards[*number as usize].reads.load(Ordering::Acquire) == mark)
    }

    /// What all have counted.
    pub fn sum(&self, threads: &[u32]) -> Seen {
        let mut sum = Seen::default();
        for shard in threads.iter().map(|number| &self.shards[*number as usize]) {
            sum.hits += shard.hits.load(Ordering::Relaxed);
            sum.bytes_hit += shard.bytes_hit.load(Ordering::Relaxed);
            sum.dormant += shard.dormant.load(Ordering::Relaxed);
            sum.bytes_dormant += shard.bytes_dormant.load(Ordering::Relaxed);
        }
        sum
    }
}

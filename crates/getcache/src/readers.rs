//! Hitting threads: the key each reads now, which protects its entry, and their counters.
//!
//! A thread announces its key before it checks whether the entry is open ([`Shard::begin`]). To free an entry, a thread
//! closes it and then checks for readers of its key. With a full barrier between the two steps on both sides, one sees
//! the other.
//!
//! Readers skip theirs while no entry is being freed, or while the only reader is also the closing thread: *unfenced*.
//! Before another thread closes an entry, all readers are set to *fenced*, and a barrier runs in all threads.

use crate::sync::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::atomic::compiler_fence;
use vgasnet_protocol::get_cache::{Hash, Seen};

/// State of one thread. Two cache lines: processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Shard {
    /// The mark of the key being read; 0: none.
    reads: AtomicU64,
    /// Whether the driver checks this thread's mark.
    pub is_known: AtomicBool,
    hits: AtomicU64,
    bytes_hit: AtomicU64,
    dormant: AtomicU64,
    bytes_dormant: AtomicU64,
}

/// State of all threads.
#[derive(Debug)]
pub(crate) struct Readers {
    shards: Box<[Shard]>,
    is_fenced: AtomicBool,
}

/// The announcement of a key. A key with an equal mark may be retained needlessly.
pub(crate) fn mark(hash: Hash) -> u64 {
    hash.bits() | 1
}

/// Adds to a counter modified only by this thread.
#[inline]
fn add(count: &AtomicU64, more: u64) -> u64 {
    let sum = count.load(Ordering::Relaxed) + more;
    count.store(sum, Ordering::Relaxed);
    sum
}

impl Shard {
    /// Announces a key. The read is valid if the entry found afterwards is open.
    #[inline]
    pub fn begin(&self, mark: u64, readers: &Readers) {
        // Release: the previous read has ended.
        self.reads.store(mark, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
        // Loaded after the store: a barrier between the two finds the mark. Acquire: a thread told to go unfenced has
        // seen every close made while fenced.
        if readers.is_fenced.load(Ordering::Acquire) {
            fence(Ordering::SeqCst);
        }
    }

    /// Announces the end of the read.
    #[inline]
    pub fn end(&self) {
        self.reads.store(0, Ordering::Release);
    }

    /// Whether the thread may begin: it is registered, and this is not a signal handler interrupting a read.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.reads.load(Ordering::Relaxed) == 0 && self.is_known.load(Ordering::Relaxed)
    }

    /// Counts a hit of `bytes` bytes. Returns the number of earlier hits.
    #[inline]
    pub fn on_hit(&self, bytes: u32) -> u64 {
        add(&self.bytes_hit, u64::from(bytes));
        add(&self.hits, 1)
    }

    /// Counts a get of `bytes` bytes without a lookup.
    #[inline]
    pub fn on_dormant(&self, bytes: u32) {
        add(&self.dormant, 1);
        add(&self.bytes_dormant, u64::from(bytes));
    }
}

impl Readers {
    /// No readers.
    pub fn new(threads: u32, is_fenced: bool) -> Readers {
        let shards = (0..threads).map(|_| Shard::default()).collect();
        Readers { shards, is_fenced: AtomicBool::new(is_fenced) }
    }

    /// State of the thread numbered `number`, if it has a number.
    #[inline]
    pub fn shard(&self, number: u32) -> Option<&Shard> {
        self.shards.get(number as usize)
    }

    /// Whether threads execute barriers of their own.
    #[inline]
    pub fn is_fenced(&self) -> bool {
        self.is_fenced.load(Ordering::Relaxed)
    }

    /// Sets whether they do. Earlier closes are settled only by a later barrier in all threads.
    pub fn set_fenced(&self, is_fenced: bool) {
        self.is_fenced.store(is_fenced, Ordering::Release);
    }

    /// Whether one of `threads` may be reading a key. Once its entry is closed and settled, no new read begins.
    pub fn are_reading(&self, threads: &[u32], mark: u64) -> bool {
        // Acquire: an ended read is complete.
        mark != 0 && threads.iter().any(|number| self.shards[*number as usize].reads.load(Ordering::Acquire) == mark)
    }

    /// Sum of all counters.
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

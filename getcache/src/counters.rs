//! Counts of gets that took no lock. Each thread counts in a shard of its own by loads and stores, which takes a tenth of the time of
//! atomic additions. Threads beyond so many share the last shard, and add.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use vgasnet_protocol::get_cache::Seen;

const SHARDS: usize = 64;

/// The shard that threads share.
const SHARED: u32 = SHARDS as u32 - 1;

/// Two cache lines: processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard {
    hits: AtomicU64,
    bytes_hit: AtomicU64,
    dormant: AtomicU64,
    bytes_dormant: AtomicU64,
}

/// The counts of all threads.
#[derive(Debug)]
pub(crate) struct Counters(Box<[Shard; SHARDS]>);

static THREADS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static NUMBER: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// The shard of this thread.
#[inline]
fn own() -> u32 {
    let number = NUMBER.get();
    if number == u32::MAX { new_number() } else { number }
}

#[cold]
fn new_number() -> u32 {
    let taken = THREADS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| Some((taken + 1).min(SHARED)));
    let number = taken.unwrap_or(SHARED);
    NUMBER.set(number);
    number
}

/// Adds to a count. If it is not shared, no other thread changes it.
#[inline]
fn add(count: &AtomicU64, more: u64, is_shared: bool) {
    if is_shared {
        count.fetch_add(more, Ordering::Relaxed);
    } else {
        count.store(count.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }
}

impl Counters {
    /// All zeros.
    pub fn new() -> Counters {
        Counters(Box::new(std::array::from_fn(|_| Shard::default())))
    }

    /// A get of so many bytes hit.
    #[inline]
    pub fn on_hit(&self, bytes: usize) {
        let number = own();
        let shard = &self.0[number as usize % SHARDS];
        add(&shard.hits, 1, number == SHARED);
        add(&shard.bytes_hit, bytes as u64, number == SHARED);
    }

    /// A get of so many bytes was not looked up.
    #[inline]
    pub fn on_dormant(&self, bytes: usize) {
        let number = own();
        let shard = &self.0[number as usize % SHARDS];
        add(&shard.dormant, 1, number == SHARED);
        add(&shard.bytes_dormant, bytes as u64, number == SHARED);
    }

    /// All counts so far.
    pub fn sum(&self) -> Seen {
        let mut sum = Seen::default();
        // Of the others nobody has counted yet.
        let used = (THREADS.load(Ordering::Relaxed) as usize + 1).min(SHARDS);
        for shard in &self.0[..used] {
            sum.hits += shard.hits.load(Ordering::Relaxed);
            sum.bytes_hit += shard.bytes_hit.load(Ordering::Relaxed);
            sum.dormant += shard.dormant.load(Ordering::Relaxed);
            sum.bytes_dormant += shard.bytes_dormant.load(Ordering::Relaxed);
        }
        sum
    }
}

//! Counts of gets that took no lock: each thread counts in a shard of its own, as far as there are shards.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use vgasnet_protocol::get_cache::Seen;

const SHARDS: usize = 16;

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
#[derive(Debug, Default)]
pub(crate) struct Counters([Shard; SHARDS]);

static THREADS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static NUMBER: Cell<u32> = const { Cell::new(u32::MAX) };
}

#[cold]
fn new_number() -> u32 {
    let number = THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS as u32;
    NUMBER.set(number);
    number
}

impl Counters {
    #[inline]
    fn own(&self) -> &Shard {
        let number = NUMBER.get();
        let number = if number == u32::MAX { new_number() } else { number };
        &self.0[number as usize % SHARDS]
    }

    /// A get of so many bytes hit.
    #[inline]
    pub fn on_hit(&self, bytes: usize) {
        let own = self.own();
        own.hits.fetch_add(1, Ordering::Relaxed);
        own.bytes_hit.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// A get of so many bytes was not looked up.
    #[inline]
    pub fn on_dormant(&self, bytes: usize) {
        let own = self.own();
        own.dormant.fetch_add(1, Ordering::Relaxed);
        own.bytes_dormant.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// All counts so far.
    pub fn sum(&self) -> Seen {
        let mut sum = Seen::default();
        for shard in &self.0 {
            sum.hits += shard.hits.load(Ordering::Relaxed);
            sum.bytes_hit += shard.bytes_hit.load(Ordering::Relaxed);
            sum.dormant += shard.dormant.load(Ordering::Relaxed);
            sum.bytes_dormant += shard.bytes_dormant.load(Ordering::Relaxed);
        }
        sum
    }
}

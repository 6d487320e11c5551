//! The counters: a shard per thread, so counting a hit writes to no memory written by other threads.

use super::histogram::Histogram;
use super::rows::{ROW_COUNT, ROWS, Row, TIMED_COUNT};
use super::snapshot::Snapshot;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use vgasnet_sys::{THREAD_TABLE_LEN, places_of_thread, thread_key};

/// The counters of a thread, on cache lines of their own. A later thread with the same key continues them, and threads
/// without a free shard share some.
#[repr(align(128))]
struct Shard {
    /// The key of its thread; 0 if it has none.
    owner: AtomicUsize,
    rows: [AtomicU64; ROW_COUNT],
}

/// Number of shards searched by a thread for its own. Shards are never freed, so after many threads each count searches
/// all of these.
const LOOKS: usize = 4;

impl Shard {
    const fn new() -> Shard {
        Shard { owner: AtomicUsize::new(0), rows: [const { AtomicU64::new(0) }; ROW_COUNT] }
    }
}

/// All counters of a rank. Counting is safe in signal handlers.
pub struct Counters {
    shards: [Shard; THREAD_TABLE_LEN],
    times: [Histogram; TIMED_COUNT],
}

impl Counters {
    /// All counters are 0.
    pub const fn new() -> Counters {
        Counters {
            shards: [const { Shard::new() }; THREAD_TABLE_LEN],
            times: [const { Histogram::new() }; TIMED_COUNT],
        }
    }

    /// Adds to a row. Sums wrap: negative numbers are added as their complement.
    pub fn add(&self, row: Row, amount: u64) {
        self.shard().rows[row as usize].fetch_add(amount, Ordering::Relaxed);
    }

    /// Counts an event of this duration.
    pub fn time(&self, row: Row, ns: u64) {
        self.times[row.timed_index()].add(ns);
    }

    /// Counts the calling thread, once.
    pub fn note_thread(&self) {
        let threads = &self.shard().rows[Row::Threads as usize];
        if threads.load(Ordering::Relaxed) == 0 {
            threads.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The counts so far. Rows that change meanwhile may be of different times.
    pub fn read(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for shard in self.shards.iter().filter(|shard| shard.owner.load(Ordering::Relaxed) != 0) {
            for (sum, count) in snapshot.values.iter_mut().zip(&shard.rows) {
                *sum = sum.wrapping_add(count.load(Ordering::Relaxed));
            }
        }
        for declared in ROWS.iter().filter(|declared| declared.kind.is_timed()) {
            let index = declared.row.timed_index();
            snapshot.times[index] = self.times[index].read();
        }
        snapshot
    }

    fn shard(&self) -> &Shard {
        let key = thread_key();
        let mut places = places_of_thread(key).map(|place| &self.shards[place]).take(LOOKS).peekable();
        let first = *places.peek().expect("a table has places");
        let of_thread = places.find(|shard| {
            let owner = shard.owner.load(Ordering::Relaxed);
            let take = || shard.owner.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed);
            owner == key || (owner == 0 && take().is_ok())
        });
        of_thread.unwrap_or(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    static COUNTERS: Counters = Counters::new();
    static FULL: Counters = Counters::new();

    #[test]
    fn threads_count_in_shards_of_their_own() {
        const THREADS: usize = 4;
        let meet = Barrier::new(THREADS);
        let count = || {
            meet.wait();
            (0..1000).for_each(|_| COUNTERS.add(Row::HitGets, 1));
            COUNTERS.note_thread();
            COUNTERS.note_thread();
            COUNTERS.time(Row::WaitPage, 1000);
            // The threads live until here, so their keys differ.
            meet.wait();
        };
        std::thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(count))));
        let read = COUNTERS.read();
        assert_eq!((read.get(Row::HitGets), read.get(Row::Threads)), (4000, 4));
        assert_eq!((read.get(Row::WaitPage), read.times_of(Row::WaitPage).map(|times| times.sum_ns)), (4, Some(4000)));
        let shards =
            COUNTERS.shards.iter().filter(|shard| shard.rows[Row::HitGets as usize].load(Ordering::Relaxed) > 0);
        assert_eq!(shards.count(), THREADS);
    }

    #[test]
    fn threads_without_a_shard_are_counted() {
        FULL.shards.iter().for_each(|shard| shard.owner.store(1, Ordering::Relaxed));
        FULL.add(Row::HitPuts, 3);
        FULL.add(Row::HitPuts, 1_u64.wrapping_neg());
        assert_eq!(FULL.read().get(Row::HitPuts), 2);
        let shards = FULL.shards.iter().filter(|shard| shard.rows[Row::HitPuts as usize].load(Ordering::Relaxed) > 0);
        assert_eq!(shards.count(), 1, "a thread counts in one place");
    }
}

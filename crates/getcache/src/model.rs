//! Hits under the model checker; run by `RUSTFLAGS="--cfg loom" cargo test -p vgasnet-getcache --lib --release model`.

use crate::entry::{Bytes, Entry};
use crate::readers::{Readers, mark};
use crate::shared::{Arena, Shared};
use crate::sync::{Ordering, fence};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use vgasnet_protocol::get_cache::{EntryId, Hash, Hasher, Key, SLOTS, UNIT_BYTES};

const KEY: Key = Key { space: 0, target: 1, address: 64 };
const THREADS: u32 = 2;
const OTHER: Key = Key { space: 0, target: 1, address: 128 };

/// A cache of one or two entries, and the two halves of the first one's bytes.
struct Cache {
    shared: Shared,
    cells: [UnsafeCell<u64>; 2],
}

// SAFETY: the model checker reports conflicting accesses to the cells.
unsafe impl Sync for Cache {}
// SAFETY: as above.
unsafe impl Send for Cache {}

fn hash(key: &Key) -> Hash {
    Hasher::new(1).hash(key)
}

impl Cache {
    fn new(buckets: u32) -> Arc<Cache> {
        let arena = Arena::new(UNIT_BYTES, 0).expect("no chunks");
        let shared = Shared::new(buckets, 1, 1, arena, Readers::new(THREADS, true)).expect("few entries");
        shared.buckets.store(buckets, Ordering::Relaxed);
        Arc::new(Cache { shared, cells: [UnsafeCell::new(0), UnsafeCell::new(0)] })
    }

    fn entry(&self) -> &Entry {
        self.shared.entry(EntryId(0))
    }

    fn set_slot(&self, at: u32, key: Option<&Key>) {
        let slot = key.map_or(0, |key| hash(key).slot(EntryId(0), 0));
        self.shared.slot(at).store(slot, Ordering::Relaxed);
    }

    fn write(&self, half: usize, value: u64) {
        // SAFETY: the checker reports concurrent reads.
        self.cells[half].with_mut(|cell| unsafe { *cell = value });
    }

    fn open(&self, key: &Key, generation: u32, value: u64, len: u32) {
        (0..len as usize).for_each(|half| self.write(half, value));
        self.entry().open(key, hash(key), generation, Bytes { data: std::ptr::null_mut(), len });
    }

    /// The value read by a hit of `len` halves, equal in all of them.
    fn hit(&self, thread: u32, key: &Key, len: u32) -> Option<u64> {
        let shard = self.shared.readers.shard(thread).unwrap();
        shard.begin(mark(hash(key)), &self.shared.readers);
        let found = self.shared.find(key, hash(key), len).map(|(_, bytes)| self.read(&bytes));
        shard.end();
        found
    }

    fn read(&self, bytes: &Bytes) -> u64 {
        // SAFETY: the checker reports concurrent writes.
        let read = |half: u32| self.cells[half as usize].with(|cell| unsafe { *cell });
        let value = read(0);
        assert!((0..bytes.len).all(|half| read(half) == value), "bytes of one get");
        value
    }

    fn close(&self) {
        self.entry().close();
        fence(Ordering::SeqCst);
    }

    fn is_used(&self) -> bool {
        let threads: Vec<u32> = (0..THREADS).collect();
        self.entry().is_pinned() || self.shared.readers.are_reading(&threads, self.entry().mark())
    }

    /// As in the driver.
    fn try_close(&self) -> bool {
        self.close();
        let is_used = self.is_used();
        if is_used {
            self.entry().reopen();
        }
        !is_used
    }
}

fn check(run: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(3));
    model.check(run);
}

/// A thread hits or misses while the entry is being filled.
#[test]
fn model_a_hit_finds_bytes_that_are_complete() {
    check(|| {
        let cache = Cache::new(1);
        let reader = thread::spawn({
            let cache = cache.clone();
            move || assert!(matches!(cache.hit(1, &KEY, 2), None | Some(7)))
        });
        cache.set_slot(0, Some(&KEY));
        cache.open(&KEY, 0, 7, 2);
        reader.join().unwrap();
        assert_eq!(cache.hit(0, &KEY, 2), Some(7));
    });
}

/// An entry is reused for another key of the same generation while a thread looks up one of both keys. Looking up both
/// in sequence would take minutes.
#[test]
fn model_an_evicted_entry_is_nobodys() {
    for (key, value) in [(&KEY, 1), (&OTHER, 2)] {
        check(move || {
            let cache = Cache::new(1);
            cache.set_slot(0, Some(&KEY));
            cache.open(&KEY, 0, 1, 1);
            let reader = thread::spawn({
                let cache = cache.clone();
                move || assert!(cache.hit(1, key, 1).is_none_or(|hit| hit == value))
            });
            if cache.try_close() {
                cache.set_slot(0, None);
                cache.open(&OTHER, 0, 2, 1);
                cache.set_slot(0, Some(&OTHER));
            }
            reader.join().unwrap();
        });
    }
}

/// An entry dropped while pinned is overwritten only after its last unpin.
#[test]
fn model_a_dropped_entry_lingers_until_it_is_unpinned() {
    check(|| {
        let cache = Cache::new(1);
        cache.set_slot(0, Some(&KEY));
        cache.open(&KEY, 0, 1, 1);
        let reader = thread::spawn({
            let cache = cache.clone();
            move || assert!(matches!(cache.hit(1, &KEY, 1), None | Some(1 | 2)))
        });
        cache.close();
        assert_eq!(cache.hit(0, &KEY, 1), None, "nobody pins it any more");
        if !cache.is_used() {
            cache.open(&KEY, 0, 2, 1);
        }
        reader.join().unwrap();
    });
}

/// A get after an invalidation receives nothing older.
#[test]
fn model_an_invalidated_space_serves_nothing_old() {
    check(|| {
        let cache = Cache::new(1);
        cache.set_slot(0, Some(&KEY));
        cache.open(&KEY, 0, 1, 1);
        let told = Arc::new(loom::sync::atomic::AtomicBool::new(false));
        let reader = thread::spawn({
            let (cache, told) = (cache.clone(), told.clone());
            move || {
                let is_told = told.load(Ordering::Acquire);
                match cache.hit(1, &KEY, 1) {
                    Some(1) => assert!(!is_told, "it is old"),
                    found => assert!(matches!(found, None | Some(2))),
                }
            }
        });
        cache.shared.generations[0].store(1, Ordering::Release);
        told.store(true, Ordering::Release);
        assert_eq!(cache.hit(0, &KEY, 1), None);
        if cache.try_close() {
            cache.open(&KEY, 1, 2, 1);
        }
        reader.join().unwrap();
    });
}

/// An entry whose slot moves is found or overlooked, and never another key in its place.
#[test]
fn model_an_entry_that_moves_in_the_index_is_found_or_overlooked() {
    let mut keys = (0..).map(|at| Key { address: 64 * at, ..KEY });
    let key = keys.find(|key| hash(key).homes(2) == [0, 1]).expect("one in four");
    check(move || {
        let cache = Cache::new(2);
        cache.set_slot(0, Some(&key));
        cache.open(&key, 0, 1, 1);
        let reader = thread::spawn({
            let cache = cache.clone();
            move || assert!(matches!(cache.hit(1, &key, 1), None | Some(1)))
        });
        cache.set_slot(SLOTS, Some(&key));
        cache.set_slot(0, None);
        assert_eq!(cache.hit(0, &key, 1), Some(1), "who moves it finds it");
        if cache.try_close() {
            cache.write(0, 3);
        }
        reader.join().unwrap();
    });
}

/// An entry grows while threads hit its leading bytes.
#[test]
fn model_an_entry_that_grows_serves_what_is_there() {
    check(|| {
        let cache = Cache::new(1);
        cache.set_slot(0, Some(&KEY));
        cache.open(&KEY, 0, 5, 1);
        let reader = thread::spawn({
            let cache = cache.clone();
            move || {
                assert_eq!(cache.hit(1, &KEY, 1), Some(5));
                assert!(matches!(cache.hit(1, &KEY, 2), None | Some(5)));
            }
        });
        cache.write(1, 5);
        cache.entry().lengthen(2);
        reader.join().unwrap();
        assert_eq!(cache.hit(0, &KEY, 2), Some(5));
    });
}

/// The filling thread keeps an entry pinned while it copies the bytes: they are not reused for another key meanwhile,
/// with or without other hits.
#[test]
fn model_what_is_held_stays_until_it_is_unpinned() {
    check(|| {
        let cache = Cache::new(1);
        cache.set_slot(0, Some(&KEY));
        cache.open(&KEY, 0, 4, 1);
        cache.entry().pin();
        let filler = thread::spawn({
            let cache = cache.clone();
            move || {
                // SAFETY: the checker reports concurrent writes.
                assert_eq!(cache.cells[0].with(|cell| unsafe { *cell }), 4);
                cache.entry().unpin();
            }
        });
        assert_eq!(cache.hit(0, &KEY, 1), Some(4));
        if cache.try_close() {
            cache.open(&OTHER, 0, 5, 1);
            cache.set_slot(0, Some(&OTHER));
        }
        filler.join().unwrap();
        assert!(matches!((cache.hit(0, &KEY, 1), cache.hit(0, &OTHER, 1)), (Some(4), None) | (None, Some(5))));
    });
}

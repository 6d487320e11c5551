//! The cache's interface for threads.

use crate::ask::{Ask, Fill, Outcome};
use crate::driver::{Driver, HITS_A_LOOK_LOG2};
use crate::entry::Bytes;
use crate::locked::Locked;
use crate::memory::{Heap, Memory};
use crate::readers::{Readers, Shard, mark};
use crate::shared::{Arena, Shared};
use crate::sync::Ordering;
use crate::{barrier, threads};
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use vgasnet_protocol::get_cache::{
    Answer, Filled, GENERATION_PLACES, Hash, Hasher, Key, Limits, Machine, Part, Stats, TARGET_PLACES,
};

/// The state behind the lock; public only as a type parameter of [`GetCache`].
pub struct CacheState<M: Memory>(Machine<Driver<M>, Waiter>);

/// A get waiting for bytes fetched by another.
struct Waiter {
    dest: *mut u8,
    skip: u32,
    len: u32,
    number: u64,
}

impl Waiter {
    /// Copies its bytes from an entry's.
    ///
    /// # Safety
    ///
    /// `bytes` has the bytes claimed when the waiter joined, and nobody writes them meanwhile.
    unsafe fn serve(&self, bytes: *const u8) {
        // SAFETY: the caller guarantees the bytes, and the get's caller the room at the destination.
        unsafe { copy(bytes.add(self.skip as usize), self.dest, self.len) }
    }
}

/// Copies bytes.
///
/// # Safety
///
/// As of [`std::ptr::copy_nonoverlapping`].
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, len: u32) {
    // SAFETY: both sides are valid for `len` bytes, and do not overlap.
    unsafe {
        if len == 8 {
            // Much shorter than a call.
            to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned());
        } else {
            std::ptr::copy_nonoverlapping(from, to, len as usize);
        }
    }
}

// SAFETY: the get's caller keeps the destination valid for any thread until the waiter is handed back.
unsafe impl Send for Waiter {}

/// A cache of small gets shared by threads. A hit takes no lock; all else takes one, under which no bytes are copied.
///
/// The cache does not interpret bytes: it returns cached bytes until [`GetCache::invalidate`] or
/// [`GetCache::drop_range`] invalidates them.
pub struct GetCache<M: Memory = Heap, L: Locked<CacheState<M>> = Mutex<CacheState<M>>> {
    shared: Arc<Shared>,
    hasher: Hasher,
    number: u64,
    state: L,
    memory: PhantomData<fn(M)>,
}

impl<M: Memory, L: Locked<CacheState<M>>> fmt::Debug for GetCache<M, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GetCache").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// The tables shared by all threads, for a cache within `limits`, if there is memory for them.
fn tables(limits: &Limits) -> Option<Shared> {
    let readers = Readers::new(threads::THREADS, !barrier::is_there());
    let arena = Arena::new(limits.chunk_bytes, limits.chunks_max)?;
    Shared::new(limits.buckets_max(), limits.entries_max, GENERATION_PLACES + TARGET_PLACES, arena, readers)
}

static CACHES: AtomicU64 = AtomicU64::new(0);

impl<M: Memory, L: Locked<CacheState<M>>> GetCache<M, L> {
    /// An empty cache. It allocates memory as entries are cached. It is off if there is no memory for its tables, which
    /// reserve address space for the maximum size.
    pub fn new(limits: Limits, mut memory: M) -> GetCache<M, L> {
        let (shared, limits) = tables(&limits).map(|shared| (shared, limits)).unwrap_or_else(|| {
            memory.on_refused();
            let least = Limits { chunks_max: 1, entries_max: 1, entries_start: 1, ..limits };
            let shared = tables(&least).expect("memory for a table of one entry");
            shared.is_off.store(true, Ordering::Relaxed);
            (shared, least)
        });
        let (shared, hasher) = (Arc::new(shared), Hasher::new(limits.seed));
        let driver = Driver::new(shared.clone(), memory, limits.chunk_bytes as usize, hasher);
        let machine = Machine::new(driver, limits);
        GetCache {
            shared,
            hasher,
            number: CACHES.fetch_add(1, Ordering::Relaxed),
            state: L::new(CacheState(machine)),
            memory: PhantomData,
        }
    }

    /// Copies `len` bytes from `skip` bytes after the key's address, if all are cached and no lock is needed. Otherwise
    /// it does nothing and counts nothing.
    ///
    /// # Safety
    ///
    /// `dest` is valid for writes of `len` bytes.
    #[inline]
    pub unsafe fn hit(&self, key: &Key, skip: u32, len: u32, dest: *mut u8) -> bool {
        let hash = self.hasher.hash(key);
        let shared = &*self.shared;
        let Some(shard) = shared.readers.shard(threads::own()).filter(|shard| shard.is_ready()) else { return false };
        let is_dormant = shared.is_dormant.load(Ordering::Relaxed) && !hash.is_sampled();
        // SAFETY: `dest` is valid for writes of `len` bytes.
        !is_dormant && unsafe { self.copy_found(shard, key, hash, (skip, len), dest) }
    }

    /// Gets the bytes of `ask`, as far as they are cached.
    ///
    /// # Safety
    ///
    /// `dest` is valid for writes of `ask.len` bytes. After [`Outcome::Joined`] it stays valid, and its bytes unused,
    /// until the thread filling or abandoning the entry receives the waiter.
    #[inline]
    pub unsafe fn get(&self, key: &Key, ask: &Ask, dest: *mut u8) -> Outcome {
        let hash = self.hasher.hash(key);
        let shared = &*self.shared;
        let Some(shard) = shared.readers.shard(threads::own()).filter(|shard| shard.is_ready()) else {
            // SAFETY: `dest` is valid for writes of `ask.len` bytes, and after [`Outcome::Joined`] until the waiter is
            // received.
            return unsafe { self.get_anew(key, ask, dest) };
        };
        let is_dormant = shared.is_dormant.load(Ordering::Relaxed) && !hash.is_sampled();
        if is_dormant || shared.is_off.load(Ordering::Relaxed) {
            shard.on_dormant(ask.len);
            return Outcome::Miss { from: 0, fill: None };
        }
        // SAFETY: `dest` is valid for writes of `ask.len` bytes. After [`Outcome::Joined`] it stays valid, and its
        // bytes unused, until the thread filling or abandoning the entry receives the waiter.
        unsafe {
            if self.copy_found(shard, key, hash, (ask.skip, ask.len), dest) {
                Outcome::Hit
            } else {
                self.get_slowly(key, ask, dest)
            }
        }
    }

    /// Copies `len` bytes of a key's entry from offset `skip`, if all are cached.
    ///
    /// # Safety
    ///
    /// `dest` is valid for writes of `len` bytes. The shard belongs to this thread, and is ready.
    #[inline]
    unsafe fn copy_found(&self, shard: &Shard, key: &Key, hash: Hash, (skip, len): (u32, u32), dest: *mut u8) -> bool {
        let shared = &*self.shared;
        shard.begin(mark(hash), &shared.readers);
        let Some((entry, bytes)) = shared.find(key, hash, skip.saturating_add(len)) else {
            shard.end();
            return false;
        };
        // SAFETY: the entry has this many bytes, and nobody writes them while this thread reads its key; the caller
        // guarantees the room.
        unsafe { copy(bytes.data.add(skip as usize), dest, len) };
        shared.warm(entry);
        shard.end();
        if shard.on_hit(len) % (1 << HITS_A_LOOK_LOG2) == 0 && shared.readers.is_fenced() {
            self.state.with(|state| state.0.mirror.look_at_readers());
        }
        true
    }

    /// A get of a thread unknown to this cache, without a number, or interrupted in a read.
    ///
    /// # Safety
    ///
    /// As of [`GetCache::get`].
    #[cold]
    unsafe fn get_anew(&self, key: &Key, ask: &Ask, dest: *mut u8) -> Outcome {
        self.state.with(|state| state.0.mirror.add_reader(threads::own()));
        if self.shared.is_off.load(Ordering::Relaxed) {
            self.shared.readers.shard(threads::own()).inspect(|shard| shard.on_dormant(ask.len));
            return Outcome::Miss { from: 0, fill: None };
        }
        // SAFETY: `dest` is valid for writes of `ask.len` bytes, and after [`Outcome::Joined`] until the waiter is
        // received.
        unsafe { self.get_slowly(key, ask, dest) }
    }

    /// The fetched bytes are in the entry's room. Returns the joined waiters, after copying their bytes to their
    /// destinations. The copies come from the entry even if it is not cached because of a write or invalidation
    /// meanwhile.
    pub fn fill_in_place(&self, fill: Fill) -> impl ExactSizeIterator<Item = u64> + use<M, L> {
        assert_eq!(fill.cache, self.number, "a place of this cache");
        let Filled { waiters, is_pinned, .. } = self.state.with(|state| state.0.fill_pinned(fill.entry));
        for waiter in &waiters {
            // SAFETY: all bytes of the entry are present. With waiters it is pinned, so nobody writes them.
            unsafe { waiter.serve(fill.data.as_ptr()) };
        }
        if is_pinned {
            self.shared.entry(fill.entry).unpin();
        }
        waiters.into_iter().map(|waiter| waiter.number)
    }

    /// As [`GetCache::fill_in_place`], with the bytes elsewhere: `bytes` has all of them from the key's address on,
    /// including the ones not missing. The waiters' are copied from there.
    pub fn fill(&self, fill: Fill, bytes: &[u8]) -> impl ExactSizeIterator<Item = u64> + use<M, L> {
        assert_eq!(fill.cache, self.number, "a place of this cache");
        assert_eq!(bytes.len(), fill.size(), "all bytes of the entry");
        let (room, len) = fill.room();
        // SAFETY: the room has this many bytes and belongs to this fill; nobody reads them before the machine opens or
        // lengthens the entry.
        unsafe { copy(bytes[fill.first_missing()..].as_ptr(), room.as_ptr(), len as u32) };
        let waiters = self.state.with(|state| state.0.fill(fill.entry).waiters);
        for waiter in &waiters {
            // SAFETY: all bytes of the entry are present.
            unsafe { waiter.serve(bytes.as_ptr()) };
        }
        waiters.into_iter().map(|waiter| waiter.number)
    }

    /// The bytes to be fetched will not arrive. Returns the waiters, which did not get theirs.
    pub fn abandon(&self, fill: Fill) -> impl ExactSizeIterator<Item = u64> + use<M, L> {
        assert_eq!(fill.cache, self.number, "a place of this cache");
        let waiters = self.state.with(|state| state.0.abandon(fill.entry));
        waiters.into_iter().map(|waiter| waiter.number)
    }

    /// Stops serving earlier bytes of a space. Also affects spaces whose numbers differ by a multiple of
    /// [`GENERATION_PLACES`].
    pub fn invalidate(&self, space: u32) {
        self.state.with(|state| state.0.invalidate(space));
    }

    /// As [`GetCache::invalidate`], for one target of a space. May also affect a small number of other targets.
    pub fn invalidate_target(&self, space: u32, target: u32) {
        self.state.with(|state| state.0.invalidate_target(space, target));
    }

    /// As [`GetCache::invalidate`], and frees the memory at once: the space is gone, or its number will be reused.
    pub fn forget(&self, space: u32) {
        self.state.with(|state| state.0.forget(space));
    }

    /// Stops serving bytes of a range, and does not cache its bytes in flight: they are being written.
    pub fn drop_range(&self, space: u32, target: u32, start: u64, len: u64) {
        self.state.with(|state| state.0.drop_range(space, target, start, len));
    }

    /// Statistics so far.
    pub fn stats(&self) -> Stats {
        self.state.with(|state| state.0.stats())
    }

    /// A get that misses, or overlooks its bytes.
    ///
    /// # Safety
    ///
    /// As of [`GetCache::get`].
    #[cold]
    unsafe fn get_slowly(&self, key: &Key, ask: &Ask, dest: *mut u8) -> Outcome {
        let waiter = Waiter { dest, skip: ask.skip, len: ask.len, number: ask.waiter };
        let (answer, data) = self.state.with(|state| {
            let answer = state.0.get(key, &ask.want(), waiter);
            let fill = if let Answer::Miss { fill, .. } = answer { fill } else { None };
            (answer, fill.map(|part| state.0.mirror.data(part.place)))
        });
        match answer {
            Answer::Hit(part) => {
                let entry = self.shared.entry(part.entry);
                // SAFETY: the machine has pinned the entry for this get, its `part.len` bytes reach the end of the
                // request, and the caller guarantees the room.
                unsafe { copy(entry.bytes().data.add(ask.skip as usize), dest, ask.len) };
                entry.unpin();
                Outcome::Hit
            }
            Answer::Joined => Outcome::Joined,
            Answer::Miss { head, fill } => {
                let first_missing = head.map_or(0, |head| head.len);
                let fill = fill.zip(data).map(|(part, data)| Fill {
                    entry: part.entry,
                    data,
                    first_missing,
                    size: part.len,
                    cache: self.number,
                });
                // SAFETY: the machine has pinned the head for this get, and the caller guarantees the room.
                let from = head.map_or(0, |head| unsafe { self.copy_head(head, ask, dest, fill.as_ref()) });
                Outcome::Miss { from, fill }
            }
        }
    }

    /// Copies the leading bytes of an object to the destination, and unpins their entry. Returns the number of
    /// requested bytes copied.
    ///
    /// # Safety
    ///
    /// The caller has pinned the entry, and `dest` is valid for writes of `ask.len` bytes.
    unsafe fn copy_head(&self, head: Part, ask: &Ask, dest: *mut u8, fill: Option<&Fill>) -> usize {
        let entry = self.shared.entry(head.entry);
        let Bytes { data, len } = entry.bytes();
        debug_assert!(len >= head.len);
        let from = ask.want().within(head.len);
        if from > 0 {
            // SAFETY: nobody writes bytes of a pinned entry, and it has more than `skip` bytes.
            unsafe { copy(data.add(ask.skip as usize), dest, from) };
        }
        if let Some(fill) = fill.filter(|fill| fill.entry != head.entry) {
            // SAFETY: as above; the new entry is longer, and nobody reads its bytes before it is filled.
            unsafe { copy(data, fill.data.as_ptr(), head.len) };
        }
        entry.unpin();
        from as usize
    }
}

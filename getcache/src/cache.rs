//! The cache as threads use it.

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

/// What is behind the lock: for the type parameter of [`GetCache`] only.
pub struct State<M: Memory>(Machine<Driver<M>, Waiter>);

/// A get that waits for bytes which another one fetches.
struct Waiter {
    dest: *mut u8,
    skip: u32,
    len: u32,
    number: u64,
}

impl Waiter {
    /// Copies its bytes from those of an entry.
    ///
    /// # Safety
    ///
    /// The entry has as many bytes there as were claimed when the waiter joined, and nobody writes them meanwhile.
    unsafe fn serve(&self, bytes: *const u8) {
        // SAFETY: the caller says that the bytes are there, and who asked that there is room at the destination.
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
    // SAFETY: as the caller says.
    unsafe {
        if len == 8 {
            // Much shorter than a call.
            to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned());
        } else {
            std::ptr::copy_nonoverlapping(from, to, len as usize);
        }
    }
}

// SAFETY: who asked keeps the destination valid until the waiter is handed back, for whichever thread that does.
unsafe impl Send for Waiter {}

/// A cache of small gets that threads share. A hit takes no lock; everything else takes one, under which no bytes are copied.
///
/// It knows nothing of the bytes' meaning: what it was given is what it returns, until [`GetCache::invalidate`] or
/// [`GetCache::drop_range`] says that it is old.
pub struct GetCache<M: Memory = Heap, L: Locked<State<M>> = Mutex<State<M>>> {
    shared: Arc<Shared>,
    hasher: Hasher,
    number: u64,
    state: L,
    memory: PhantomData<fn(M)>,
}

impl<M: Memory, L: Locked<State<M>>> fmt::Debug for GetCache<M, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GetCache").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// What all threads look at, for a cache within these limits, if there is memory for it.
fn tables(limits: &Limits) -> Option<Shared> {
    let readers = Readers::new(threads::THREADS, !barrier::is_there());
    let arena = Arena::new(limits.chunk_bytes, limits.chunks_max)?;
    Shared::new(limits.buckets_max(), limits.entries_max, GENERATION_PLACES + TARGET_PLACES, arena, readers)
}

static CACHES: AtomicU64 = AtomicU64::new(0);

impl<M: Memory, L: Locked<State<M>>> GetCache<M, L> {
    /// An empty cache. It asks for memory when something is to be kept. If there is none for its tables, which take address space for
    /// all that it may ever have, it is off.
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
            state: L::new(State(machine)),
            memory: PhantomData,
        }
    }

    /// Gets `len` bytes that begin `skip` bytes after the key's address, if they are all here and no lock is needed for it. Otherwise
    /// nothing has happened, and nothing is counted.
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
        // SAFETY: as the caller says.
        !is_dormant && unsafe { self.copy_found(shard, key, hash, (skip, len), dest) }
    }

    /// Gets the bytes that `ask` says, as far as they are here.
    ///
    /// # Safety
    ///
    /// `dest` is valid for writes of `ask.len` bytes. If the outcome is [`Outcome::Joined`], it stays so, and nobody else uses the bytes
    /// there, until whoever fills or abandons the entry is handed the waiter.
    #[inline]
    pub unsafe fn get(&self, key: &Key, ask: &Ask, dest: *mut u8) -> Outcome {
        let hash = self.hasher.hash(key);
        let shared = &*self.shared;
        let Some(shard) = shared.readers.shard(threads::own()).filter(|shard| shard.is_ready()) else {
            // SAFETY: as the caller says.
            return unsafe { self.get_anew(key, ask, dest) };
        };
        let is_dormant = shared.is_dormant.load(Ordering::Relaxed) && !hash.is_sampled();
        if is_dormant || shared.is_off.load(Ordering::Relaxed) {
            shard.on_dormant(ask.len);
            return Outcome::Miss { from: 0, fill: None };
        }
        // SAFETY: as the caller says.
        unsafe {
            if self.copy_found(shard, key, hash, (ask.skip, ask.len), dest) {
                Outcome::Hit
            } else {
                self.get_slowly(key, ask, dest)
            }
        }
    }

    /// Copies bytes of a key's entry, from so many behind the key on, if they are all here.
    ///
    /// # Safety
    ///
    /// `dest` is valid for writes of as many bytes. The shard is this thread's, and ready.
    #[inline]
    unsafe fn copy_found(&self, shard: &Shard, key: &Key, hash: Hash, (skip, len): (u32, u32), dest: *mut u8) -> bool {
        let shared = &*self.shared;
        shard.begin(mark(hash), &shared.readers);
        let Some((entry, bytes)) = shared.find(key, hash, skip.saturating_add(len)) else {
            shard.end();
            return false;
        };
        // SAFETY: the entry has as many bytes and this thread reads its key, so nobody writes them; the caller says that there is room.
        unsafe { copy(bytes.data.add(skip as usize), dest, len) };
        shared.warm(entry);
        shard.end();
        if shard.on_hit(len) % (1 << HITS_A_LOOK_LOG2) == 0 && shared.readers.is_fenced() {
            self.state.with(|state| state.0.mirror.look_at_readers());
        }
        true
    }

    /// A get of a thread that this cache does not know, or that has no number, or that reads meanwhile.
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
        // SAFETY: as the caller says.
        unsafe { self.get_slowly(key, ask, dest) }
    }

    /// The bytes that a get was to fetch are in the entry's room. Returns the waiters whose bytes came with them, and are at their
    /// destinations: those are copied from the entry, also where it is not kept, since somebody wrote or invalidated meanwhile.
    pub fn fill_in_place(&self, fill: Fill) -> impl ExactSizeIterator<Item = u64> + use<M, L> {
        assert_eq!(fill.cache, self.number, "a place of this cache");
        let Filled { waiters, is_pinned, .. } = self.state.with(|state| state.0.fill_pinned(fill.entry));
        for waiter in &waiters {
            // SAFETY: all bytes that the entry was to have are there. It is pinned where there are waiters, so nobody writes them.
            unsafe { waiter.serve(fill.data.as_ptr()) };
        }
        if is_pinned {
            self.shared.entry(fill.entry).unpin();
        }
        waiters.into_iter().map(|waiter| waiter.number)
    }

    /// As [`GetCache::fill_in_place`], where the bytes came elsewhere: all of them from the key's address on, also those that were not
    /// missing. The waiters' are copied from there.
    pub fn fill(&self, fill: Fill, bytes: &[u8]) -> impl ExactSizeIterator<Item = u64> + use<M, L> {
        assert_eq!(fill.cache, self.number, "a place of this cache");
        assert_eq!(bytes.len(), fill.size(), "all bytes of the entry");
        let (room, len) = fill.room();
        // SAFETY: the room has as many bytes, is kept for this fill, and nobody looks at them before the machine opens or lengthens the
        // entry.
        unsafe { copy(bytes[fill.first_missing()..].as_ptr(), room.as_ptr(), len as u32) };
        let waiters = self.state.with(|state| state.0.fill(fill.entry).waiters);
        for waiter in &waiters {
            // SAFETY: all bytes that the entry was to have are there.
            unsafe { waiter.serve(bytes.as_ptr()) };
        }
        waiters.into_iter().map(|waiter| waiter.number)
    }

    /// The bytes that a get was to fetch do not come. Returns the waiters that do not get theirs.
    pub fn abandon(&self, fill: Fill) -> impl ExactSizeIterator<Item = u64> + use<M, L> {
        assert_eq!(fill.cache, self.number, "a place of this cache");
        let waiters = self.state.with(|state| state.0.abandon(fill.entry));
        waiters.into_iter().map(|waiter| waiter.number)
    }

    /// Nothing of a space is served any more that was asked for before. Spaces whose numbers differ by a multiple of
    /// [`GENERATION_PLACES`] share that.
    pub fn invalidate(&self, space: u32) {
        self.state.with(|state| state.0.invalidate(space));
    }

    /// As [`GetCache::invalidate`], for one target of a space. Few others may share that.
    pub fn invalidate_target(&self, space: u32, target: u32) {
        self.state.with(|state| state.0.invalidate_target(space, target));
    }

    /// As [`GetCache::invalidate`], and its memory is free at once: the space is gone, or its number will be another's.
    pub fn forget(&self, space: u32) {
        self.state.with(|state| state.0.forget(space));
    }

    /// Bytes of a range are not served any more, and those on their way are not kept: somebody writes them.
    pub fn drop_range(&self, space: u32, target: u32, start: u64, len: u64) {
        self.state.with(|state| state.0.drop_range(space, target, start, len));
    }

    /// What the cache has done so far.
    pub fn stats(&self) -> Stats {
        self.state.with(|state| state.0.stats())
    }

    /// A get that does not find its bytes, or overlooks them.
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
                // SAFETY: the machine has pinned it for this get, and it has `part.len` bytes, at which those end that are asked for; the
                // caller says that there is room.
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
                // SAFETY: the machine has pinned the head for this get, and the caller says that there is room.
                let from = head.map_or(0, |head| unsafe { self.copy_head(head, ask, dest, fill.as_ref()) });
                Outcome::Miss { from, fill }
            }
        }
    }

    /// Copies the first bytes of an object to where they are wanted, and unpins the entry that has them. Returns how many of those that
    /// were asked for are there.
    ///
    /// # Safety
    ///
    /// The caller has the entry pinned, and as many bytes can be written at the destination as are asked for.
    unsafe fn copy_head(&self, head: Part, ask: &Ask, dest: *mut u8, fill: Option<&Fill>) -> usize {
        let entry = self.shared.entry(head.entry);
        let Bytes { data, len } = entry.bytes();
        debug_assert!(len >= head.len);
        let from = ask.want().within(head.len);
        if from > 0 {
            // SAFETY: nobody writes bytes of a pinned entry, which are more than are skipped.
            unsafe { copy(data.add(ask.skip as usize), dest, from) };
        }
        if let Some(fill) = fill.filter(|fill| fill.entry != head.entry) {
            // SAFETY: as above; the new entry is longer, and nobody looks at its bytes before it is filled.
            unsafe { copy(data, fill.data.as_ptr(), head.len) };
        }
        entry.unpin();
        from as usize
    }
}

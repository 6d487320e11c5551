//! The cache as threads use it.

use crate::driver::Driver;
use crate::entry::Bytes;
use crate::locked::Locked;
use crate::memory::{Heap, Memory};
use crate::shared::Shared;
use crate::sync::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use vgasnet_protocol::get_cache::{Answer, EntryId, GENERATION_PLACES, Hasher, Key, Limits, Machine, Part, Stats};

/// What is behind the lock: for the type parameter of [`GetCache`] only.
pub struct State<M: Memory>(Machine<Driver<M>, Waiter>);

/// A get that waits for bytes which another one fetches.
struct Waiter {
    dest: *mut u8,
    len: usize,
    number: u64,
}

// SAFETY: who asked keeps the destination valid until the waiter is handed back, for whichever thread that does.
unsafe impl Send for Waiter {}

/// What has become of a get.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All bytes are at the destination.
    Hit,
    /// They come with those of another get. Who fills that one copies them, and is handed the waiter.
    Joined,
    /// The caller fetches bytes.
    Miss {
        /// So many of the first ones are at the destination already.
        from: usize,
        /// The bytes are to be kept. The caller must pass this to [`GetCache::fill`] or [`GetCache::abandon`].
        fill: Option<Fill>,
    },
}

/// A place for bytes that are on their way. Where it is neither filled nor abandoned, gets that join wait for ever.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "gets that join wait for these bytes"]
pub struct Fill {
    entry: EntryId,
    data: NonNull<u8>,
    /// Where the bytes begin that are not there yet.
    from: u32,
    len: u32,
    /// Of which cache.
    cache: u64,
}

// SAFETY: the place is for whoever has this.
unsafe impl Send for Fill {}

impl Fill {
    /// How many bytes the entry will have.
    pub fn bytes(&self) -> usize {
        self.len as usize
    }
}

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

static CACHES: AtomicU64 = AtomicU64::new(0);

impl<M: Memory, L: Locked<State<M>>> GetCache<M, L> {
    /// An empty cache. It asks for memory when something is to be kept.
    pub fn new(limits: Limits, memory: M) -> GetCache<M, L> {
        let shared = Arc::new(Shared::new(limits.buckets_max(), limits.entries_max, GENERATION_PLACES));
        let driver = Driver::new(shared.clone(), memory, limits.chunk_bytes as usize);
        let machine = Machine::new(driver, limits);
        GetCache {
            shared,
            hasher: machine.hasher(),
            number: CACHES.fetch_add(1, Ordering::Relaxed),
            state: L::new(State(machine)),
            memory: PhantomData,
        }
    }

    /// Gets `len` bytes from `key` on, as far as they are here. Of equal use, what has more weight stays longer; 1 is usual.
    ///
    /// # Safety
    ///
    /// `dest` is valid for writes of `len` bytes. If the outcome is [`Outcome::Joined`], it stays so, and nobody else uses the bytes there,
    /// until [`GetCache::fill`] or [`GetCache::abandon`] hands the waiter back.
    #[inline]
    pub unsafe fn get(&self, key: &Key, dest: *mut u8, len: usize, weight: f32, waiter: u64) -> Outcome {
        let hash = self.hasher.hash(key);
        let is_dormant = self.shared.is_dormant.load(Ordering::Relaxed) && !hash.is_sampled();
        if is_dormant || self.shared.is_off.load(Ordering::Relaxed) {
            self.shared.counters.on_dormant(len);
            return Outcome::Miss { from: 0, fill: None };
        }
        let short = u32::try_from(len).unwrap_or(u32::MAX);
        let Some((entry, bytes)) = self.shared.pin(key, hash, short) else {
            // SAFETY: as the caller says.
            return unsafe { self.get_slowly(key, dest, short, weight, waiter) };
        };
        // SAFETY: the entry has as many bytes and is pinned, so nobody writes them; the caller says that there is room.
        unsafe { std::ptr::copy_nonoverlapping(bytes.data, dest, len) };
        self.shared.warm(entry);
        entry.unpin();
        self.shared.counters.on_hit(len);
        Outcome::Hit
    }

    /// The bytes that a get has fetched are there: all of them from the key on, also those that it did not have to fetch. Returns the waiters
    /// whose bytes came with them, and are at their destinations.
    pub fn fill(&self, fill: Fill, bytes: &[u8]) -> impl ExactSizeIterator<Item = u64> + use<M, L> {
        assert_eq!(fill.cache, self.number, "a place of this cache");
        assert_eq!(bytes.len(), fill.len as usize, "all bytes of the entry");
        let new = &bytes[fill.from as usize..];
        // SAFETY: the place has as many bytes, is kept for this fill, and nobody looks at them before the machine opens or lengthens the
        // entry.
        unsafe { std::ptr::copy_nonoverlapping(new.as_ptr(), fill.data.add(fill.from as usize).as_ptr(), new.len()) };
        let waiters = self.state.with(|state| state.0.fill(fill.entry).waiters);
        for waiter in &waiters {
            // SAFETY: it asked for no more bytes than the entry has, and its destination is valid until it is handed back.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), waiter.dest, waiter.len) };
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
    unsafe fn get_slowly(&self, key: &Key, dest: *mut u8, len: u32, weight: f32, number: u64) -> Outcome {
        let waiter = Waiter { dest, len: len as usize, number };
        let (answer, data) = self.state.with(|state| {
            let answer = state.0.get(key, len, weight, waiter);
            let fill = if let Answer::Miss { fill, .. } = answer { fill } else { None };
            (answer, fill.map(|part| state.0.mirror.data(part.place)))
        });
        match answer {
            Answer::Hit(part) => {
                // SAFETY: the machine has pinned it for this get, and the caller says that there is room.
                unsafe { self.copy_pinned(part, dest) };
                Outcome::Hit
            }
            Answer::Joined => Outcome::Joined,
            Answer::Miss { head, fill } => {
                if let Some(head) = head {
                    // SAFETY: as above.
                    unsafe { self.copy_pinned(head, dest) };
                }
                let fill = fill.zip(data).map(|(part, data)| {
                    let known = head.filter(|head| head.entry == part.entry);
                    let from = known.map_or(0, |head| head.len);
                    Fill { entry: part.entry, data, from, len: part.len, cache: self.number }
                });
                Outcome::Miss { from: head.map_or(0, |head| head.len as usize), fill }
            }
        }
    }

    /// Copies bytes of an entry, and unpins it.
    ///
    /// # Safety
    ///
    /// The caller has it pinned, and there is room for them.
    unsafe fn copy_pinned(&self, part: Part, dest: *mut u8) {
        let entry = self.shared.entry(part.entry);
        let Bytes { data, len } = entry.bytes();
        debug_assert!(len >= part.len);
        // SAFETY: nobody writes bytes of a pinned entry.
        unsafe { std::ptr::copy_nonoverlapping(data, dest, part.len as usize) };
        entry.unpin();
    }
}

//! State accessed by all threads: the slots of the index, the entries and the generations.

use crate::entry::{Bytes, Entry};
use crate::readers::Readers;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::table::Table;
use vgasnet_protocol::get_cache::{
    Clock, EntryId, Hash, Key, SLOTS, UNIT_BYTES, entry_of, generation_place, place_of, target_place,
};

/// Slots examined together.
#[derive(Debug, Default)]
#[repr(C, align(32))]
pub(crate) struct Bucket([AtomicU64; SLOTS as usize]);

// SAFETY: it consists of atomic integers.
#[cfg(not(all(loom, test)))]
unsafe impl crate::table::Zeroed for Bucket {}

/// Addresses of chunks, for prefetching bytes while their entry is examined.
#[derive(Debug)]
pub(crate) struct Arena {
    chunks: Table<AtomicU64>,
    /// The logarithm of a chunk's units, if that is a whole number.
    chunk_log2: u32,
}

impl Arena {
    /// `chunks` chunks of `chunk_bytes`. `None`: no memory for their addresses.
    pub fn new(chunk_bytes: u32, chunks: u32) -> Option<Arena> {
        let units = chunk_bytes / UNIT_BYTES;
        let is_known = units.is_power_of_two();
        let chunk_log2 = if is_known { units.ilog2() } else { 0 };
        Some(Arena { chunks: Table::new(if is_known { chunks as usize } else { 0 })?, chunk_log2 })
    }

    /// Records the address of a chunk.
    pub fn set_chunk(&self, at: usize, chunk: *mut u8) {
        if let Some(place) = self.chunks.get(at) {
            place.store(chunk as u64, Ordering::Relaxed);
        }
    }

    /// Prefetches the first bytes at a place, if present.
    #[inline]
    fn prefetch(&self, place: u32) {
        let Some(chunk) = self.chunks.get((place >> self.chunk_log2) as usize) else { return };
        let start = u64::from(place & ((1 << self.chunk_log2) - 1)) * u64::from(UNIT_BYTES);
        let first = chunk.load(Ordering::Relaxed).wrapping_add(start);
        prefetch(first);
        prefetch(first.wrapping_add(64));
    }
}

/// Prefetches a cache line.
#[inline]
fn prefetch(address: u64) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint, harmless at any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address as *const i8) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The tables of a cache. Written under its lock, read without it.
#[derive(Debug)]
pub(crate) struct Shared {
    slots: Table<Bucket>,
    entries: Table<Entry>,
    pub arena: Arena,
    pub generations: Table<AtomicU32>,
    pub buckets: AtomicU32,
    /// The time and the half-life of heat, in one word.
    clock: AtomicU64,
    /// Only sampled keys are looked up.
    pub is_dormant: AtomicBool,
    /// There is no memory, so nothing is looked up.
    pub is_off: AtomicBool,
    pub readers: Readers,
}

/// The slots of a bucket possibly leading to the key's entry, combined in one word: nearly always there is one.
#[inline]
fn suiting(bucket: &Bucket, hash: Hash) -> u64 {
    let suiting = bucket.0.each_ref().map(|slot| slot.load(Ordering::Relaxed));
    suiting.into_iter().fold(0, |all, slot| all | if hash.suits(slot) { slot } else { 0 })
}

impl Shared {
    /// Tables of these sizes, if there is memory for them.
    pub fn new(buckets: u32, entries: u32, generations: u32, arena: Arena, readers: Readers) -> Option<Shared> {
        Some(Shared {
            slots: Table::new(buckets as usize)?,
            entries: Table::new(entries as usize)?,
            generations: Table::new(generations as usize)?,
            arena,
            buckets: AtomicU32::new(1),
            clock: AtomicU64::new(0),
            is_dormant: AtomicBool::new(false),
            is_off: AtomicBool::new(false),
            readers,
        })
    }

    /// Finds an entry with at least `len` bytes of a key the caller has begun to read. May overlook an entry being
    /// moved.
    #[inline]
    pub fn find(&self, key: &Key, hash: Hash, len: u32) -> Option<(&Entry, Bytes)> {
        let [one, other] = self.buckets_of(hash)?;
        // All slots are read without branches: with random slots, branches would be mispredicted.
        let slot = suiting(one, hash) | suiting(other, hash);
        let id = entry_of(slot)?;
        self.arena.prefetch(place_of(slot));
        let entry = self.entries.get(id.index())?;
        match entry.find(key, self.generation(key), len) {
            Some(bytes) => Some((entry, bytes)),
            None => self.find_each(key, hash, len),
        }
    }

    /// Examines the entries one by one, because several may suit.
    #[cold]
    fn find_each(&self, key: &Key, hash: Hash, len: u32) -> Option<(&Entry, Bytes)> {
        let mut slots = self.buckets_of(hash)?.into_iter().flat_map(|bucket| &bucket.0);
        slots.find_map(|slot| {
            let entry = self.entries.get(hash.entry_in(slot.load(Ordering::Relaxed))?.index())?;
            entry.find(key, self.generation(key), len).map(|bytes| (entry, bytes))
        })
    }

    #[inline]
    fn buckets_of(&self, hash: Hash) -> Option<[&Bucket; 2]> {
        let homes = hash.homes(self.buckets.load(Ordering::Relaxed));
        let [one, other] = homes.map(|home| self.slots.get(home as usize));
        Some([one?, other?])
    }

    #[inline]
    fn generation(&self, key: &Key) -> u32 {
        // Acquire: bytes requested before this generation began are of an older one.
        let at = |place: usize| self.generations.get(place).map_or(0, |generation| generation.load(Ordering::Acquire));
        at(generation_place(key.space)).wrapping_add(at(target_place(key.space, key.target)))
    }

    /// A slot.
    pub fn slot(&self, at: u32) -> &AtomicU64 {
        &self.slots[(at / SLOTS) as usize].0[(at % SLOTS) as usize]
    }

    /// An entry.
    #[inline]
    pub fn entry(&self, id: EntryId) -> &Entry {
        &self.entries[id.index()]
    }

    /// Counts a use of an entry.
    #[inline]
    pub fn warm(&self, entry: &Entry) {
        let clock = self.clock.load(Ordering::Relaxed);
        let clock = Clock { now: clock as u32, half_life_log2: (clock >> 32) as u32 };
        entry.set_heat(entry.heat().used(clock));
    }

    /// Sets the time.
    pub fn set_clock(&self, clock: Clock) {
        let word = u64::from(clock.half_life_log2) << 32 | u64::from(clock.now);
        self.clock.store(word, Ordering::Relaxed);
    }
}

//! What all threads look at: the slots of the index, the entries and the generations.

use crate::entry::{Bytes, Entry};
use crate::readers::Readers;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::table::Table;
use vgasnet_protocol::get_cache::{Clock, EntryId, Hash, Key, SLOTS, generation_place};

/// The tables of a cache. They change under its lock, and are looked at without.
#[derive(Debug)]
pub(crate) struct Shared {
    pub slots: Table<AtomicU64>,
    pub entries: Table<Entry>,
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

impl Shared {
    /// Tables with room for so many.
    pub fn new(buckets: u32, entries: u32, generations: u32, readers: Readers) -> Shared {
        Shared {
            slots: Table::new((buckets * SLOTS) as usize),
            entries: Table::new(entries as usize),
            generations: Table::new(generations as usize),
            buckets: AtomicU32::new(1),
            clock: AtomicU64::new(0),
            is_dormant: AtomicBool::new(false),
            is_off: AtomicBool::new(false),
            readers,
        }
    }

    /// Finds an entry that has at least so many bytes of a key, which the caller has begun to read. It may overlook one that is being
    /// moved, and one of two whose hashes are much alike.
    #[inline]
    pub fn find(&self, key: &Key, hash: Hash, len: u32) -> Option<(&Entry, Bytes)> {
        // Acquire: what was asked for before this generation began is older than it.
        let generation = self.generations[generation_place(key.space)].load(Ordering::Acquire);
        let [one, other] = hash.homes(self.buckets.load(Ordering::Relaxed)).map(|home| (home * SLOTS) as usize);
        let slots = &*self.slots;
        let (one, other) = (slots.get(one..one + SLOTS as usize)?, slots.get(other..other + SLOTS as usize)?);
        // All slots are read, and none is jumped to: processors guess jumps, and wrongly where all is random.
        let mut found = 0;
        for slot in one.iter().chain(other) {
            let slot = slot.load(Ordering::Relaxed);
            found = if hash.suits(slot) { slot } else { found };
        }
        let id = hash.entry_in(found)?;
        let entry = &self.entries[id.index()];
        entry.find(key, generation, len).map(|bytes| (entry, bytes))
    }

    /// An entry.
    #[inline]
    pub fn entry(&self, id: EntryId) -> &Entry {
        &self.entries[id.index()]
    }

    /// Notes that an entry is used.
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

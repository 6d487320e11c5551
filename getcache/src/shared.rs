//! What all threads look at: the slots of the index, the entries and the generations.

use crate::counters::Counters;
use crate::entry::{Bytes, Entry};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, zeroed};
use vgasnet_protocol::get_cache::{Clock, EntryId, Hash, Heat, Key, SLOTS, generation_place};

/// The tables of a cache. They change under its lock, and are looked at without.
#[derive(Debug)]
pub(crate) struct Shared {
    pub slots: Box<[AtomicU64]>,
    pub entries: Box<[Entry]>,
    pub generations: Box<[AtomicU32]>,
    pub buckets: AtomicU32,
    /// The time and the half-life of heat, in one word.
    clock: AtomicU64,
    /// Only sampled keys are looked up.
    pub is_dormant: AtomicBool,
    /// There is no memory, so nothing is looked up.
    pub is_off: AtomicBool,
    pub counters: Counters,
}

impl Shared {
    /// Tables with room for so many.
    pub fn new(buckets: u32, entries: u32, generations: u32) -> Shared {
        Shared {
            slots: zeroed((buckets * SLOTS) as usize),
            entries: zeroed(entries as usize),
            generations: zeroed(generations as usize),
            buckets: AtomicU32::new(1),
            clock: AtomicU64::new(0),
            is_dormant: AtomicBool::new(false),
            is_off: AtomicBool::new(false),
            counters: Counters::new(),
        }
    }

    /// Finds and pins an entry that has at least so many bytes of a key. It may overlook one that is being moved.
    #[inline]
    pub fn pin(&self, key: &Key, hash: Hash, len: u32) -> Option<(&Entry, Bytes)> {
        // Acquire: what was asked for before this generation began is older than it.
        let generation = self.generations[generation_place(key.space)].load(Ordering::Acquire);
        let homes = hash.homes(self.buckets.load(Ordering::Relaxed));
        for home in homes {
            let Some(bucket) = self.slots.get((home * SLOTS) as usize..((home + 1) * SLOTS) as usize) else { continue };
            for slot in bucket {
                let Some(id) = hash.entry_in(slot.load(Ordering::Relaxed)) else { continue };
                let entry = &self.entries[id.index()];
                if let Some(bytes) = entry.pin_if(key, generation, len) {
                    return Some((entry, bytes));
                }
            }
        }
        None
    }

    /// An entry.
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

    /// How much an entry was used.
    pub fn heat(&self, id: EntryId) -> Heat {
        self.entry(id).heat()
    }
}

//! The driver's part of the cache: all state read by hitting threads without the state machine.

use super::heat::{Clock, Heat};
use super::key::{EntryId, Key};

/// An entry with its bytes present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its key.
    pub key: Key,
    /// Sum of the generations of its space and its target.
    pub generation: u32,
    /// Start of its bytes, in units of the arena.
    pub place: u32,
    /// Number of bytes.
    pub len: u32,
}

/// The driver's copy of index, entries and memory. Other threads may look up entries while the machine changes them:
/// they pin an entry, which succeeds only while it is open, then compare its key. A thread without success asks the
/// machine.
pub trait Mirror {
    /// A slot of the index; 0 at first.
    fn slot(&self, at: u32) -> u64;
    /// Changes a slot.
    fn set_slot(&mut self, at: u32, slot: u64);
    /// Sets the number of buckets of the index.
    fn set_buckets(&mut self, buckets: u32);

    /// Sets the generation of a place: entries of other generations are no longer served.
    fn set_generation(&mut self, place: usize, generation: u32);
    /// Opens a closed entry; its bytes are present.
    fn open(&mut self, entry: EntryId, opened: &Opened);
    /// Sets the length of an open entry.
    fn lengthen(&mut self, entry: EntryId, len: u32);
    /// Pins an entry for the thread the machine answers; it copies the bytes and unpins. The filling thread also
    /// pins an entry not open yet.
    fn pin(&mut self, entry: EntryId);
    /// Closes an open entry unless it is pinned. Returns whether it is closed.
    fn try_close(&mut self, entry: EntryId) -> bool;
    /// Closes an entry, pinned or not. From now on only the machine pins it.
    fn close(&mut self, entry: EntryId);
    /// Whether a closed entry may still be pinned.
    fn is_pinned(&self, entry: EntryId) -> bool;

    /// The heat of an entry.
    fn heat(&self, entry: EntryId) -> Heat;
    /// Sets the heat of an entry.
    fn set_heat(&mut self, entry: EntryId, heat: Heat);
    /// Sets the time for hitting threads to note.
    fn set_clock(&mut self, clock: Clock);
    /// Gets so far without the machine: hits, and gets that did not look.
    fn seen(&self) -> Seen;
    /// Sets whether only sampled keys are looked up.
    fn set_dormant(&mut self, is_dormant: bool);

    /// Adds a chunk to the arena, if there is memory.
    fn add_chunk(&mut self) -> bool;
    /// Returns the last chunk.
    fn remove_chunk(&mut self);
}

/// Gets handled without the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Hits.
    pub hits: u64,
    /// Bytes of hits.
    pub bytes_hit: u64,
    /// Gets that did not look because the cache was dormant.
    pub dormant: u64,
    /// Bytes of dormant gets.
    pub bytes_dormant: u64,
}

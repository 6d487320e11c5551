//! What a driver keeps for the cache: everything that threads which hit read without asking the state machine.

use super::heat::{Clock, Heat};
use super::key::{EntryId, Key};

/// An entry whose bytes are here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// What it is an entry of.
    pub key: Key,
    /// The generations of its space and its target, added.
    pub generation: u32,
    /// Where its bytes are, in units of the arena.
    pub place: u32,
    /// How many there are.
    pub len: u32,
}

/// The index, the entries and the memory as a driver keeps them. Other threads may look things up while the machine changes them: they
/// pin an entry, which succeeds only while it is open, and compare its key then. A thread that finds nothing asks the machine.
pub trait Mirror {
    /// A slot of the index; 0 at first.
    fn slot(&self, at: u32) -> u64;
    /// Changes a slot.
    fn set_slot(&mut self, at: u32, slot: u64);
    /// The index has so many buckets.
    fn set_buckets(&mut self, buckets: u32);

    /// Entries of another generation of the spaces or targets of this place are not served any more.
    fn set_generation(&mut self, place: usize, generation: u32);
    /// An entry's bytes are here. It was closed.
    fn open(&mut self, entry: EntryId, opened: &Opened);
    /// An open entry has so many bytes now.
    fn lengthen(&mut self, entry: EntryId, len: u32);
    /// Pins an entry for the thread that the machine answers: it copies the bytes, and unpins. An entry that is not open is so pinned by
    /// who has filled it.
    fn pin(&mut self, entry: EntryId);
    /// Closes an open entry unless somebody has it pinned. Returns whether it is closed.
    fn try_close(&mut self, entry: EntryId) -> bool;
    /// Closes an entry, whoever has it pinned. Nobody but the machine pins it from now on.
    fn close(&mut self, entry: EntryId);
    /// Whether somebody may have a closed entry pinned.
    fn is_pinned(&self, entry: EntryId) -> bool;

    /// How much an entry was used.
    fn heat(&self, entry: EntryId) -> Heat;
    /// Changes that.
    fn set_heat(&mut self, entry: EntryId, heat: Heat);
    /// What threads that hit note the time by.
    fn set_clock(&mut self, clock: Clock);
    /// Gets so far that the machine was not asked about: those that hit, and those that did not look.
    fn seen(&self) -> Seen;
    /// Only sampled keys are to be looked up.
    fn set_dormant(&mut self, is_dormant: bool);

    /// Adds a chunk to the arena, if there is memory.
    fn add_chunk(&mut self) -> bool;
    /// Gives the last chunk back.
    fn remove_chunk(&mut self);
}

/// Gets that the machine was not asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Those that found their bytes.
    pub hits: u64,
    /// Bytes that those got.
    pub bytes_hit: u64,
    /// Those that did not look, since the cache was dormant.
    pub dormant: u64,
    /// Bytes that those asked for.
    pub bytes_dormant: u64,
}

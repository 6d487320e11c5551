//! The machine's state of each entry.

use super::arena::RegionId;
use super::key::{EntryId, Key};
use alloc::vec::Vec;
use slab::Slab;

/// One entry.
#[derive(Debug)]
pub struct Entry<W> {
    /// Its key.
    pub key: Key,
    /// Sum of the generations of its space and its target at the request.
    pub generation: u32,
    /// Region of its bytes.
    pub region: RegionId,
    /// Bytes cached.
    pub valid: u32,
    /// Bytes cached or in flight.
    pub claimed: u32,
    /// Relative value.
    pub weight: f32,
    /// Gets waiting for the bytes in flight.
    pub waiters: Vec<W>,
    /// Whether it is in the window.
    pub is_new: bool,
    /// Its position in [`Entries::listed`].
    listed_at: u32,
}

const UNLISTED: u32 = u32::MAX;

impl<W> Entry<W> {
    /// An entry without bytes or region.
    pub fn new(key: Key, generation: u32, len: u32, weight: f32) -> Entry<W> {
        debug_assert!(len > 0, "an entry is of some bytes");
        let (region, waiters) = (RegionId::NONE, Vec::new());
        Entry { key, generation, region, valid: 0, claimed: len, weight, waiters, is_new: false, listed_at: UNLISTED }
    }

    /// Whether bytes of it are in flight.
    pub fn is_filling(&self) -> bool {
        self.claimed > self.valid
    }

    /// Whether the index has it. Otherwise it only waits for its bytes, or for readers to unpin it.
    pub fn is_listed(&self) -> bool {
        self.listed_at != UNLISTED
    }
}

/// All entries.
#[derive(Debug)]
pub struct Entries<W> {
    slab: Slab<Entry<W>>,
    /// The indexed entries, unordered.
    listed: Vec<EntryId>,
    count_max: u32,
}

impl<W> Entries<W> {
    /// No entries, and at most `count_max`.
    pub fn new(count_max: u32) -> Entries<W> {
        Entries { slab: Slab::new(), listed: Vec::new(), count_max }
    }

    /// Whether the maximum is reached.
    pub fn is_full(&self) -> bool {
        self.slab.len() >= self.count_max as usize
    }

    /// Adds an entry.
    pub fn insert(&mut self, entry: Entry<W>) -> EntryId {
        debug_assert!(!self.is_full(), "there is room for another entry");
        debug_assert!(!entry.is_listed(), "an entry is indexed after it is added");
        EntryId(self.slab.insert(entry) as u32)
    }

    /// Removes an entry not in the index.
    pub fn remove(&mut self, id: EntryId) -> Entry<W> {
        let entry = self.slab.remove(id.index());
        assert!(!entry.is_listed(), "nothing leads to it");
        entry
    }

    /// Marks an entry as indexed.
    pub fn list(&mut self, id: EntryId) {
        debug_assert!(!self.get(id).is_listed(), "{id:?} is indexed once");
        self.slab[id.index()].listed_at = self.listed.len() as u32;
        self.listed.push(id);
    }

    /// Marks an entry as no longer indexed.
    pub fn unlist(&mut self, id: EntryId) {
        let at = core::mem::replace(&mut self.slab[id.index()].listed_at, UNLISTED);
        debug_assert_eq!(self.listed.get(at as usize), Some(&id), "an entry is where its place says");
        self.listed.swap_remove(at as usize);
        if let Some(moved) = self.listed.get(at as usize) {
            self.slab[moved.index()].listed_at = at;
        }
    }

    /// The indexed entries.
    pub fn listed(&self) -> &[EntryId] {
        &self.listed
    }

    /// An entry.
    pub fn get(&self, id: EntryId) -> &Entry<W> {
        &self.slab[id.index()]
    }

    /// The entry numbered `id`, if it exists.
    pub fn find(&self, id: EntryId) -> Option<&Entry<W>> {
        self.slab.get(id.index())
    }

    /// An entry, mutably.
    pub fn get_mut(&mut self, id: EntryId) -> &mut Entry<W> {
        &mut self.slab[id.index()]
    }

    /// Whether the entry exists and is in the window.
    pub fn is_new(&self, id: EntryId) -> bool {
        self.slab.get(id.index()).is_some_and(|entry| entry.is_new)
    }

    /// All entries, with their ids.
    pub fn all(&self) -> impl Iterator<Item = (EntryId, &Entry<W>)> {
        self.slab.iter().map(|(at, entry)| (EntryId(at as u32), entry))
    }
}

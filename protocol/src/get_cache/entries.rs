//! What the machine knows of each entry.

use super::arena::RegionId;
use super::key::{EntryId, Key};
use alloc::vec::Vec;
use slab::Slab;

/// One entry.
#[derive(Debug)]
pub struct Entry<W> {
    /// What it is an entry of.
    pub key: Key,
    /// The generations of its space and its target, added, when it was asked for.
    pub generation: u32,
    /// Its bytes' place.
    pub region: RegionId,
    /// Bytes that are here.
    pub valid: u32,
    /// Bytes that are here or on their way.
    pub claimed: u32,
    /// What it is worth beside others.
    pub weight: f32,
    /// Gets that wait for the bytes on their way.
    pub waiters: Vec<W>,
    /// It is in the window.
    pub is_new: bool,
    /// Its place among those that the index has.
    listed_at: u32,
}

const UNLISTED: u32 = u32::MAX;

impl<W> Entry<W> {
    /// An entry without bytes, and without a place for them.
    pub fn new(key: Key, generation: u32, len: u32, weight: f32) -> Entry<W> {
        let (region, waiters) = (RegionId::NONE, Vec::new());
        Entry { key, generation, region, valid: 0, claimed: len, weight, waiters, is_new: false, listed_at: UNLISTED }
    }

    /// Bytes of it are on their way.
    pub fn is_filling(&self) -> bool {
        self.claimed > self.valid
    }

    /// The index has it. Otherwise it only waits for its bytes, or for those who copy them.
    pub fn is_listed(&self) -> bool {
        self.listed_at != UNLISTED
    }
}

/// All entries.
#[derive(Debug)]
pub struct Entries<W> {
    slab: Slab<Entry<W>>,
    /// Those that the index has, in no order.
    listed: Vec<EntryId>,
    count_max: u32,
}

impl<W> Entries<W> {
    /// No entries, and at most so many.
    pub fn new(count_max: u32) -> Entries<W> {
        Entries { slab: Slab::new(), listed: Vec::new(), count_max }
    }

    /// Whether there is no place for one more.
    pub fn is_full(&self) -> bool {
        self.slab.len() >= self.count_max as usize
    }

    /// Adds an entry.
    pub fn insert(&mut self, entry: Entry<W>) -> EntryId {
        EntryId(self.slab.insert(entry) as u32)
    }

    /// Removes an entry that the index does not have.
    pub fn remove(&mut self, id: EntryId) -> Entry<W> {
        let entry = self.slab.remove(id.index());
        assert!(!entry.is_listed(), "nothing leads to it");
        entry
    }

    /// The index has it now.
    pub fn list(&mut self, id: EntryId) {
        self.slab[id.index()].listed_at = self.listed.len() as u32;
        self.listed.push(id);
    }

    /// The index has it no longer.
    pub fn unlist(&mut self, id: EntryId) {
        let at = core::mem::replace(&mut self.slab[id.index()].listed_at, UNLISTED);
        self.listed.swap_remove(at as usize);
        if let Some(moved) = self.listed.get(at as usize) {
            self.slab[moved.index()].listed_at = at;
        }
    }

    /// Those that the index has.
    pub fn listed(&self) -> &[EntryId] {
        &self.listed
    }

    /// An entry.
    pub fn get(&self, id: EntryId) -> &Entry<W> {
        &self.slab[id.index()]
    }

    /// An entry, if there is one by this number.
    pub fn find(&self, id: EntryId) -> Option<&Entry<W>> {
        self.slab.get(id.index())
    }

    /// An entry, to change it.
    pub fn get_mut(&mut self, id: EntryId) -> &mut Entry<W> {
        &mut self.slab[id.index()]
    }

    /// Whether there is such an entry, and it is in the window.
    pub fn is_new(&self, id: EntryId) -> bool {
        self.slab.get(id.index()).is_some_and(|entry| entry.is_new)
    }

    /// All of them, with their places.
    pub fn all(&self) -> impl Iterator<Item = (EntryId, &Entry<W>)> {
        self.slab.iter().map(|(at, entry)| (EntryId(at as u32), entry))
    }
}

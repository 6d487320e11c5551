//! Entries by start address, for invalidation by range.
//!
//! Addresses are divided into granules; the entries starting in a granule are linked. The list of a granule is chosen
//! by hash, so entries are added and removed without a search.

use super::key::{EntryId, Hasher, Key};
use alloc::vec;
use alloc::vec::Vec;

const GRANULE_LOG2: u32 = 12;

const NONE: u32 = u32::MAX;

/// The neighbours of an entry in its list.
#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
}

/// The indexed entries.
#[derive(Debug)]
pub struct Ranges {
    hasher: Hasher,
    /// The first entry of each list, plus one: zeroed memory is not resident.
    firsts: Vec<u32>,
    /// By entry.
    links: Vec<Link>,
    len: u32,
    /// Length bound of the entries since there was last none.
    len_max: u32,
}

impl Ranges {
    /// No entries, and at most `entries_max` at a time.
    pub fn new(hasher: Hasher, entries_max: u32) -> Ranges {
        let lists = entries_max.next_power_of_two() as usize;
        Ranges { hasher, firsts: vec![0; lists], links: Vec::new(), len: 0, len_max: 0 }
    }

    /// Adds an entry of at most `len` bytes.
    pub fn insert(&mut self, key: &Key, entry: EntryId, len: u32) {
        self.len_max = self.len_max.max(len);
        self.len += 1;
        let list = self.list(key);
        let after = core::mem::replace(&mut self.firsts[list], entry.0 + 1).wrapping_sub(1);
        if self.links.len() <= entry.index() {
            self.links.resize(entry.index() + 1, Link { before: NONE, after: NONE });
        }
        self.links[entry.index()] = Link { before: NONE, after };
        if let Some(link) = self.links.get_mut(after as usize) {
            link.before = entry.0;
        }
        debug_assert!(self.len as usize <= self.links.len(), "each entry has its links");
    }

    /// Raises the length bound of entries.
    pub fn lengthen(&mut self, len: u32) {
        self.len_max = self.len_max.max(len);
    }

    /// Removes an entry.
    pub fn remove(&mut self, key: &Key, entry: EntryId) {
        debug_assert!(self.len > 0, "the entries are counted");
        let Link { before, after } = self.links[entry.index()];
        if let Some(link) = self.links.get_mut(before as usize) {
            link.after = after;
        } else {
            let list = self.list(key);
            debug_assert_eq!(self.firsts[list], entry.0 + 1, "an entry with none before it is the first");
            self.firsts[list] = after.wrapping_add(1);
        }
        if let Some(link) = self.links.get_mut(after as usize) {
            link.before = before;
        }
        self.len -= 1;
        if self.len == 0 {
            self.len_max = 0;
        }
    }

    /// The entries possibly with bytes of a range, including some that end before it. `None`: examining all entries is
    /// faster.
    pub fn near(&self, start: &Key, len: u64, key_of: impl Fn(EntryId) -> Key) -> Option<Vec<EntryId>> {
        let Some(end) = len.checked_sub(1).map(|last| start.address.saturating_add(last)) else {
            return Some(Vec::new());
        };
        let first = start.address.saturating_sub(u64::from(self.len_max));
        let granules = (first >> GRANULE_LOG2)..=(end >> GRANULE_LOG2);
        if granules.end() - granules.start() > u64::from(self.len) {
            return None;
        }
        let mut found = Vec::new();
        for granule in granules {
            let mut at = self.firsts[self.list(&Key { address: granule << GRANULE_LOG2, ..*start })].wrapping_sub(1);
            while let Some(link) = self.links.get(at as usize) {
                let key = key_of(EntryId(at));
                let is_owners = (key.space, key.target) == (start.space, start.target);
                if is_owners && key.address >> GRANULE_LOG2 == granule && (first..=end).contains(&key.address) {
                    found.push(EntryId(at));
                }
                at = link.after;
            }
        }
        debug_assert!(found.len() <= self.len as usize, "each entry is found once");
        Some(found)
    }

    fn list(&self, key: &Key) -> usize {
        let granule = Key { address: key.address >> GRANULE_LOG2, ..*key };
        self.hasher.hash(&granule).bits() as usize & (self.firsts.len() - 1)
    }
}

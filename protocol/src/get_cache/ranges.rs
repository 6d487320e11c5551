//! Entries by where they begin, for what is dropped by range.
//!
//! Addresses are cut into granules, and the entries that begin in one are linked. Which list a granule has is a hash of it: so an entry
//! comes and goes without a search.

use super::key::{EntryId, Hasher, Key};
use alloc::vec;
use alloc::vec::Vec;

const GRANULE_LOG2: u32 = 12;

const NONE: u32 = u32::MAX;

/// The entries of a list beside one.
#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
}

/// The entries that the index has.
#[derive(Debug)]
pub struct Ranges {
    hasher: Hasher,
    /// The first entry of each list, plus one: zeros take no memory.
    firsts: Vec<u32>,
    /// By entry.
    links: Vec<Link>,
    len: u32,
    /// No entry is longer, since there was none.
    len_max: u32,
}

impl Ranges {
    /// None, and at most so many at one time.
    pub fn new(hasher: Hasher, entries_max: u32) -> Ranges {
        let lists = entries_max.next_power_of_two() as usize;
        Ranges { hasher, firsts: vec![0; lists], links: Vec::new(), len: 0, len_max: 0 }
    }

    /// Adds an entry, which will not be longer than that.
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
    }

    /// An entry may be so long from now on.
    pub fn lengthen(&mut self, len: u32) {
        self.len_max = self.len_max.max(len);
    }

    /// Removes an entry.
    pub fn remove(&mut self, key: &Key, entry: EntryId) {
        let Link { before, after } = self.links[entry.index()];
        if let Some(link) = self.links.get_mut(before as usize) {
            link.after = after;
        } else {
            let list = self.list(key);
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

    /// The entries that may have bytes of a range. Those that end before it are among them. `None`: looking at all takes less time.
    pub fn near(&self, start: &Key, len: u64, key_of: impl Fn(EntryId) -> Key) -> Option<Vec<EntryId>> {
        let Some(end) = len.checked_sub(1).map(|rest| start.address.saturating_add(rest)) else {
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
        Some(found)
    }

    fn list(&self, key: &Key) -> usize {
        let granule = Key { address: key.address >> GRANULE_LOG2, ..*key };
        self.hasher.hash(&granule).bits() as usize & (self.firsts.len() - 1)
    }
}

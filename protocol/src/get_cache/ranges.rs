//! Entries in the order of their addresses, for what is dropped by range.

use super::key::{EntryId, Key};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The entries that the index has, by key.
#[derive(Debug, Default)]
pub struct Ranges {
    entries: BTreeMap<Key, EntryId>,
    /// No entry is longer, since there was none.
    len_max: u32,
}

impl Ranges {
    /// Adds an entry, which will not be longer than that.
    pub fn insert(&mut self, key: Key, entry: EntryId, len: u32) {
        self.len_max = self.len_max.max(len);
        let before = self.entries.insert(key, entry);
        debug_assert!(before.is_none(), "one entry a key");
    }

    /// An entry may be so long from now on.
    pub fn lengthen(&mut self, len: u32) {
        self.len_max = self.len_max.max(len);
    }

    /// Removes an entry.
    pub fn remove(&mut self, key: &Key) {
        self.entries.remove(key);
        if self.entries.is_empty() {
            self.len_max = 0;
        }
    }

    /// The entries that may have bytes of a range. Those that end before it are among them.
    pub fn near(&self, space: u32, target: u32, start: u64, len: u64) -> Vec<EntryId> {
        let Some(end) = len.checked_sub(1).map(|rest| start.saturating_add(rest)) else { return Vec::new() };
        let first = Key { space, target, address: start.saturating_sub(u64::from(self.len_max)) };
        let last = Key { space, target, address: end };
        self.entries.range(first..=last).map(|(_, entry)| *entry).collect()
    }

    /// The entries of a space.
    pub fn of_space(&self, space: u32) -> Vec<EntryId> {
        let first = Key { space, target: 0, address: 0 };
        let last = Key { space, target: u32::MAX, address: u64::MAX };
        self.entries.range(first..=last).map(|(_, entry)| *entry).collect()
    }
}

//! Exact LRU: evicts the page with the earliest last use.

use super::simulate::Cache;
use std::collections::{BTreeMap, HashMap};

/// The pages by their last use.
pub struct Lru {
    frames: usize,
    uses: u64,
    used_at: HashMap<u32, u64>,
    by_use: BTreeMap<u64, u32>,
}

impl Lru {
    pub fn new(frames: usize) -> Lru {
        Lru { frames, uses: 0, used_at: HashMap::new(), by_use: BTreeMap::new() }
    }
}

impl Cache for Lru {
    fn access(&mut self, page: u32) -> bool {
        self.uses += 1;
        let before = self.used_at.insert(page, self.uses);
        if let Some(before) = before {
            self.by_use.remove(&before);
        } else if self.by_use.len() == self.frames {
            if let Some((_, victim)) = self.by_use.pop_first() {
                self.used_at.remove(&victim);
            }
        }
        self.by_use.insert(self.uses, page);
        before.is_some()
    }
}

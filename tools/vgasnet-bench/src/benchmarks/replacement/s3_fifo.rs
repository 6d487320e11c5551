//! S3-FIFO: Yang and others, "FIFO Queues are All You Need for Cache Eviction" (2023).

use super::simulate::Cache;
use std::collections::{HashMap, HashSet, VecDeque};

/// Maximum use count of a page.
const USES_MAX: u8 = 3;

/// A small queue for new pages, the main queue, and the pages that left the small queue unused.
pub struct S3Fifo {
    frames: usize,
    small_max: usize,
    small: VecDeque<u32>,
    main: VecDeque<u32>,
    uses: HashMap<u32, u8>,
    gone: VecDeque<u32>,
    is_gone: HashSet<u32>,
}

impl S3Fifo {
    pub fn new(frames: usize) -> S3Fifo {
        S3Fifo {
            frames,
            small_max: (frames / 10).max(1),
            small: VecDeque::new(),
            main: VecDeque::new(),
            uses: HashMap::new(),
            gone: VecDeque::new(),
            is_gone: HashSet::new(),
        }
    }

    fn evict(&mut self) {
        if self.small.len() >= self.small_max || self.main.is_empty() {
            self.evict_small();
        } else {
            self.evict_main();
        }
    }

    fn evict_small(&mut self) {
        while let Some(page) = self.small.pop_front() {
            if self.uses[&page] == 0 {
                self.uses.remove(&page);
                self.remember(page);
                return;
            }
            self.uses.insert(page, 0);
            self.main.push_back(page);
        }
        self.evict_main();
    }

    fn evict_main(&mut self) {
        while let Some(page) = self.main.pop_front() {
            let uses = self.uses[&page];
            if uses == 0 {
                self.uses.remove(&page);
                return;
            }
            self.uses.insert(page, uses - 1);
            self.main.push_back(page);
        }
    }

    fn remember(&mut self, page: u32) {
        self.gone.push_back(page);
        self.is_gone.insert(page);
        if self.gone.len() > self.frames {
            if let Some(oldest) = self.gone.pop_front() {
                self.is_gone.remove(&oldest);
            }
        }
    }
}

impl Cache for S3Fifo {
    fn access(&mut self, page: u32) -> bool {
        if let Some(uses) = self.uses.get_mut(&page) {
            *uses = (*uses + 1).min(USES_MAX);
            return true;
        }
        while self.uses.len() >= self.frames {
            self.evict();
        }
        self.uses.insert(page, 0);
        if self.is_gone.remove(&page) {
            self.main.push_back(page);
        } else {
            self.small.push_back(page);
        }
        false
    }
}

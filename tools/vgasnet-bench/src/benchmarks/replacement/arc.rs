//! ARC: Megiddo and Modha, "ARC: A Self-Tuning, Low Overhead Replacement Cache" (2003), figure 4.

use super::simulate::Cache;
use std::collections::{BTreeMap, HashMap};

/// Resident pages used once recently, resident pages used more often, and the pages evicted from either.
const RECENT: usize = 0;
const FREQUENT: usize = 1;
const RECENT_GONE: usize = 2;
const FREQUENT_GONE: usize = 3;

/// The four queues, each by time.
pub struct Arc {
    frames: usize,
    uses: u64,
    queues: [BTreeMap<u64, u32>; 4],
    places: HashMap<u32, (usize, u64)>,
    /// Target number of frames for pages used once.
    target: usize,
}

impl Arc {
    pub fn new(frames: usize) -> Arc {
        Arc { frames, uses: 0, queues: Default::default(), places: HashMap::new(), target: 0 }
    }

    fn len(&self, queue: usize) -> usize {
        self.queues[queue].len()
    }

    fn put(&mut self, page: u32, queue: usize) {
        self.remove(page);
        self.uses += 1;
        self.queues[queue].insert(self.uses, page);
        self.places.insert(page, (queue, self.uses));
    }

    fn remove(&mut self, page: u32) {
        if let Some((queue, at)) = self.places.remove(&page) {
            self.queues[queue].remove(&at);
        }
    }

    fn drop_first(&mut self, queue: usize) {
        if let Some((_, &page)) = self.queues[queue].first_key_value() {
            self.remove(page);
        }
    }

    fn replace(&mut self, came_from: Option<usize>) {
        let recent = self.len(RECENT);
        let is_over = recent > self.target || (came_from == Some(FREQUENT_GONE) && recent == self.target);
        let from = if recent > 0 && is_over { RECENT } else { FREQUENT };
        if let Some((_, &page)) = self.queues[from].first_key_value() {
            self.put(page, from + RECENT_GONE);
        }
    }

    fn make_room(&mut self) {
        let [recent, recent_gone] = [RECENT, RECENT_GONE].map(|queue| self.len(queue));
        let all: usize = (0..4).map(|queue| self.len(queue)).sum();
        if recent + recent_gone == self.frames {
            if recent < self.frames {
                self.drop_first(RECENT_GONE);
                self.replace(None);
            } else {
                self.drop_first(RECENT);
            }
        } else if all >= self.frames {
            if all == 2 * self.frames {
                self.drop_first(FREQUENT_GONE);
            }
            self.replace(None);
        }
    }
}

impl Cache for Arc {
    fn access(&mut self, page: u32) -> bool {
        let queue = self.places.get(&page).map(|(queue, _)| *queue);
        let [recent_gone, frequent_gone] = [RECENT_GONE, FREQUENT_GONE].map(|queue| self.len(queue).max(1));
        match queue {
            Some(RECENT | FREQUENT) => {}
            Some(RECENT_GONE) => {
                self.target = (self.target + (frequent_gone / recent_gone).max(1)).min(self.frames);
                self.replace(queue);
            }
            Some(_) => {
                self.target = self.target.saturating_sub((recent_gone / frequent_gone).max(1));
                self.replace(queue);
            }
            None => {
                self.make_room();
                self.put(page, RECENT);
                return false;
            }
        }
        self.put(page, FREQUENT);
        matches!(queue, Some(RECENT | FREQUENT))
    }
}

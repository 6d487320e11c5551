//! What the client says of pages of its own segment: which stay in the pool, which it will need, and which it will not.

use super::Engine;
use crate::coherence::{Access, Event, PageId};
use crate::local::Visit;
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// Pages that stay in the pool because the client said so.
#[derive(Debug)]
pub struct Residents {
    holds: HashMap<u32, Hold>,
    pages_max: u32,
}

/// How a page is held.
#[derive(Clone, Copy, Debug, Default)]
struct Hold {
    /// How often.
    count: u32,
    /// For how many of these it is pinned already; the others wait for it.
    pins: u32,
    /// The protocol wants it closed, which is put off until it is pinned for nobody.
    is_wanted: bool,
}

/// More pages would be held at a time than may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany {
    /// How many pages would be held.
    pub pages: usize,
    /// How many may be.
    pub pages_max: u32,
}

impl Residents {
    /// None yet, in a pool of `frames` frames. What one instruction may need at once stays free, and a quarter.
    pub fn new(frames: u32) -> Residents {
        let pages_max = (frames - frames / 4).min(frames.saturating_sub(crate::local::FRAMES_MIN));
        Residents { holds: HashMap::new(), pages_max }
    }

    /// Whether a page is held.
    pub fn has(&self, index: u32) -> bool {
        self.holds.contains_key(&index)
    }

    /// A page that is held is pinned now.
    pub(super) fn on_pinned(&mut self, index: u32) {
        if let Some(hold) = self.holds.get_mut(&index) {
            hold.pins += 1;
        }
    }

    /// Puts off closing a page that the client has pinned: its holder may use it as before. Returns whether it does.
    pub(super) fn put_off(&mut self, index: u32) -> bool {
        let hold = self.holds.get_mut(&index).filter(|hold| hold.pins > 0);
        hold.map(|hold| hold.is_wanted = true).is_some()
    }

    fn add(&mut self, pages: RangeInclusive<u32>) -> Result<(), TooMany> {
        // A range may be as long as a segment, so what cannot be is found out by its length first.
        let len = (pages.end() - pages.start()) as usize + 1;
        let fresh =
            if len <= self.pages_max as usize { pages.clone().filter(|page| !self.has(*page)).count() } else { len };
        let total = self.holds.len() + fresh;
        if total > self.pages_max as usize {
            return Err(TooMany { pages: total, pages_max: self.pages_max });
        }
        for page in pages {
            self.holds.entry(page).or_default().count += 1;
        }
        Ok(())
    }

    /// The pages that are to be closed now; `None` if not all of them were held, and nothing is changed.
    fn remove(&mut self, pages: RangeInclusive<u32>) -> Option<Vec<u32>> {
        let len = (pages.end() - pages.start()) as usize + 1;
        if len > self.holds.len() || !pages.clone().all(|page| self.has(page)) {
            return None;
        }
        let mut wanted = Vec::new();
        for page in pages {
            let hold = self.holds.get_mut(&page).expect("it was just seen");
            (hold.count, hold.pins) = (hold.count - 1, hold.pins.saturating_sub(1));
            if hold.pins == 0 {
                wanted.extend(std::mem::take(&mut hold.is_wanted).then_some(page));
            }
            if hold.count == 0 {
                self.holds.remove(&page);
            }
        }
        Some(wanted)
    }
}

impl Engine {
    /// Counts pages of the own segment as held. The caller then makes each of them stay, by a pin.
    ///
    /// # Errors
    /// They are too many; nothing is counted.
    pub fn hold(&mut self, pages: RangeInclusive<u32>) -> Result<(), TooMany> {
        self.residents.add(pages)
    }

    /// Pins and shows a held page, if that can be done at once. The engine's lock keeps it from being closed meanwhile.
    pub fn pin_held(&mut self, index: u32, access: Access) -> bool {
        let Some(local) = &self.space.local else { return false };
        match local.visit(index, access) {
            Visit::Pinned { .. } => self.residents.on_pinned(index),
            Visit::Missed => return false,
            Visit::Refused(_) => {
                // Nothing closes under the engine's lock, so nobody waits for this.
                let _ = local.leave(index);
                return false;
            }
        }
        true
    }

    /// Undoes one [`Engine::hold`] of these pages, and returns whether all of them were held; if not, nothing is changed.
    /// The caller then undoes the pins.
    pub fn release(&mut self, pages: RangeInclusive<u32>) -> bool {
        let Some(wanted) = self.residents.remove(pages) else { return false };
        for index in wanted {
            self.close(PageId { home: self.space.rank, index });
        }
        true
    }

    /// Pages of the own segment will be needed: fetches the first of them, up to half of the pool.
    pub fn fetch(&mut self, pages: RangeInclusive<u32>) {
        let most = (self.protocol.cache.frames() / 2).max(1);
        let last = (*pages.end()).min(pages.start().saturating_add(most - 1));
        self.fetch_ahead(self.space.rank, Some(*pages.start()..=last));
    }

    /// Pages of the own segment will be used in order.
    pub fn expect_in_order(&mut self, pages: &RangeInclusive<u32>) {
        self.readahead.expect(PageId { home: self.space.rank, index: *pages.start() });
    }

    /// Pages of the own segment will not be needed: gives up the frames of those that nobody uses now.
    pub fn discard(&mut self, pages: &RangeInclusive<u32>) {
        for (page, frame) in self.own_copies(pages) {
            let in_use = self.space.own.table.is_pinned(self.space.slots.of(page));
            if !in_use && self.protocol.cache.evictable(frame) {
                self.handle(Event::Evict(frame));
            }
        }
    }

    /// Pages of the own segment will hardly be written: writes dirty ones back, and keeps them.
    pub fn clean(&mut self, pages: &RangeInclusive<u32>) {
        for (page, _) in self.own_copies(pages) {
            self.handle(Event::WriteBack(page));
        }
    }

    /// The pages of a range of the own segment that are in the own pool.
    fn own_copies(&self, pages: &RangeInclusive<u32>) -> Vec<(PageId, crate::coherence::FrameId)> {
        let is_meant = |page: PageId| page.home == self.space.rank && pages.contains(&page.index);
        let copies = self.protocol.cache.copies().map(|(page, frame, _)| (page, frame));
        copies.filter(|(page, _)| is_meant(*page)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_add_up_and_are_bounded() {
        let mut residents = Residents::new(8);
        assert_eq!(residents.add(0..=4), Err(TooMany { pages: 5, pages_max: 4 }));
        assert_eq!(residents.add(2..=4), Ok(()));
        assert_eq!(residents.add(4..=5), Ok(()), "page 4 counts once");
        assert_eq!(residents.add(6..=6), Err(TooMany { pages: 5, pages_max: 4 }));
        assert_eq!(residents.remove(4..=6), None, "6 is not held");
        assert!(!residents.put_off(3), "3 is not pinned yet");
        for page in [3, 4, 4] {
            residents.on_pinned(page);
        }
        assert!(residents.put_off(3) && residents.put_off(4) && !residents.put_off(7));
        assert_eq!(residents.remove(2..=4), Some(vec![3]), "4 is still held");
        assert!(residents.has(4) && !residents.has(2));
        assert_eq!(residents.remove(4..=5), Some(vec![4]));
        assert_eq!(residents.remove(4..=4), None);
        assert_eq!(Residents::new(4).add(0..=0), Err(TooMany { pages: 1, pages_max: 0 }));
        assert_eq!(Residents::new(64).pages_max, 48);
    }
}

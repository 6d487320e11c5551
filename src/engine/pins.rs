//! Pages of the own segment that the client has pinned.

use super::Engine;
use crate::memory::{FRAMES_MIN, PageAccess};
use std::collections::HashMap;
use std::ops::RangeInclusive;
use vgasnet_protocol::coherence::{Access, PageId};

/// Pages that stay in the pool because the client has pinned them.
#[derive(Debug)]
pub struct PinSet {
    pages: HashMap<u32, Pin>,
    pages_max: u32,
}

/// How a page is pinned.
#[derive(Clone, Copy, Debug, Default)]
struct Pin {
    /// How often.
    count: u32,
    /// For how many of these it is pinned in the page table already; the others wait for it.
    held: u32,
    /// The protocol wants it closed, which is deferred until nobody holds it.
    close_deferred: bool,
}

/// More pages would be pinned at a time than may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPins {
    /// How many pages would be pinned.
    pub pages: usize,
    /// How many may be.
    pub pages_max: u32,
}

impl PinSet {
    /// None yet, in a pool of `frames` frames. What one instruction may need at once stays free, and a quarter.
    pub fn new(frames: u32) -> PinSet {
        let pages_max = (frames - frames / 4).min(frames.saturating_sub(FRAMES_MIN));
        PinSet { pages: HashMap::new(), pages_max }
    }

    /// Whether a page is pinned.
    pub fn has(&self, index: u32) -> bool {
        self.pages.contains_key(&index)
    }

    /// A page that is to be pinned is so in the page table now.
    pub(super) fn on_pinned(&mut self, index: u32) {
        if let Some(pin) = self.pages.get_mut(&index) {
            pin.held += 1;
        }
    }

    /// Defers closing a page that the client has pinned: its holder may use it as before. Returns whether it does.
    pub(super) fn defer_close(&mut self, index: u32) -> bool {
        let pin = self.pages.get_mut(&index).filter(|pin| pin.held > 0);
        pin.map(|pin| pin.close_deferred = true).is_some()
    }

    fn add(&mut self, pages: RangeInclusive<u32>) -> Result<(), TooManyPins> {
        // A range may be as long as a segment, so what cannot be is found out by its length first.
        let len = (pages.end() - pages.start()) as usize + 1;
        let fresh =
            if len <= self.pages_max as usize { pages.clone().filter(|page| !self.has(*page)).count() } else { len };
        let total = self.pages.len() + fresh;
        if total > self.pages_max as usize {
            return Err(TooManyPins { pages: total, pages_max: self.pages_max });
        }
        for page in pages {
            self.pages.entry(page).or_default().count += 1;
        }
        Ok(())
    }

    /// The pages that are to be closed now; `None` if not all of them were pinned, and nothing is changed.
    fn remove(&mut self, pages: RangeInclusive<u32>) -> Option<Vec<u32>> {
        let len = (pages.end() - pages.start()) as usize + 1;
        if len > self.pages.len() || !pages.clone().all(|page| self.has(page)) {
            return None;
        }
        let mut wanted = Vec::new();
        for page in pages {
            let pin = self.pages.get_mut(&page).expect("it was just seen");
            (pin.count, pin.held) = (pin.count - 1, pin.held.saturating_sub(1));
            if pin.held == 0 {
                wanted.extend(std::mem::take(&mut pin.close_deferred).then_some(page));
            }
            if pin.count == 0 {
                self.pages.remove(&page);
            }
        }
        Some(wanted)
    }
}

impl Engine {
    /// Counts pages of the own segment as pinned. The caller then pins each of them in the page table.
    ///
    /// # Errors
    /// They are too many; nothing is counted.
    pub fn add_pins(&mut self, pages: RangeInclusive<u32>) -> Result<(), TooManyPins> {
        self.pins.add(pages)
    }

    /// Pins and maps a page of the pin set, if that can be done at once. The engine's lock keeps it from being closed
    /// meanwhile.
    pub fn pin_now(&mut self, index: u32, access: Access) -> bool {
        let Some(view) = self.space.view.clone() else { return false };
        match view.access(index, access) {
            PageAccess::Pinned { first_use, .. } => {
                self.pins.on_pinned(index);
                if first_use {
                    self.prefetch_after_use(PageId { home: self.space.rank, index });
                }
                true
            }
            PageAccess::Missed => false,
            PageAccess::Refused(_) => {
                // Nothing closes under the engine's lock, so nobody waits for this.
                let _ = view.unpin(index);
                false
            }
        }
    }

    /// Undoes one [`Engine::add_pins`] of these pages, and returns whether all of them were pinned; if not, nothing is
    /// changed. The caller then undoes the pins in the page table.
    pub fn remove_pins(&mut self, pages: RangeInclusive<u32>) -> bool {
        let Some(wanted) = self.pins.remove(pages) else { return false };
        for index in wanted {
            self.close(PageId { home: self.space.rank, index });
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_add_up_and_are_bounded() {
        let mut pins = PinSet::new(8);
        assert_eq!(pins.add(0..=4), Err(TooManyPins { pages: 5, pages_max: 4 }));
        assert_eq!(pins.add(2..=4), Ok(()));
        assert_eq!(pins.add(4..=5), Ok(()), "page 4 counts once");
        assert_eq!(pins.add(6..=6), Err(TooManyPins { pages: 5, pages_max: 4 }));
        assert_eq!(pins.remove(4..=6), None, "6 is not pinned");
        assert!(!pins.defer_close(3), "3 is not held yet");
        for page in [3, 4, 4] {
            pins.on_pinned(page);
        }
        assert!(pins.defer_close(3) && pins.defer_close(4) && !pins.defer_close(7));
        assert_eq!(pins.remove(2..=4), Some(vec![3]), "4 is still pinned");
        assert!(pins.has(4) && !pins.has(2));
        assert_eq!(pins.remove(4..=5), Some(vec![4]));
        assert_eq!(pins.remove(4..=4), None);
        assert_eq!(PinSet::new(4).add(0..=0), Err(TooManyPins { pages: 1, pages_max: 0 }));
        assert_eq!(PinSet::new(64).pages_max, 48);
    }
}

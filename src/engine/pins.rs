//! Pages of the own segment that the client has pinned.

use super::{Driver, Engine};
use crate::memory::{FRAMES_MIN, PageAccess};
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};
use vgasnet_protocol::coherence::{Access, FrameId};

/// Pages that stay in the pool because the client has pinned them.
#[derive(Debug)]
pub(super) struct PinSet {
    pages: HashMap<u32, Pin>,
    pages_max: u32,
}

/// The client's pins of a page.
#[derive(Clone, Copy, Debug, Default)]
struct Pin {
    /// How many there are.
    count: u32,
    /// How many are in the page table already; the others wait for the page.
    in_table: u32,
    /// The protocol has asked to close the page, which is deferred until no pin is in the table.
    close_deferred: bool,
}

/// Why pages are not pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooManyPins {
    /// More pages would be pinned at a time than may be.
    Pages {
        /// How many would be.
        wanted: usize,
        /// How many may be.
        most: u32,
    },
    /// One page would be pinned more often than this.
    OfPage(u32),
    /// Neighbours do not give back so many frames that would be needed.
    Lent(u32),
}

/// How long pins wait for frames that are lent. A neighbour gives them back at once, unless it is stopped.
const LOANS_PATIENCE: Duration = Duration::from_secs(5);

/// Pins of one page. The page table counts up to 2^24, of which the rest is for uses under way.
const PINS_OF_PAGE_MAX: u32 = 1 << 20;

impl PinSet {
    /// No pins, in a pool of `frames` frames. A quarter of them, and at least what one instruction may need, stays
    /// free.
    pub fn new(frames: u32) -> PinSet {
        let pages_max = (frames - frames / 4).min(frames.saturating_sub(FRAMES_MIN));
        PinSet { pages: HashMap::new(), pages_max }
    }

    /// Whether a page is pinned.
    pub fn has(&self, index: u32) -> bool {
        self.pages.contains_key(&index)
    }

    /// A page of the set is now pinned in the page table.
    pub(super) fn on_pinned(&mut self, index: u32) {
        if let Some(pin) = self.pages.get_mut(&index) {
            pin.in_table += 1;
        }
    }

    /// Defers the closing of a page that the client has pinned and may go on using. Returns whether it does.
    pub(super) fn defer_close(&mut self, index: u32) -> bool {
        let pin = self.pages.get_mut(&index).filter(|pin| pin.in_table > 0);
        pin.map(|pin| pin.close_deferred = true).is_some()
    }

    fn add(&mut self, pages: RangeInclusive<u32>) -> Result<(), TooManyPins> {
        // A range may be as long as a segment: one that is too long is refused before its pages are looked at.
        let len = (pages.end() - pages.start()) as usize + 1;
        let fresh =
            if len <= self.pages_max as usize { pages.clone().filter(|page| !self.has(*page)).count() } else { len };
        let total = self.pages.len() + fresh;
        if total > self.pages_max as usize {
            return Err(TooManyPins::Pages { wanted: total, most: self.pages_max });
        }
        if pages.clone().any(|page| self.pages.get(&page).is_some_and(|pin| pin.count == PINS_OF_PAGE_MAX)) {
            return Err(TooManyPins::OfPage(PINS_OF_PAGE_MAX));
        }
        for page in pages {
            self.pages.entry(page).or_default().count += 1;
        }
        Ok(())
    }

    /// Undoes one [`PinSet::add`] whose pages were not pinned in the page table.
    fn take_back(&mut self, pages: RangeInclusive<u32>) {
        for page in pages {
            let pin = self.pages.get_mut(&page).expect("it was added");
            pin.count -= 1;
            if pin.count == 0 {
                self.pages.remove(&page);
            }
        }
    }

    /// Removes one pin of each page. Returns the pages to close now; `None` if not all were pinned, and nothing is
    /// changed.
    fn remove(&mut self, pages: RangeInclusive<u32>) -> Option<Vec<u32>> {
        let len = (pages.end() - pages.start()) as usize + 1;
        if len > self.pages.len() || !pages.clone().all(|page| self.has(page)) {
            return None;
        }
        let mut closing = Vec::new();
        for page in pages {
            let pin = self.pages.get_mut(&page).expect("it was just seen");
            (pin.count, pin.in_table) = (pin.count - 1, pin.in_table.saturating_sub(1));
            if pin.in_table == 0 {
                closing.extend(std::mem::take(&mut pin.close_deferred).then_some(page));
            }
            if pin.count == 0 {
                self.pages.remove(&page);
            }
        }
        Some(closing)
    }
}

impl Engine {
    /// Adds pages of the own segment to the pin set. The caller then waits for loans ([`Driver::await_loans`]), and pins each of
    /// them in the page table.
    ///
    /// # Errors
    /// They are too many; none is added.
    pub fn add_pins(&mut self, pages: RangeInclusive<u32>) -> Result<(), TooManyPins> {
        self.pins.add(pages)?;
        self.count_pins();
        self.ask_back_for_pins();
        Ok(())
    }

    /// From now on no more is lent than the pins allow.
    fn count_pins(&self) {
        self.space.own.table.set_client_pins(self.pins.pages.len() as u32);
    }

    /// Asks back what is lent beside the pins and too much.
    fn ask_back_for_pins(&mut self) {
        let table = self.space.own.table;
        let too_many = table.lent_too_many();
        if too_many == 0 {
            return;
        }
        self.awaits_loans = true;
        let lent = (0..self.protocol.cache.frames()).map(FrameId).filter(|frame| table.is_lent(*frame));
        for frame in lent.take(too_many as usize) {
            if let Some(page) = self.protocol.cache.page_in(frame).filter(|_| table.ask_back(frame)) {
                self.send_asking(page);
            }
        }
    }

    /// Tells who waits for loans when they have come back.
    pub(super) fn poll_loans(&mut self) {
        if self.awaits_loans && self.space.own.table.lent_too_many() == 0 {
            (self.awaits_loans, self.has_event) = (false, true);
        }
    }

    /// Undoes one [`Engine::add_pins`] of these pages, which are not pinned in the page table.
    fn take_back_pins(&mut self, pages: RangeInclusive<u32>) {
        self.pins.take_back(pages);
        self.count_pins();
    }

    /// Pins and maps a page of the pin set, if it is open. Returns whether it did. The page is not closed meanwhile,
    /// because the caller has the engine's lock.
    pub fn pin_now(&mut self, index: u32, access: Access) -> bool {
        let Some(view) = self.space.view.clone() else { return false };
        match view.access(index, access) {
            PageAccess::Pinned { first_use, .. } => {
                self.pins.on_pinned(index);
                if first_use {
                    self.prefetch_after_use(self.space.own_page(index));
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

    /// Undoes one [`Engine::add_pins`] of these pages. Returns whether all of them were pinned; if not, nothing is
    /// changed. The caller then undoes the pins in the page table.
    pub fn remove_pins(&mut self, pages: RangeInclusive<u32>) -> bool {
        let Some(closing) = self.pins.remove(pages.clone()) else { return false };
        self.count_pins();
        for index in closing {
            self.close(self.space.own_page(index));
        }
        // A page may have awaited a frame that only these pages can give.
        for index in pages {
            let frame = self.protocol.cache.frame_of(self.space.own_page(index));
            frame.into_iter().for_each(|frame| self.frames.release(frame));
        }
        self.handle_events();
        true
    }
}

impl Driver {
    /// Waits until no more is lent than the pins allow, after [`Engine::add_pins`] of these pages.
    ///
    /// # Errors
    /// Neighbours do not give frames back. Then the pages are no longer in the pin set.
    pub fn await_loans(&self, pages: RangeInclusive<u32>) -> Result<(), TooManyPins> {
        let table = &self.space.own.table;
        let has_room = || table.lent_too_many() == 0;
        if !has_room() {
            self.step();
            self.wait_until_or(&has_room, Some(Instant::now() + LOANS_PATIENCE));
        }
        match table.lent_too_many() {
            0 => Ok(()),
            missing => {
                self.engine().take_back_pins(pages);
                Err(TooManyPins::Lent(missing))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_add_up_and_are_bounded() {
        let mut pins = PinSet::new(8);
        assert_eq!(pins.add(0..=4), Err(TooManyPins::Pages { wanted: 5, most: 4 }));
        assert_eq!(pins.add(2..=4), Ok(()));
        assert_eq!(pins.add(4..=5), Ok(()), "page 4 counts once");
        assert_eq!(pins.add(6..=6), Err(TooManyPins::Pages { wanted: 5, most: 4 }));
        assert_eq!(pins.remove(4..=6), None, "6 is not pinned");
        assert!(!pins.defer_close(3), "3 is not pinned in the page table yet");
        for page in [3, 4, 4] {
            pins.on_pinned(page);
        }
        assert!(pins.defer_close(3) && pins.defer_close(4) && !pins.defer_close(7));
        assert_eq!(pins.remove(2..=4), Some(vec![3]), "4 is still pinned");
        assert!(pins.has(4) && !pins.has(2));
        assert_eq!(pins.remove(4..=5), Some(vec![4]));
        assert_eq!(pins.remove(4..=4), None);
        assert_eq!(PinSet::new(4).add(0..=0), Err(TooManyPins::Pages { wanted: 1, most: 0 }));
        assert_eq!(PinSet::new(64).pages_max, 48);
        let mut pins = PinSet::new(8);
        assert_eq!((pins.add(2..=3), pins.on_pinned(2), pins.on_pinned(3), pins.add(3..=4)), (Ok(()), (), (), Ok(())));
        pins.take_back(3..=4);
        assert!(pins.defer_close(3) && !pins.has(4), "the other pin of page 3 is in the table");
    }

    #[test]
    fn pins_of_a_page_stay_below_what_the_page_table_counts() {
        let mut pins = PinSet::new(64);
        (0..PINS_OF_PAGE_MAX).for_each(|_| assert_eq!(pins.add(7..=7), Ok(())));
        assert_eq!(pins.add(6..=8), Err(TooManyPins::OfPage(PINS_OF_PAGE_MAX)));
        assert!(!pins.has(6));
        assert_eq!(pins.remove(7..=7), Some(vec![]));
        assert_eq!(pins.add(6..=8), Ok(()));
    }
}

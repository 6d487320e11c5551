//! Pages of the own segment pinned by the client.

use super::Paging;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use vgasnet_memory::FRAMES_MIN;
use vgasnet_protocol::coherence::{Cache, FrameId, PageId};

/// Pages that stay in the pool because of the client's pins.
#[derive(Debug)]
pub(super) struct PinSet {
    pages: HashMap<u32, Pin>,
    pages_max: u32,
}

/// The client's pins of a page.
#[derive(Clone, Copy, Debug, Default)]
struct Pin {
    /// Number of pins.
    count: u32,
    /// Pins already in the page table; the others wait for the page.
    in_table: u32,
    /// The protocol has asked to close the page, which is deferred until no pin is in the table.
    close_deferred: bool,
}

/// Reasons to refuse a pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooManyPins {
    /// Too many pages pinned at a time.
    Pages {
        /// Pages pinned after the call.
        wanted: usize,
        /// Maximum number of pinned pages.
        most: u32,
    },
    /// More pins of one page than this maximum.
    OfPage(u32),
    /// This many frames are needed that neighbours do not give back.
    Lent(u32),
}

/// Maximum number of pins of a page. The page table counts up to 2^24, including uses in progress.
const PINS_OF_PAGE_MAX: u32 = 1 << 20;

impl PinSet {
    /// No pins, in a pool of `frames` frames. A quarter of them stays unpinned, and at least the frames that one
    /// instruction may need.
    pub fn new(frames: u32) -> PinSet {
        let pages_max = (frames - frames / 4).min(frames.saturating_sub(FRAMES_MIN));
        PinSet { pages: HashMap::new(), pages_max }
    }

    /// Whether a page is pinned.
    pub fn has(&self, index: u32) -> bool {
        self.pages.contains_key(&index)
    }

    /// A page of the set is now pinned in the page table.
    pub fn on_pinned(&mut self, index: u32) {
        if let Some(pin) = self.pages.get_mut(&index) {
            pin.in_table += 1;
        }
    }

    /// Defers the closing of a page pinned by the client. Returns whether it is pinned.
    pub fn defer_close(&mut self, index: u32) -> bool {
        let pin = self.pages.get_mut(&index).filter(|pin| pin.in_table > 0);
        pin.map(|pin| pin.close_deferred = true).is_some()
    }

    fn add(&mut self, pages: RangeInclusive<u32>) -> Result<(), TooManyPins> {
        // A range may be as long as a segment: check its length before its pages.
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
        debug_assert!(self.pages.len() <= self.pages_max as usize, "some frames stay unpinned");
        Ok(())
    }

    /// Undoes one [`PinSet::add`] of pages that were not pinned in the page table.
    fn take_back(&mut self, pages: RangeInclusive<u32>) {
        for page in pages {
            let pin = self.pages.get_mut(&page).expect("it was added");
            debug_assert!(pin.count > 0, "page {page} was pinned");
            pin.count -= 1;
            debug_assert!(pin.count > 0 || pin.in_table == 0, "the pin of page {page} was not in the table");
            if pin.count == 0 {
                self.pages.remove(&page);
            }
        }
    }

    /// Removes one pin of each page. Returns the pages to close now, or `None` without a change if not all are pinned.
    fn remove(&mut self, pages: RangeInclusive<u32>) -> Option<Vec<u32>> {
        let len = (pages.end() - pages.start()) as usize + 1;
        if len > self.pages.len() || !pages.clone().all(|page| self.has(page)) {
            return None;
        }
        let mut closing = Vec::new();
        for page in pages {
            let pin = self.pages.get_mut(&page).expect("it was just seen");
            debug_assert!(pin.count > 0, "page {page} was pinned");
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

impl Paging {
    /// Adds pages of the own segment to the pin set, which lowers the limit on lent frames.
    ///
    /// # Errors
    /// There are too many pages or pins; none is added.
    pub fn add_pins(&mut self, pages: RangeInclusive<u32>) -> Result<(), TooManyPins> {
        self.pins.add(pages)?;
        self.count_pins();
        Ok(())
    }

    /// Pages in lent frames to ask back because more frames are lent than the pins allow.
    pub fn lent_beyond_limit(&mut self, cache: &Cache) -> impl Iterator<Item = PageId> {
        let table = self.space.own.table;
        let too_many = table.lent_too_many();
        self.awaits_loans |= too_many > 0;
        let frames = if too_many > 0 { cache.frames() } else { 0 };
        let lent = (0..frames).map(FrameId).filter(move |frame| table.is_lent(*frame)).take(too_many as usize);
        lent.filter_map(move |frame| cache.page_in(frame).filter(|_| table.ask_back(frame)))
    }

    /// Whether awaited loans have returned since the last call.
    pub fn take_returned_loans(&mut self) -> bool {
        let have_returned = self.awaits_loans && self.space.own.table.lent_too_many() == 0;
        self.awaits_loans &= !have_returned;
        have_returned
    }

    /// Undoes one [`Paging::add_pins`] of pages that were not pinned in the page table.
    pub fn take_back_pins(&mut self, pages: RangeInclusive<u32>) {
        self.pins.take_back(pages);
        self.count_pins();
    }

    /// Undoes one [`Paging::add_pins`]. Returns the pages to close now, or `None` without a change if not all are
    /// pinned.
    pub fn remove_pins(&mut self, pages: RangeInclusive<u32>) -> Option<Vec<u32>> {
        let closing = self.pins.remove(pages)?;
        self.count_pins();
        Some(closing)
    }

    /// A page of the pin set is now pinned in the page table.
    pub fn on_pinned(&mut self, index: u32) {
        self.pins.on_pinned(index);
    }

    /// Lowers the limit on lent frames to leave room for the pins.
    fn count_pins(&self) {
        self.space.own.table.set_client_pins(self.pins.pages.len() as u32);
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

//! Which pages of a segment are parts of its mappings with copies of blocks.
//!
//! A page that was mapped is without access once it is unmapped: covered. Between open pages it takes a mapping of the
//! system, so only a limited number stays so. Opening a page takes more system calls than unmapping it.
//!
//! The kernel joins a page that is opened with an open one beside it, but two parts that grew apart from each other never,
//! once both have had a copy. So the parts are counted by their origin, and a page apart from all others begins a new part
//! only while there are few.

use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, Ordering};

/// A page without access.
const COVERED: u8 = 0;

/// A mapped page.
const MAPPED: u8 = u8::MAX;

/// The parts' origins: the first one is the segment itself. Others come again after 253 new ones.
const FIRST: u8 = 1;
const LAST: u8 = MAPPED - 1;

fn is_open(page: u8) -> bool {
    (FIRST..=LAST).contains(&page)
}

/// The state of each page. Calls for one page come one at a time, as those of its mappers. With calls for its neighbours
/// at the same time the counts may be off by one.
pub(super) struct OpenPages {
    pages: Box<[AtomicU8]>,
    covered: AtomicU32,
    /// Runs of open pages of one origin.
    parts: AtomicI32,
    newest: AtomicU8,
    /// Of covered pages beside open ones, and of parts.
    most: u32,
}

impl OpenPages {
    /// All pages are open. At most `most` stay covered beside open ones, and there are at most as many parts.
    pub(super) fn new(pages: usize, most: u32) -> OpenPages {
        OpenPages {
            pages: std::iter::repeat_with(|| AtomicU8::new(FIRST)).take(pages).collect(),
            covered: AtomicU32::new(0),
            parts: AtomicI32::new(1),
            newest: AtomicU8::new(FIRST),
            most,
        }
    }

    /// The state of a page; none before the first one and behind the last.
    fn state(&self, index: Option<u32>) -> u8 {
        index.and_then(|index| self.pages.get(index as usize)).map_or(COVERED, |page| page.load(Ordering::Relaxed))
    }

    fn neighbours(&self, index: u32) -> [u8; 2] {
        [self.state(index.checked_sub(1)), self.state(index.checked_add(1))]
    }

    fn change(&self, index: u32, new: u8) {
        let old = self.pages[index as usize].swap(new, Ordering::Relaxed);
        if old == new {
            return;
        }
        let [before, behind] = self.neighbours(index);
        let begins = |before: u8, page: u8| i32::from(is_open(page) && before != page);
        let parts = |page: u8| begins(before, page) + begins(page, behind);
        self.parts.fetch_add(parts(new) - parts(old), Ordering::Relaxed);
        self.covered.fetch_add(u32::from(new == COVERED), Ordering::Relaxed);
        self.covered.fetch_sub(u32::from(old == COVERED), Ordering::Relaxed);
    }

    pub(super) fn is_covered(&self, index: u32) -> bool {
        self.state(Some(index)) == COVERED
    }

    /// A page was mapped, perhaps again.
    pub(super) fn on_mapped(&self, index: u32) {
        self.change(index, MAPPED);
    }

    /// A page was unmapped. Returns whether it stays covered: if not, it is to be opened.
    pub(super) fn on_covered(&self, index: u32) -> bool {
        let is_apart = !self.neighbours(index).into_iter().any(is_open);
        self.change(index, COVERED);
        is_apart || self.covered.load(Ordering::Relaxed) <= self.most
    }

    /// A page stays covered.
    pub(super) fn leave(&self, index: u32) {
        self.change(index, COVERED);
    }

    /// The part of which a covered page becomes one; `None` if it has to stay covered.
    pub(super) fn part_for(&self, index: u32) -> Option<u8> {
        if let Some(part) = self.neighbours(index).into_iter().find(|page| is_open(*page)) {
            return Some(part);
        }
        let has_room = self.parts.load(Ordering::Relaxed) < self.most as i32;
        let next = |newest| Some(if newest == LAST { FIRST + 1 } else { newest + 1 });
        let newest = || self.newest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        has_room.then(|| newest().map_or(LAST, |before| if before == LAST { FIRST + 1 } else { before + 1 }))
    }

    /// A covered page was opened.
    pub(super) fn on_opened(&self, index: u32, part: u8) {
        self.change(index, part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(pages: &OpenPages) -> i32 {
        let states: Vec<u8> = pages.pages.iter().map(|page| page.load(Ordering::Relaxed)).collect();
        let befores = [COVERED].into_iter().chain(states.iter().copied());
        states.iter().zip(befores).filter(|(page, before)| is_open(**page) && *before != **page).count() as i32
    }

    #[test]
    fn parts_and_covered_pages_are_counted() {
        let (pages, mut random) = (OpenPages::new(40, 5), fastrand::Rng::with_seed(3));
        for _ in 0..10_000 {
            let index = random.u32(0..40);
            match pages.state(Some(index)) {
                COVERED if random.bool() => {
                    pages.part_for(index).into_iter().for_each(|part| pages.on_opened(index, part));
                }
                MAPPED => {
                    let is_left = pages.on_covered(index);
                    assert!(pages.is_covered(index));
                    if !is_left {
                        let part = pages.part_for(index).expect("an open page is beside it");
                        pages.on_opened(index, part);
                    }
                }
                _ => pages.on_mapped(index),
            }
            assert_eq!(pages.parts.load(Ordering::Relaxed), parts(&pages));
            let covered = (0..40).filter(|index| pages.is_covered(*index)).count();
            assert_eq!(pages.covered.load(Ordering::Relaxed) as usize, covered);
        }
        assert!(random.u32(..) != 0 && pages.newest.load(Ordering::Relaxed) > FIRST, "some parts were new");
    }

    #[test]
    fn a_page_apart_from_others_begins_a_part_while_there_are_few() {
        let pages = OpenPages::new(9, 2);
        (0..9).for_each(|index| pages.on_mapped(index));
        (0..9).for_each(|index| assert!(pages.on_covered(index), "none is beside an open one"));
        for index in [1, 7] {
            let part = pages.part_for(index).expect("there are few parts");
            pages.on_opened(index, part);
        }
        assert_eq!(pages.part_for(4), None);
        let part = pages.part_for(2).expect("it joins a part");
        assert_eq!(part, pages.state(Some(1)));
        pages.on_mapped(7);
        assert!(pages.part_for(4).is_some());
    }
}

//! The files of a home: its backing file, and those on which it does I/O, with their slots in the storage.

use super::home_page::HomePage;
use std::collections::BTreeMap;
use vgasnet_protocol::coherence::PageId;
use vgasnet_protocol::{Rank, Space, Spaces};

/// The storage slots of a home's files.
#[derive(Debug)]
pub(super) struct HomeFiles {
    rank: Rank,
    /// Homes of the segments' pages.
    segments: Spaces,
    slots: BTreeMap<Space, u32>,
    spaces: BTreeMap<u32, Space>,
}

impl HomeFiles {
    /// The files of a rank, initially its backing file only.
    pub(super) fn new(rank: Rank, segments: Spaces) -> HomeFiles {
        HomeFiles { rank, segments, slots: BTreeMap::new(), spaces: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, file: Space, slot: u32) {
        assert!(slot > 0, "slot 0 is the backing file's");
        let before = self.slots.insert(file, slot);
        assert!(before.is_none(), "{file:?} is added once");
        let before = self.spaces.insert(slot, file);
        assert!(before.is_none(), "slot {slot} is of one file");
        debug_assert_eq!(self.slots.len(), self.spaces.len(), "each file has a slot");
    }

    /// Removes a file. Returns its slot.
    pub(super) fn remove(&mut self, file: Space) -> Option<u32> {
        let slot = self.slots.remove(&file)?;
        let its = self.spaces.remove(&slot);
        assert_eq!(its, Some(file), "a file and its slot lead to each other");
        debug_assert_eq!(self.slots.len(), self.spaces.len(), "each file has a slot");
        Some(slot)
    }

    /// Whether this home does I/O on its backing file only.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The slots of all files.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.spaces.keys().copied()
    }

    /// The file of a slot, if there is one.
    pub(super) fn space_of(&self, slot: u32) -> Option<Space> {
        self.spaces.get(&slot).copied()
    }

    /// The slot of a file, if this home does I/O on it.
    pub(super) fn slot(&self, file: Space) -> Option<u32> {
        self.slots.get(&file).copied()
    }

    /// The number of a page of this home.
    pub(super) fn number(&self, page: PageId) -> HomePage {
        if self.segments.is_in_backing_file(self.rank, page.space) {
            return HomePage::of_segment(self.segments.place_at_home(page));
        }
        HomePage::of_file(self.slots[&page.space], page.index)
    }

    /// The number of a page, if this rank is or may be its home.
    pub(super) fn try_number(&self, page: PageId) -> Option<HomePage> {
        let is_here = self.segments.is_in_backing_file(self.rank, page.space) || self.slots.contains_key(&page.space);
        is_here.then(|| self.number(page))
    }

    /// The page of a number.
    pub(super) fn page(&self, number: HomePage) -> PageId {
        if number.is_of_segment() {
            return self.segments.page_at_place(self.rank, number.index());
        }
        PageId { space: self.spaces[&number.slot()], index: number.index() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn pages_of_all_segments_may_lie_in_the_backing_file() {
        let spaces = Spaces::new([6, 2, 6]).with_cyclic_homes(2);
        let files = HomeFiles::new(Rank(1), spaces.clone());
        let all = (0..3).flat_map(|rank| (0..6).map(move |index| PageId::of_segment(Rank(rank), index)));
        let here: Vec<PageId> = all.filter(|page| spaces.has(*page) && spaces.home(*page) == Rank(1)).collect();
        assert_eq!(here.len(), 4);
        for (place, page) in here.into_iter().enumerate() {
            let number = files.try_number(page).expect("it is here");
            assert_eq!((number, files.page(number)), (HomePage::of_segment(place as u32), page));
        }
    }

    #[test]
    fn pages_have_numbers_and_blocks_have_pages() {
        let (segment, file) = (Space::of_segment(Rank(3)), Space::of_file(9));
        let mut files = HomeFiles::new(Rank(3), Spaces::new([9; 4]));
        files.add(file, 5);
        for page in [(segment, 0), (segment, u32::MAX - 1), (file, 0), (file, u32::MAX - 1)] {
            let page = PageId { space: page.0, index: page.1 };
            let number = files.number(page);
            assert_eq!((files.page(number), number.is_of_segment()), (page, page.space == segment));
            assert_eq!(HomePage::of_block(number.first_block(14) + 16_383, 14), number);
        }
        assert_eq!(files.number(PageId { space: file, index: 4 }).behind(3), HomePage::of_file(5, 7));
        assert_eq!((files.remove(file), files.slot(file)), (Some(5), None));
    }
}

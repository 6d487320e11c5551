//! The pages with bytes on disk. All others are zeros and need no read.

use super::super::PageId;
use crate::{Rank, Space};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

/// The pages of one home with bytes in their backing file or their own file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Written {
    own: Space,
    segment: Bits,
    /// Files, and other segments with pages of this home.
    others: BTreeMap<Space, FilePages>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Bits {
    len: u32,
    words: Vec<u64>,
}

/// The pages of a file or segment. Holes in a file count as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct FilePages {
    /// The pages before this one had bytes at the last open or truncation.
    first: u32,
    /// Pages written since, 64 in a word.
    others: BTreeMap<u32, u64>,
}

impl Written {
    /// The segment of a rank with `pages` unwritten pages, and no file.
    pub fn new(rank: Rank, pages: u32) -> Written {
        let segment = Bits { len: pages, words: vec![0; (pages as usize).div_ceil(64)] };
        Written { own: Space::of_segment(rank), segment, others: BTreeMap::new() }
    }

    /// Number of pages in the segment.
    pub fn segment_pages(&self) -> u32 {
        self.segment.len
    }

    pub fn get(&self, page: PageId) -> bool {
        let is_set = |word: u64| word >> (page.index % 64) & 1 == 1;
        if page.space == self.own {
            debug_assert!(page.index < self.segment.len, "{page:?} is in the segment of this home");
            return is_set(self.segment.words[page.index as usize / 64]);
        }
        self.others.get(&page.space).is_some_and(|pages| {
            page.index < pages.first || pages.others.get(&(page.index / 64)).copied().is_some_and(is_set)
        })
    }

    pub fn set(&mut self, page: PageId) {
        let bit = 1 << (page.index % 64);
        if page.space == self.own {
            debug_assert!(page.index < self.segment.len, "{page:?} is in the segment of this home");
            self.segment.words[page.index as usize / 64] |= bit;
            return;
        }
        let pages = self.others.entry(page.space).or_default();
        if page.index >= pages.first {
            *pages.others.entry(page.index / 64).or_default() |= bit;
        }
    }

    /// Records an open or truncated file: its first `first` pages have bytes, the others none.
    pub fn set_file(&mut self, file: Space, first: u32) {
        debug_assert_eq!(file.segment(), None::<Rank>);
        self.others.insert(file, FilePages { first, others: BTreeMap::new() });
    }

    pub fn has_file(&self, file: Space) -> bool {
        self.others.contains_key(&file)
    }

    pub fn remove_file(&mut self, file: Space) {
        self.others.remove(&file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_is_set_alone() {
        let mut written = Written::new(Rank(3), 130);
        let page = |index| PageId::of_segment(Rank(3), index);
        [0, 63, 64, 129].into_iter().for_each(|index| written.set(page(index)));
        assert!(
            (0..written.segment_pages()).all(|index| written.get(page(index)) == [0, 63, 64, 129].contains(&index))
        );
    }

    #[test]
    fn pages_of_other_segments_are_apart() {
        let mut written = Written::new(Rank(3), 10);
        let pages =
            [(3, 9), (4, 9), (4, 70), (0, u32::MAX - 1)].map(|(rank, index)| PageId::of_segment(Rank(rank), index));
        for (at, page) in pages.into_iter().enumerate() {
            assert!(!written.get(page));
            written.set(page);
            assert_eq!(pages.map(|page| written.get(page)), [0, 1, 2, 3].map(|other| other <= at));
        }
    }

    #[test]
    fn a_file_grows_by_single_pages_and_is_cut() {
        let (mut written, file) = (Written::new(Rank(0), 1), Space::of_file(0));
        let page = |index| PageId { space: file, index };
        let has = |written: &Written| [0, 2, 3, 4, 70, u32::MAX - 1].map(|index| written.get(page(index)));
        written.set_file(file, 3);
        [1, 70, u32::MAX - 1].into_iter().for_each(|index| written.set(page(index)));
        assert_eq!(has(&written), [true, true, false, false, true, true]);
        assert!(!written.get(PageId::of_segment(Rank(0), 0)));
        written.set_file(file, 4);
        assert_eq!(has(&written), [true, true, true, false, false, false]);
    }
}

//! Pages only ever written in blocks: their unwritten blocks are known to be zeros and need no read. So a program that
//! fills a new file with small records waits only for reads of blocks evicted half written.

use super::super::home_page::HomePage;
use std::collections::BTreeMap;

/// Maximum words for all pages: with large pages, enough for 32 GiB. Pages without room have all blocks read.
const WORDS_MAX: usize = 1 << 17;

/// Words of a map entry, without its bits.
const ENTRY_WORDS: usize = 8;

/// Pages only ever written in blocks.
#[derive(Debug, Default)]
pub(super) struct ZeroBlocks {
    /// One bit per block: whether it has been written.
    pages: BTreeMap<HomePage, Box<[u64]>>,
    words: usize,
}

impl ZeroBlocks {
    /// A page of this many blocks is about to be written for the first time.
    pub(super) fn begin(&mut self, page: HomePage, blocks: u64) {
        let words = blocks.div_ceil(64) as usize;
        if self.words + words + ENTRY_WORDS > WORDS_MAX || self.pages.contains_key(&page) {
            return;
        }
        self.words += words + ENTRY_WORDS;
        self.pages.insert(page, vec![0; words].into());
        debug_assert!(self.words <= WORDS_MAX, "the memory for the bits is limited");
    }

    /// Whether a block, by its index in the page, is known to be zeros.
    pub(super) fn has(&self, page: HomePage, block: u64) -> bool {
        self.pages.get(&page).is_some_and(|words| words[(block / 64) as usize] >> (block % 64) & 1 == 0)
    }

    /// A block is written.
    pub(super) fn on_written(&mut self, page: HomePage, block: u64) {
        let Some(words) = self.pages.get_mut(&page) else { return };
        words[(block / 64) as usize] |= 1 << (block % 64);
    }

    /// The page is written by other means.
    pub(super) fn forget(&mut self, page: HomePage) {
        if let Some(words) = self.pages.remove(&page) {
            assert!(self.words >= words.len() + ENTRY_WORDS, "the memory for the bits is counted");
            self.words -= words.len() + ENTRY_WORDS;
        }
    }

    /// The file's bytes from this page on have changed.
    pub(super) fn forget_from(&mut self, first: HomePage) {
        let behind = self.pages.range(first..HomePage::of_file(first.slot() + 1, 0));
        let pages: Vec<HomePage> = behind.map(|(page, _)| *page).collect();
        pages.into_iter().for_each(|page| self.forget(page));
        debug_assert!(
            self.pages.range(first..HomePage::of_file(first.slot() + 1, 0)).next().is_none(),
            "no page is left"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_zeros_until_they_are_written() {
        let (mut zeros, page, other) = (ZeroBlocks::default(), HomePage::of_file(2, 7), HomePage::of_file(2, 8));
        assert!(!zeros.has(page, 0), "nothing is known of it");
        zeros.begin(page, 100);
        zeros.begin(other, 100);
        zeros.on_written(page, 70);
        zeros.begin(page, 100);
        assert_eq!([0, 69, 70, 71, 99].map(|block| zeros.has(page, block)), [true, true, false, true, true]);
        zeros.forget(page);
        assert!(!zeros.has(page, 0) && zeros.has(other, 70));
        zeros.begin(HomePage::of_file(3, 0), 100);
        zeros.forget_from(page);
        assert!(!zeros.has(other, 70) && zeros.has(HomePage::of_file(3, 0), 0));
        zeros.forget(HomePage::of_file(3, 0));
        assert_eq!(zeros.words, 0);
    }

    #[test]
    fn there_is_room_for_so_many() {
        let mut zeros = ZeroBlocks::default();
        let pages = WORDS_MAX / (16 + ENTRY_WORDS);
        for index in 0..2 * pages as u32 {
            zeros.begin(HomePage::of_segment(index), 1024);
        }
        assert_eq!(zeros.pages.len(), pages);
    }
}

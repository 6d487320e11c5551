//! Pages that were never written but in blocks: their other blocks are zeros, whatever the disk would say, and need not be read. So a
//! program that fills a new file with small records waits for no read, but of blocks that left the pool half written.

use super::super::home_page::HomePage;
use vgasnet_protocol::ordered::OrderedMap;

/// Words for pages, at most: with large pages, what 32 GiB need. Of pages for which there is no room all blocks are read.
const WORDS_MAX: usize = 1 << 17;

/// Words that a page takes besides its bits, in the map.
const WORDS_BESIDE: usize = 8;

/// Those pages.
#[derive(Debug, Default)]
pub(super) struct ZeroBlocks {
    /// A bit a block: whether it was written.
    pages: OrderedMap<HomePage, Box<[u64]>>,
    words: usize,
}

impl ZeroBlocks {
    /// A page of so many blocks is about to be written for the first time.
    pub(super) fn begin(&mut self, page: HomePage, blocks: u64) {
        let words = blocks.div_ceil(64) as usize;
        if self.words + words + WORDS_BESIDE > WORDS_MAX || self.pages.contains_key(&page) {
            return;
        }
        self.words += words + WORDS_BESIDE;
        self.pages.insert(page, vec![0; words].into());
    }

    /// Whether a block is known to be zeros, by its place in its page.
    pub(super) fn has(&self, page: HomePage, block: u64) -> bool {
        self.pages.get(&page).is_some_and(|words| words[(block / 64) as usize] >> (block % 64) & 1 == 0)
    }

    /// A block is written.
    pub(super) fn on_written(&mut self, page: HomePage, block: u64) {
        let Some(words) = self.pages.get_mut(&page) else { return };
        words[(block / 64) as usize] |= 1 << (block % 64);
    }

    /// The page is written otherwise.
    pub(super) fn forget(&mut self, page: HomePage) {
        if let Some(words) = self.pages.remove(&page) {
            self.words -= words.len() + WORDS_BESIDE;
        }
    }

    /// The file of a page has other bytes from there on.
    pub(super) fn forget_from(&mut self, first: HomePage) {
        let behind = self.pages.range(first..HomePage::of_file(first.slot() + 1, 0));
        let pages: Vec<HomePage> = behind.map(|(page, _)| *page).collect();
        pages.into_iter().for_each(|page| self.forget(page));
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
        let pages = WORDS_MAX / (16 + WORDS_BESIDE);
        for index in 0..2 * pages as u32 {
            zeros.begin(HomePage::of_segment(index), 1024);
        }
        assert_eq!(zeros.pages.len(), pages);
    }
}

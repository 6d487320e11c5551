//! The spilled pages of files: their places, their newer blocks, and their operations in flight.

use super::super::{BLOCK_BYTES, FileSlot, IoOperation};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Initial number of pages without a place before one more is tried after the disk was full.
const TRIED_AFTER: u32 = 64;

/// Maximum of the same number.
const TRIED_AFTER_MOST: u32 = 4096;

/// A page of a file, by its index in the file.
pub(super) type Key = (FileSlot, u64);

/// A page with spilled blocks, now or soon.
#[derive(Debug)]
pub(super) struct Spilled {
    /// Its place in the buffer, in pages.
    pub place: u32,
    /// Bit map of the blocks newer in the buffer than in the file.
    newer: Box<[u64]>,
    /// Position in the order of spilling.
    number: u64,
    /// Operations reading its place.
    pub readers: u32,
    /// Writes to its place, or to the file.
    pub writers: u32,
    pub is_draining: bool,
    /// Writes waiting for the end of the drain.
    pub waiting: VecDeque<IoOperation>,
}

impl Spilled {
    fn is_newer(&self, block: usize) -> bool {
        self.newer[block / 64] >> (block % 64) & 1 != 0
    }

    /// Records whether blocks are newer in the buffer than in the file.
    pub fn set_newer(&mut self, blocks: Range<usize>, is_newer: bool) {
        for block in blocks {
            let (word, bit) = (&mut self.newer[block / 64], 1 << (block % 64));
            *word = if is_newer { *word | bit } else { *word & !bit };
        }
    }

    /// The range as runs of adjacent blocks, each with whether it is newer in the buffer.
    pub fn runs(&self, blocks: Range<usize>) -> Vec<(Range<usize>, bool)> {
        let mut runs: Vec<(Range<usize>, bool)> = Vec::new();
        for block in blocks {
            let is_newer = self.is_newer(block);
            match runs.last_mut() {
                Some((run, before)) if *before == is_newer => run.end = block + 1,
                _ => runs.push((block..block + 1, is_newer)),
            }
        }
        runs
    }

    /// The first run of blocks newer in the buffer, cut to `most` blocks.
    pub fn first_newer(&self, most: usize) -> Option<Range<usize>> {
        let all = self.newer.len() * 64;
        let (word, bits) = self.newer.iter().enumerate().find(|(_, word)| **word != 0)?;
        let start = word * 64 + bits.trailing_zeros() as usize;
        let end = (start..all.min(start + most)).find(|block| !self.is_newer(*block));
        Some(start..end.unwrap_or(all.min(start + most)))
    }

    fn is_over(&self) -> bool {
        let is_idle = self.readers + self.writers == 0 && !self.is_draining && self.waiting.is_empty();
        is_idle && self.newer.iter().all(|word| *word == 0)
    }
}

/// The spilled pages, in a bounded number of places.
#[derive(Debug)]
pub(super) struct Pages {
    page_blocks: usize,
    pages: BTreeMap<Key, Spilled>,
    /// The pages of each file by their numbers.
    in_order: BTreeMap<FileSlot, BTreeMap<u64, u64>>,
    last: u64,
    free: Vec<u32>,
    /// Places from here on were never used.
    unused: u32,
    /// Maximum number of places, if the disk has room.
    limit: u32,
    /// Number of places the disk had room for when it was full, plus the ones tried since.
    most: u32,
    /// Pages without a place since `most` changed, and the number of them before `most` grows by one. The number halves
    /// with each growth and doubles each time the disk is full.
    refused: u32,
    tried_after: u32,
}

impl Pages {
    /// An empty set of at most `most` pages.
    pub fn new(page_bytes: usize, most: u32) -> Pages {
        Pages {
            page_blocks: page_bytes / BLOCK_BYTES,
            pages: BTreeMap::new(),
            in_order: BTreeMap::new(),
            last: 0,
            free: Vec::new(),
            unused: 0,
            limit: most,
            most,
            refused: 0,
            tried_after: TRIED_AFTER,
        }
    }

    pub fn get(&self, key: Key) -> Option<&Spilled> {
        self.pages.get(&key)
    }

    /// A page in the set.
    pub fn known(&mut self, key: Key) -> &mut Spilled {
        self.pages.get_mut(&key).expect("the page is known while it has operations in flight")
    }

    /// Number of pages.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// The number of the latest spilled page.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The page, added if there is a place for it.
    pub fn begin(&mut self, key: Key) -> Option<&mut Spilled> {
        if !self.pages.contains_key(&key) {
            let place = self.take_place()?;
            self.last += 1;
            let newer = vec![0; self.page_blocks.div_ceil(64)].into();
            let waiting = VecDeque::new();
            let number = self.last;
            let page = Spilled { place, newer, number, readers: 0, writers: 0, is_draining: false, waiting };
            self.in_order.entry(key.0).or_default().insert(number, key.1);
            self.pages.insert(key, page);
        }
        self.pages.get_mut(&key)
    }

    fn take_place(&mut self) -> Option<u32> {
        if self.pages.len() >= self.most as usize && !self.try_more() {
            return None;
        }
        self.free.pop().or_else(|| {
            self.unused += 1;
            Some(self.unused - 1)
        })
    }

    /// The disk had no room for the latest place: lowers the number of places to one less than the present pages.
    pub fn fill_up(&mut self) {
        let room = self.pages.len() as u32 - 1;
        if room < self.most {
            (self.most, self.refused) = (room, 0);
            self.tried_after = (2 * self.tried_after).min(TRIED_AFTER_MOST);
        }
    }

    /// Counts a page without a place. Returns whether to try one more place, since the disk may have room again.
    fn try_more(&mut self) -> bool {
        if self.most >= self.limit {
            return false;
        }
        self.refused += 1;
        let is_tried = self.refused >= self.tried_after;
        if is_tried {
            (self.most, self.refused) = (self.pages.len() as u32 + 1, 0);
            self.tried_after = (self.tried_after / 2).max(1);
        }
        is_tried
    }

    /// Forgets a page without newer blocks and without operations.
    pub fn settle(&mut self, key: Key) {
        if self.pages.get(&key).is_some_and(Spilled::is_over) {
            self.remove(key);
        }
    }

    fn remove(&mut self, key: Key) {
        let page = self.pages.remove(&key).expect("it is known");
        let of_file = self.in_order.get_mut(&key.0).expect("it has this page");
        of_file.remove(&page.number);
        if of_file.is_empty() {
            self.in_order.remove(&key.0);
        }
        self.free.push(page.place);
    }

    /// Forgets the pages of a file from `first` on. They have no operations in flight.
    pub fn forget(&mut self, file: FileSlot, first: u64) {
        let keys: Vec<Key> = self.of_file(file).map(|(key, _)| key).filter(|key| key.1 >= first).collect();
        for key in keys {
            let page = self.known(key);
            assert!(page.readers + page.writers == 0 && !page.is_draining, "a page is forgotten while it moves");
            self.remove(key);
        }
    }

    /// The pages of a file.
    pub fn of_file(&self, file: FileSlot) -> impl Iterator<Item = (Key, &Spilled)> {
        self.pages.range((file, 0)..=(file, u64::MAX)).map(|(key, page)| (*key, page))
    }

    /// Whether a page spilled up to `number` is still in the buffer.
    pub fn has_until(&self, file: FileSlot, number: u64) -> bool {
        let oldest = self.in_order.get(&file).and_then(|of_file| of_file.first_key_value());
        oldest.is_some_and(|(oldest, _)| *oldest <= number)
    }

    /// The oldest page to drain, among the files allowed by `may_drain`.
    pub fn next_to_drain(&self, may_drain: impl Fn(FileSlot) -> bool) -> Option<Key> {
        let is_ready = |file: FileSlot, page: u64| {
            let page = &self.pages[&(file, page)];
            page.writers == 0 && !page.is_draining && page.first_newer(1).is_some()
        };
        let of_files = self.in_order.iter().filter(|(file, _)| may_drain(**file));
        let ready = of_files.filter_map(|(file, pages)| {
            let (number, page) = pages.iter().find(|(_, page)| is_ready(*file, **page))?;
            Some((*number, (*file, *page)))
        });
        ready.min().map(|(_, key)| key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that was full for a while is used again.
    #[test]
    fn room_that_comes_back_is_found() {
        const PLACES: u32 = 8;
        let mut pages = Pages::new(4 * BLOCK_BYTES, PLACES);
        let mut spill = |page: u64, has_room: bool| {
            let key = (FileSlot(1), page);
            let has_place = pages.begin(key).is_some();
            if has_place && !has_room {
                pages.fill_up();
                pages.settle(key);
            }
            (has_place, pages.len())
        };
        assert_eq!((0..3).map(|page| spill(page, true)).last(), Some((true, 3)));
        let tried = (3..2003).filter(|page| spill(*page, false).0).count();
        assert!((2..=40).contains(&tried), "{tried} of 2000 pages were tried where there is no room");
        let after = (3000..).position(|page| spill(page, true).1 == PLACES as usize);
        assert!(after.is_some_and(|after| after < 400), "room is found after {after:?} pages");
        assert!(!spill(9000, true).0, "there are no more places than set");
    }
}

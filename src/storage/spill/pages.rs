//! Which pages of files are spilled: the places that they have, which of their blocks count, and what is under way about them.

use super::super::{BLOCK_BYTES, FileSlot, IoOperation};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Pages that find no place before one more is tried, at first, where the disk was full.
const TRIED_AFTER: u32 = 64;

/// The same at most.
const TRIED_AFTER_MOST: u32 = 4096;

/// A page of a file: its place there is counted in pages.
pub(super) type Key = (FileSlot, u64);

/// A page of which something is spilled, or about to be.
#[derive(Debug)]
pub(super) struct Spilled {
    /// Its place, in pages.
    pub place: u32,
    /// Blocks that are newer here than in the file.
    newer: Box<[u64]>,
    /// Pages are numbered as they are spilled.
    number: u64,
    /// Operations that read its place.
    pub readers: u32,
    /// Writes to its place, or to the file.
    pub writers: u32,
    pub is_draining: bool,
    /// Writes that wait until that is done.
    pub waiting: VecDeque<IoOperation>,
}

impl Spilled {
    fn is_newer(&self, block: usize) -> bool {
        self.newer[block / 64] >> (block % 64) & 1 != 0
    }

    /// Notes whether blocks are newer here than in the file.
    pub fn set_newer(&mut self, blocks: Range<usize>, is_newer: bool) {
        for block in blocks {
            let (word, bit) = (&mut self.newer[block / 64], 1 << (block % 64));
            *word = if is_newer { *word | bit } else { *word & !bit };
        }
    }

    /// Blocks side by side of a range, and whether they are newer here.
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

    /// The first blocks that are newer here, at most so many.
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

/// The pages that are spilled, in a bounded number of places.
#[derive(Debug)]
pub(super) struct Pages {
    page_blocks: usize,
    pages: BTreeMap<Key, Spilled>,
    /// Those of each file by their numbers.
    in_order: BTreeMap<FileSlot, BTreeMap<u64, u64>>,
    last: u64,
    free: Vec<u32>,
    /// Places from here on were never used.
    unused: u32,
    /// As many as may be, while there is room on the disk.
    limit: u32,
    /// As many as there was room for when the disk was full, and some that were tried since.
    most: u32,
    /// Pages that have found no place since `most` changed, and how many are to before it grows by one: half as many each time that it does,
    /// twice as many each time that the disk was full.
    refused: u32,
    tried_after: u32,
}

impl Pages {
    /// None of at most so many.
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

    /// A page that is known.
    pub fn known(&mut self, key: Key) -> &mut Spilled {
        self.pages.get_mut(&key).expect("the page is known while something is under way about it")
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// The number of the page that was spilled last.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Has a page known, if there is a place for it.
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

    /// There is no room for more than now, the last of which found none.
    pub fn fill_up(&mut self) {
        let room = self.pages.len() as u32 - 1;
        if room < self.most {
            (self.most, self.refused) = (room, 0);
            self.tried_after = (2 * self.tried_after).min(TRIED_AFTER_MOST);
        }
    }

    /// A page finds no place. There may be room by now, for which somebody has to try. Returns whether this one is to.
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

    /// Forgets a page of which nothing is left.
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

    /// Forgets the pages of a file from one on, about which nothing is under way.
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

    /// Whether some page of a file is spilled that was by the time of a number.
    pub fn has_until(&self, file: FileSlot, number: u64) -> bool {
        let oldest = self.in_order.get(&file).and_then(|of_file| of_file.first_key_value());
        oldest.is_some_and(|(oldest, _)| *oldest <= number)
    }

    /// The oldest page to be brought to its file, of those that `may_go`.
    pub fn next_to_drain(&self, may_go: impl Fn(FileSlot) -> bool) -> Option<Key> {
        let is_ready = |file: FileSlot, page: u64| {
            let page = &self.pages[&(file, page)];
            page.writers == 0 && !page.is_draining && page.first_newer(1).is_some()
        };
        let of_files = self.in_order.iter().filter(|(file, _)| may_go(**file));
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

    /// A disk that was full for a moment is used again.
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

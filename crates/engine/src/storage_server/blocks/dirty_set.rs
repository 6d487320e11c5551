//! The dirty blocks, and the flushes of files, which write them.

use super::super::home_page::HomePage;
use super::flushes::Flushes;
use super::numbering::{Block, Numbering};
use std::collections::BTreeSet;
use std::ops::Range;

/// The dirty blocks that are not being written.
#[derive(Debug)]
pub(super) struct DirtySet {
    numbering: Numbering,
    blocks: BTreeSet<Block>,
    /// Dirty blocks of files, including those being written, which are dirty again if the write fails.
    of_files: usize,
    /// Blocks held by puts to files, which may become dirty.
    promised: usize,
    flushes: Flushes,
    /// Blocks of files have become dirty since the last query.
    has_new_of_files: bool,
}

impl DirtySet {
    /// No dirty blocks.
    pub(super) fn new(numbering: Numbering) -> DirtySet {
        let (blocks, flushes) = Default::default();
        DirtySet { numbering, blocks, of_files: 0, promised: 0, flushes, has_new_of_files: false }
    }

    fn file_of(&self, block: Block) -> Option<u32> {
        let page = self.numbering.page_of(block);
        debug_assert!(self.numbering.of_page(page).contains(&block), "a page and its blocks lead to each other");
        (!page.is_of_segment()).then(|| page.slot())
    }

    /// A put takes `count` blocks of a page, which may become dirty.
    pub(super) fn promise(&mut self, page: HomePage, count: u64) {
        self.promised += if page.is_of_segment() { 0 } else { count as usize };
    }

    /// The put has ended.
    pub(super) fn end_promise(&mut self, page: HomePage, count: u64) {
        let count = if page.is_of_segment() { 0 } else { count as usize };
        assert!(self.promised >= count, "the blocks of a put were promised when it took them");
        self.promised -= count;
    }

    /// Adds a block. Returns its mark if it is a file's: the file's number of flushes at this time.
    pub(super) fn add(&mut self, block: Block) -> Option<u32> {
        let file = self.file_of(block);
        if !self.blocks.insert(block) {
            return None;
        }
        let mark = self.flushes.on_dirtied(file?);
        self.of_files += 1;
        self.has_new_of_files = true;
        Some(mark)
    }

    /// Removes a block with this mark that is clean now. Returns whether it was there.
    pub(super) fn remove(&mut self, block: Block, mark: u32) -> bool {
        let was_dirty = self.blocks.remove(&block);
        if let Some(file) = self.file_of(block).filter(|_| was_dirty) {
            self.flushes.on_cleaned(file, mark);
            assert!(self.of_files > 0, "the dirty block of a file was counted");
            self.of_files -= 1;
        }
        was_dirty
    }

    /// The storage has begun to write a block.
    pub(super) fn begin_write(&mut self, block: Block) {
        let was_dirty = self.blocks.remove(&block);
        assert!(was_dirty, "block {block} is written because it is dirty");
        if let Some(file) = self.file_of(block) {
            self.flushes.on_writing(file);
        }
    }

    /// The storage has written a block with this mark.
    pub(super) fn on_written(&mut self, block: Block, mark: u32) {
        debug_assert!(!self.blocks.contains(&block), "block {block} was being written");
        if let Some(file) = self.file_of(block) {
            self.flushes.on_written(file, mark);
            assert!(self.of_files > 0, "the dirty block of a file was counted");
            self.of_files -= 1;
        }
    }

    /// The storage could not write a block: it is dirty again.
    pub(super) fn on_write_failed(&mut self, block: Block) {
        debug_assert!(
            self.of_files > 0 || self.file_of(block).is_none(),
            "a block of a file counts until it is written"
        );
        let is_new = self.blocks.insert(block);
        debug_assert!(is_new, "block {block} was being written");
        if let Some(file) = self.file_of(block) {
            self.flushes.on_failed(file);
        }
    }

    /// Whether no block is dirty.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Whether a block is dirty.
    pub(super) fn has(&self, block: Block) -> bool {
        self.blocks.contains(&block)
    }

    /// The dirty blocks of a range.
    pub(super) fn among(&self, blocks: Range<Block>) -> impl Iterator<Item = Block> + '_ {
        self.blocks.range(blocks).copied()
    }

    /// Number of dirty blocks of a file.
    pub(super) fn count_of(&self, file: u32) -> usize {
        self.among(self.numbering.of_file(file)).count()
    }

    /// Number of dirty blocks of files, including those being written.
    pub(super) fn of_files(&self) -> usize {
        self.of_files
    }

    /// The same, with the blocks that may become dirty.
    pub(super) fn of_files_soon(&self) -> usize {
        self.of_files + self.promised
    }

    /// Whether blocks of files have become dirty since the last call.
    pub(super) fn take_new_of_files(&mut self) -> bool {
        std::mem::take(&mut self.has_new_of_files)
    }

    /// The flushes of files.
    pub(super) fn flushes(&self) -> &Flushes {
        &self.flushes
    }

    /// The same, to be begun and advanced.
    pub(super) fn flushes_mut(&mut self) -> &mut Flushes {
        &mut self.flushes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vgasnet_storage::BLOCK_BYTES;

    #[test]
    fn blocks_of_files_count_until_they_are_written() {
        let numbering = Numbering::new(4 * BLOCK_BYTES);
        let (page, own) = (HomePage::of_file(2, 7), HomePage::of_segment(7));
        let (block, block_of_own) = (numbering.of_page(page).start, numbering.of_page(own).start);
        let mut dirty = DirtySet::new(numbering);
        dirty.promise(page, 1);
        dirty.promise(own, 1);
        assert_eq!((dirty.of_files(), dirty.of_files_soon()), (0, 1));
        assert_eq!([dirty.add(block), dirty.add(block), dirty.add(block_of_own)], [Some(0), None, None]);
        dirty.end_promise(page, 1);
        assert_eq!((dirty.take_new_of_files(), dirty.take_new_of_files(), dirty.of_files_soon()), (true, false, 1));
        dirty.begin_write(block);
        assert!(!dirty.has(block) && dirty.has(block_of_own) && dirty.of_files() == 1);
        dirty.on_write_failed(block);
        assert_eq!((dirty.count_of(2), dirty.of_files()), (1, 1));
        dirty.begin_write(block);
        dirty.on_written(block, 0);
        assert_eq!((dirty.count_of(2), dirty.of_files()), (0, 0));
        assert!(dirty.remove(block_of_own, 0) && !dirty.remove(block_of_own, 0) && dirty.is_empty());
    }
}

//! Flushes of files. A flush covers the blocks that are dirty when it begins; later ones do not delay it.
//!
//! Files are named by their slots in the storage.

use super::Block;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// The files with dirty blocks, and their flushes.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    of_files: BTreeMap<u32, OfFile>,
    /// The files with a flush in progress.
    in_flight: BTreeSet<u32>,
    /// The file of the last turn.
    last: u32,
}

/// The dirty blocks of a file. Blocks being written count, since they are dirty again if the write fails.
#[derive(Debug, Default)]
struct OfFile {
    /// Blocks that were dirty when the last flush began.
    old: usize,
    /// Blocks that have become dirty since.
    new: usize,
    /// Number of blocks being written.
    writing: usize,
    /// Number of flushes since the file was last clean, wrapping. It marks the blocks that become dirty from now on.
    mark: u32,
    /// Blocks are written in order from here on.
    cursor: Block,
}

impl Flushes {
    /// A block of a file has become dirty. Returns its mark.
    pub(super) fn on_dirtied(&mut self, file: u32) -> u32 {
        let of_file = self.of_files.entry(file).or_default();
        of_file.new += 1;
        of_file.mark
    }

    /// The storage has begun to write a dirty block.
    pub(super) fn on_writing(&mut self, file: u32) {
        let of_file = self.of_file(file);
        of_file.writing += 1;
        debug_assert!(of_file.writing <= of_file.old + of_file.new, "only dirty blocks of file {file} are written");
    }

    /// The storage has written the block with this mark.
    pub(super) fn on_written(&mut self, file: u32, mark: u32) {
        self.end_writing(file);
        self.on_cleaned(file, mark);
    }

    /// The storage could not write a block: it stays dirty, and the flush is over.
    pub(super) fn on_failed(&mut self, file: u32) {
        self.end_writing(file);
        self.in_flight.remove(&file);
        debug_assert!(self.of_files.contains_key(&file), "the block that was not written is dirty");
    }

    /// The write of a block has ended.
    fn end_writing(&mut self, file: u32) {
        let of_file = self.of_file(file);
        assert!(of_file.writing > 0, "a block of file {file} was being written");
        of_file.writing -= 1;
    }

    /// A block with this mark is clean, and not being written.
    pub(super) fn on_cleaned(&mut self, file: u32, mark: u32) {
        let of_file = self.of_file(file);
        let count = if mark == of_file.mark { &mut of_file.new } else { &mut of_file.old };
        assert!(*count > 0, "the dirty block of file {file} was counted");
        *count -= 1;
        debug_assert!(of_file.writing <= of_file.old + of_file.new, "only dirty blocks of file {file} are written");
        let (has_old, has_any) = (of_file.old > 0, of_file.old + of_file.new > 0);
        if !has_old {
            self.in_flight.remove(&file);
        }
        if !has_any {
            self.of_files.remove(&file);
        }
    }

    /// Begins a flush of a file.
    pub(super) fn begin(&mut self, file: u32) {
        let Some(of_file) = self.of_files.get_mut(&file) else { return };
        of_file.old += std::mem::take(&mut of_file.new);
        of_file.mark = of_file.mark.wrapping_add(1);
        self.in_flight.insert(file);
        debug_assert!(self.of_files[&file].old > 0, "a file is forgotten with its last dirty block");
    }

    /// Whether the last flush of a file is in progress.
    pub(super) fn is_in_flight(&self, file: u32) -> bool {
        self.in_flight.contains(&file)
    }

    /// Whether blocks of a file are being written.
    pub(super) fn is_writing(&self, file: u32) -> bool {
        self.of_files.get(&file).is_some_and(|of_file| of_file.writing > 0)
    }

    /// Number of files with a flush in progress.
    pub(super) fn count(&self) -> usize {
        self.in_flight.len()
    }

    /// The next file to have blocks written, and its cursor. Flushes in progress take turns.
    pub(super) fn next(&mut self) -> Option<(u32, Block)> {
        let behind = (Bound::Excluded(self.last), Bound::Unbounded);
        self.last = self.in_flight.range(behind).next().or(self.in_flight.first()).copied()?;
        debug_assert!(self.of_files.contains_key(&self.last), "a flush is in progress while blocks are dirty");
        Some((self.last, self.of_files.get(&self.last).map_or(0, |of_file| of_file.cursor)))
    }

    /// Sets the block at which the file's next turn starts.
    pub(super) fn go_on_from(&mut self, file: u32, cursor: Block) {
        self.of_file(file).cursor = cursor;
    }

    fn of_file(&mut self, file: u32) -> &mut OfFile {
        self.of_files.get_mut(&file).expect("the file has dirty blocks")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_ends_when_the_first_dirty_blocks_are_written_despite_later_ones() {
        let mut flushes = Flushes::default();
        flushes.begin(3);
        assert!(!flushes.is_in_flight(3), "nothing is dirty");
        let old = [(); 2].map(|()| flushes.on_dirtied(3));
        flushes.begin(3);
        for mark in old {
            assert!(flushes.is_in_flight(3));
            let new = flushes.on_dirtied(3);
            flushes.on_writing(3);
            flushes.on_writing(3);
            flushes.on_written(3, new);
            assert!(flushes.is_in_flight(3) && flushes.is_writing(3));
            flushes.on_dirtied(3);
            flushes.on_written(3, mark);
        }
        assert!(!flushes.is_in_flight(3) && !flushes.is_writing(3));
        flushes.begin(3);
        assert!(flushes.is_in_flight(3), "the new ones are old now");
    }

    #[test]
    fn a_flush_is_over_when_a_block_cannot_be_written_and_the_next_is_about_it_again() {
        let mut flushes = Flushes::default();
        let mark = flushes.on_dirtied(3);
        flushes.begin(3);
        flushes.on_writing(3);
        flushes.on_failed(3);
        assert!(!flushes.is_in_flight(3) && !flushes.is_writing(3));
        flushes.begin(3);
        assert!(flushes.is_in_flight(3));
        flushes.on_cleaned(3, mark);
        assert!(!flushes.is_in_flight(3) && flushes.of_files.is_empty());
    }

    #[test]
    fn files_take_turns_and_each_goes_on_where_it_was() {
        let mut flushes = Flushes::default();
        for file in [1, 4, 7] {
            flushes.on_dirtied(file);
            flushes.begin(file);
        }
        flushes.go_on_from(4, 99);
        let turns: Vec<_> = (0..4).filter_map(|_| flushes.next()).collect();
        assert_eq!(turns, [(1, 0), (4, 99), (7, 0), (1, 0)]);
        assert_eq!(Flushes::default().next(), None);
    }
}

//! Blocks to be read, and numbers of blocks being read and written.

use std::collections::VecDeque;

/// Maximum number of blocks being written.
const WRITES_MAX: usize = 16;

/// With this many reads at the disk, further ones wait until there are as many: submitting a single read takes longer
/// than the read.
const TOGETHER: usize = 16;

/// The blocks in flight between memory and files, by slot.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    /// Slots waiting for room in the storage to be read.
    to_read: VecDeque<usize>,
    /// Number of slots being read or waiting for it.
    reading: usize,
    writing: usize,
}

impl Transfers {
    /// A slot is to be read.
    pub(super) fn want(&mut self, slot: usize) {
        debug_assert!(!self.to_read.contains(&slot), "slot {slot} is read once");
        self.to_read.push_back(slot);
        self.reading += 1;
        debug_assert!(self.to_read.len() <= self.reading, "slots that wait to be read are counted");
    }

    /// The slots to be read now. [`Transfers::on_reads_begun`] follows.
    pub(super) fn reads_due(&mut self) -> &[usize] {
        debug_assert!(self.to_read.len() <= self.reading, "slots that wait to be read are counted");
        let at_the_disk = self.reading - self.to_read.len();
        let is_due = at_the_disk < TOGETHER || self.to_read.len() >= TOGETHER;
        if is_due { self.to_read.make_contiguous() } else { &[] }
    }

    /// The storage reads the first `count` slots.
    pub(super) fn on_reads_begun(&mut self, count: usize) {
        self.to_read.drain(..count);
    }

    /// Number of slots waiting to be read.
    pub(super) fn to_read(&self) -> usize {
        self.to_read.len()
    }

    /// The last slot waiting to be read.
    pub(super) fn last_to_read(&self) -> Option<usize> {
        self.to_read.back().copied()
    }

    /// Takes the last slot waiting, for a thread to read.
    pub(super) fn take_last_to_read(&mut self) -> Option<usize> {
        self.to_read.pop_back()
    }

    /// A read has ended.
    pub(super) fn on_read(&mut self) {
        assert!(self.reading > self.to_read.len(), "the block was being read");
        self.reading -= 1;
    }

    /// Number of writes that may begin.
    pub(super) fn writes_left(&self) -> usize {
        WRITES_MAX.saturating_sub(self.writing)
    }

    /// The storage writes this many more slots.
    pub(super) fn on_writes_begun(&mut self, count: usize) {
        self.writing += count;
        debug_assert!(self.writing <= WRITES_MAX, "so many blocks are written at a time");
    }

    /// A write has ended.
    pub(super) fn on_written(&mut self) {
        assert!(self.writing > 0, "the block was being written");
        self.writing -= 1;
    }

    /// Numbers of slots being read, or waiting for it, and being written.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.reading, self.writing)
    }

    /// Whether the storage has, or is to have, blocks other than `by_threads`, which threads read.
    pub(super) fn is_busy(&self, by_threads: usize) -> bool {
        self.reading + self.writing > by_threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_wait_for_company_while_the_disk_has_enough() {
        let mut transfers = Transfers::default();
        assert!(transfers.reads_due().is_empty());
        (0..TOGETHER + 1).for_each(|slot| transfers.want(slot));
        assert_eq!(transfers.reads_due().len(), TOGETHER + 1);
        transfers.on_reads_begun(TOGETHER);
        assert!(transfers.reads_due().is_empty(), "a single one waits");
        transfers.on_read();
        assert_eq!(transfers.reads_due(), [TOGETHER], "the disk would idle");
        (0..TOGETHER).for_each(|slot| transfers.want(slot));
        assert_eq!((transfers.to_read(), transfers.reads_due().len()), (TOGETHER + 1, TOGETHER + 1));
    }

    #[test]
    fn a_thread_takes_the_read_that_it_has_added() {
        let mut transfers = Transfers::default();
        [3, 5].into_iter().for_each(|slot| transfers.want(slot));
        assert_eq!((transfers.last_to_read(), transfers.take_last_to_read()), (Some(5), Some(5)));
        assert_eq!(transfers.reads_due(), [3]);
        assert!(transfers.is_busy(1) && !transfers.is_busy(2));
    }

    #[test]
    fn writes_are_bounded() {
        let mut transfers = Transfers::default();
        transfers.on_writes_begun(WRITES_MAX);
        assert!(transfers.writes_left() == 0 && transfers.is_busy(0));
        transfers.on_written();
        assert_eq!(transfers.writes_left(), 1);
    }
}

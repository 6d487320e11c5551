//! Bytes of a file possibly not on the disk: written since the last successful sync.
//!
//! When a sync fails, Linux marks the pages of its cache clean, even the unwritten ones, and the next sync does not
//! report them. A disk that fails to empty its own cache may do the same. So the bytes of a failed sync are doubtful
//! until they are written again and then synced. Reading them back proves nothing: they may come from a cache that
//! loses them, or be the old bytes. So a block that was read back counts as written again only if a program has
//! supplied all of its bytes anew.

use super::Ranges;
use std::ops::Range;

/// Bytes a sync failed to bring to the disk, not written again since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The error number of the failure.
    pub errno: i32,
    /// In order; they do not touch.
    pub ranges: Vec<Range<u64>>,
}

/// The unsynced bytes of one file.
#[derive(Debug, Default)]
pub(super) struct Unsynced {
    /// Written since the last sync began.
    written: Ranges,
    /// The bytes of the last sync, until all ranks know its outcome.
    syncing: Ranges,
    doubtful: Ranges,
    errno: Option<i32>,
    /// Read back since a sync failed, without bytes written again before.
    read_back: Ranges,
    /// Written since a sync failed, without bytes read back before: before the last sync began, and after.
    again: [Ranges; 2],
}

impl Unsynced {
    pub(super) fn note_written(&mut self, range: Range<u64>) {
        self.written.add(range.clone());
        if self.errno.is_some() {
            without(range, &self.read_back).iter().for_each(|range| self.again[1].add_if_room(range));
        }
    }

    pub(super) fn note_read(&mut self, range: Range<u64>) {
        if self.errno.is_some() {
            let read = without(range, &self.again[0]);
            let read = read.iter().flat_map(|range| without(range, &self.again[1]).iter().collect::<Vec<_>>());
            read.for_each(|range| self.read_back.add(range));
        }
    }

    pub(super) fn begin_sync(&mut self) {
        let again = std::mem::take(&mut self.again[1]);
        again.iter().for_each(|range| self.again[0].add_if_room(range));
        let written = std::mem::take(&mut self.written);
        written.iter().for_each(|range| self.syncing.add(range));
    }

    /// A sync has failed, here or on another rank. It may also have marked clean the bytes written meanwhile.
    pub(super) fn on_failed(&mut self, errno: i32) {
        for ranges in [std::mem::take(&mut self.syncing), std::mem::take(&mut self.written)] {
            ranges.iter().for_each(|range| self.doubtful.add(range));
        }
        self.again = Default::default();
        self.errno = Some(errno);
    }

    /// A sync has succeeded on all ranks, of a file of `size_bytes`. The bytes in `again` were written again before it
    /// began.
    pub(super) fn on_succeeded(&mut self, again: &[Range<u64>], size_bytes: u64) {
        self.syncing = Ranges::default();
        let in_storage = std::mem::take(&mut self.again[0]);
        again.iter().cloned().chain(in_storage.iter()).for_each(|range| self.doubtful.remove(range));
        // Whole blocks are written, even at the end of the file.
        self.doubtful.remove(size_bytes..u64::MAX);
        if self.doubtful.is_empty() {
            (self.doubtful, self.read_back, self.errno) = (Ranges::default(), Ranges::default(), None);
        }
    }

    /// The file was truncated.
    pub(super) fn cut(&mut self, size_bytes: u64) {
        [&mut self.written, &mut self.syncing, &mut self.doubtful]
            .into_iter()
            .for_each(|ranges| ranges.remove(size_bytes..u64::MAX));
    }

    /// The doubtful bytes, if a sync has failed and no later sync has settled them.
    pub(super) fn doubt(&self) -> Option<Doubt> {
        self.errno.map(|errno| Doubt { errno, ranges: self.doubtful.iter().collect() })
    }
}

fn without(range: Range<u64>, others: &Ranges) -> Ranges {
    let mut left = Ranges::default();
    left.add(range.clone());
    others.within(range).for_each(|other| left.remove(other));
    left
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of ranges, some of one")]
mod tests {
    use super::*;

    fn doubtful(unsynced: &Unsynced) -> Option<Vec<Range<u64>>> {
        unsynced.doubt().map(|doubt| doubt.ranges)
    }

    #[test]
    fn a_failed_sync_is_remembered_until_its_bytes_are_written_again() {
        let mut unsynced = Unsynced::default();
        unsynced.note_written(0..4096);
        unsynced.begin_sync();
        unsynced.on_succeeded(&[], 1 << 20);
        unsynced.note_written(8192..16384);
        unsynced.begin_sync();
        unsynced.note_written(40960..45056);
        unsynced.on_failed(5);
        let both = vec![8192..16384, 40960..45056];
        assert_eq!(unsynced.doubt(), Some(Doubt { errno: 5, ranges: both.clone() }));
        unsynced.begin_sync();
        unsynced.on_succeeded(&[], 1 << 20);
        assert_eq!(doubtful(&unsynced), Some(both), "nobody has written them again");
        unsynced.note_written(8192..12288);
        unsynced.begin_sync();
        unsynced.note_written(12288..16384);
        unsynced.on_succeeded(&[], 41000);
        assert_eq!(doubtful(&unsynced), Some(vec![12288..16384, 40960..41000]), "a part was written too late");
        unsynced.cut(13000);
        unsynced.begin_sync();
        unsynced.on_succeeded(&[], 13000);
        assert_eq!(doubtful(&unsynced), None);
    }

    #[test]
    fn what_was_read_back_is_to_be_given_anew() {
        let mut unsynced = Unsynced::default();
        unsynced.note_written(0..16384);
        unsynced.begin_sync();
        unsynced.on_failed(5);
        unsynced.note_written(8192..12288);
        unsynced.note_read(0..12288);
        unsynced.note_written(0..16384);
        unsynced.begin_sync();
        unsynced.on_succeeded(&[], 1 << 20);
        assert_eq!(doubtful(&unsynced), Some(vec![0..8192]), "the rest was written from memory");
        unsynced.begin_sync();
        unsynced.on_succeeded(&[0..5000, 5000..8192], 1 << 20);
        assert_eq!(doubtful(&unsynced), None);
    }

    #[test]
    fn a_sync_that_fails_with_nothing_written_is_over_with_the_next() {
        let mut unsynced = Unsynced::default();
        unsynced.begin_sync();
        unsynced.on_failed(28);
        assert_eq!(doubtful(&unsynced), Some(Vec::new()));
        unsynced.begin_sync();
        unsynced.on_succeeded(&[], 0);
        assert_eq!(doubtful(&unsynced), None);
    }
}

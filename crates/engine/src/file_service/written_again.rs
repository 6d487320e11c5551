//! Ranges of a file that a rank has written again since a sync failed.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use vgasnet_storage::Ranges;
use vgasnet_sys::Signalproof;

/// The ranges of one file on one rank. While no sync has failed, a write costs one load of a flag in shared cache
/// state.
#[derive(Debug, Default)]
pub struct WrittenAgain {
    is_doubted: AtomicBool,
    sets: Mutex<Sets>,
}

#[derive(Debug, Default)]
struct Sets {
    ended: Ranges,
    /// Ranges of operations without completion notice.
    begun: Ranges,
    /// The file's error count before the first of them.
    errors: u64,
}

impl WrittenAgain {
    /// Whether a sync has failed and its data have not all been written again. All ranks of a team agree.
    pub fn is_doubted(&self) -> bool {
        self.is_doubted.load(Ordering::Relaxed)
    }

    /// A sync has failed: all data written before have to be written again.
    pub fn doubt(&self) {
        *Signalproof::lock(&self.sets) = Sets::default();
        self.is_doubted.store(true, Ordering::Relaxed);
    }

    /// All data have been written again and are on the disk.
    pub fn trust(&self) {
        self.is_doubted.store(false, Ordering::Relaxed);
        *Signalproof::lock(&self.sets) = Sets::default();
    }

    /// Notes a completed write.
    pub fn note(&self, range: Range<u64>) {
        if self.is_doubted() {
            Signalproof::lock(&self.sets).ended.add_if_room(range);
        }
    }

    /// Notes the start of a write without completion notice. `errors` is the file's error count at this time.
    pub fn note_begun(&self, range: Range<u64>, errors: impl FnOnce() -> u64) {
        if self.is_doubted() {
            let mut sets = Signalproof::lock(&self.sets);
            if sets.begun.is_empty() {
                sets.errors = errors();
            }
            sets.begun.add_if_room(range);
        }
    }

    /// Takes the ranges written again. Operations without completion notice count if none is in progress and the file's
    /// error count has not grown.
    pub fn take(&self, is_any_under_way: bool, errors: u64) -> Vec<Range<u64>> {
        let mut sets = Signalproof::lock(&self.sets);
        let mut again: Vec<Range<u64>> = std::mem::take(&mut sets.ended).iter().collect();
        if !is_any_under_way {
            let begun = std::mem::take(&mut sets.begun);
            again.extend(begun.iter().filter(|_| sets.errors == errors));
        }
        again
    }

    /// Returns ranges that were not synced.
    pub fn give_back(&self, again: Vec<Range<u64>>) {
        again.into_iter().for_each(|range| self.note(range));
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of ranges, some of one")]
mod tests {
    use super::*;

    #[test]
    fn only_ranges_ended_without_an_error_count() {
        let again = WrittenAgain::default();
        again.note(0..10);
        assert!(again.take(false, 0).is_empty(), "no sync has failed");
        again.doubt();
        again.note(0..10);
        again.note_begun(20..30, || 1);
        assert_eq!(again.take(true, 1), [0..10]);
        assert_eq!(again.take(false, 1), [20..30]);
        again.note_begun(20..30, || 1);
        assert!(again.take(false, 2).is_empty(), "one of them may have failed");
        again.note(5..6);
        again.doubt();
        assert!(again.take(false, 2).is_empty(), "it is to be written once more");
        again.give_back(vec![7..9, 9..12]);
        assert_eq!(again.take(false, 2), [7..12]);
        again.trust();
        assert!(!again.is_doubted());
    }
}

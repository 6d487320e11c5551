//! What of a file a rank has written again since a sync has failed.

use crate::storage::Ranges;
use crate::sys::Signalproof;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// That of one file on one rank. While no sync has failed, a write costs a look at a flag that nobody changes.
#[derive(Debug, Default)]
pub struct WrittenAgain {
    is_doubted: AtomicBool,
    sets: Mutex<Sets>,
}

#[derive(Debug, Default)]
struct Sets {
    ended: Ranges,
    /// Of operations whose end nobody notes.
    begun: Ranges,
    /// How many errors the file had before the first of those.
    errors: u64,
}

impl WrittenAgain {
    /// Whether a sync has failed, and what it was about was not all written again. All ranks of a team know the same.
    pub fn is_doubted(&self) -> bool {
        self.is_doubted.load(Ordering::Relaxed)
    }

    /// A sync has failed: all that was written before is to be written again.
    pub fn doubt(&self) {
        *Signalproof::lock(&self.sets) = Sets::default();
        self.is_doubted.store(true, Ordering::Relaxed);
    }

    /// All was written again, and is on the disk.
    pub fn trust(&self) {
        self.is_doubted.store(false, Ordering::Relaxed);
        *Signalproof::lock(&self.sets) = Sets::default();
    }

    /// A write has ended.
    pub fn note(&self, range: Range<u64>) {
        if self.is_doubted() {
            Signalproof::lock(&self.sets).ended.add_if_room(range);
        }
    }

    /// A write has begun whose end nobody notes. The file had so many errors by then.
    pub fn note_begun(&self, range: Range<u64>, errors: impl FnOnce() -> u64) {
        if self.is_doubted() {
            let mut sets = Signalproof::lock(&self.sets);
            if sets.begun.is_empty() {
                sets.errors = errors();
            }
            sets.begun.add_if_room(range);
        }
    }

    /// Takes what was written again by now. Operations of which nobody notes the end count if none of them is under way, and the file has no
    /// more errors than before.
    pub fn take(&self, is_any_under_way: bool, errors: u64) -> Vec<Range<u64>> {
        let mut sets = Signalproof::lock(&self.sets);
        let mut again: Vec<Range<u64>> = std::mem::take(&mut sets.ended).iter().collect();
        if !is_any_under_way {
            let begun = std::mem::take(&mut sets.begun);
            again.extend(begun.iter().filter(|_| sets.errors == errors));
        }
        again
    }

    /// What was taken is not synced yet.
    pub fn give_back(&self, again: Vec<Range<u64>>) {
        again.into_iter().for_each(|range| self.note(range));
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of ranges, some of one")]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_ended_without_an_error_counts() {
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

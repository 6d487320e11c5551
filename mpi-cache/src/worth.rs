//! Whether it pays to ask the cache about the gets of a window, in modes in which that costs something though nothing hits: in mode told
//! a round trip an interval, in mode checked the notes of what is under way.

use crate::settings::Mode;
use std::sync::atomic::{AtomicU32, Ordering};

/// Gets after which it is decided.
const GETS: u32 = 4096;

/// Gets that go to MPI as they are where asking has not paid.
const RESTING_GETS: u32 = 16 * GETS;

/// In mode checked, sharing transfers pays where at least one get in so many does.
const SHARED_PART: u32 = 50;

/// What has been asked of a window lately, and what came of it. Threads may lose each other's counts.
#[derive(Debug, Default)]
pub struct Worth {
    asked: AtomicU32,
    /// Gets that needed nothing of MPI.
    paid: AtomicU32,
    /// Words that were read for them.
    words: AtomicU32,
    /// Gets that are not asked about yet.
    resting: AtomicU32,
}

impl Worth {
    /// A get is about to be asked about. Returns whether it should be.
    #[inline]
    pub fn asks(&self, mode: Mode) -> bool {
        let resting = self.resting.load(Ordering::Relaxed);
        if resting > 0 {
            self.resting.store(resting - 1, Ordering::Relaxed);
            return false;
        }
        let asked = self.asked.load(Ordering::Relaxed) + 1;
        self.asked.store(asked, Ordering::Relaxed);
        if asked >= GETS {
            self.decide(mode);
        }
        true
    }

    #[cold]
    fn decide(&self, mode: Mode) {
        self.asked.store(0, Ordering::Relaxed);
        let paid = self.paid.swap(0, Ordering::Relaxed);
        let least = if mode == Mode::Told { self.words.swap(0, Ordering::Relaxed) } else { GETS / SHARED_PART };
        if paid < least {
            self.resting.store(RESTING_GETS, Ordering::Relaxed);
        }
    }

    /// A get hit, or shared a transfer.
    #[inline]
    pub fn on_paid(&self) {
        self.paid.store(self.paid.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// A word was read.
    pub fn on_word(&self) {
        self.words.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gets of `rounds` intervals, in each of which so many are asked about and so many hit. Returns how many were asked about.
    fn run(worth: &Worth, mode: Mode, rounds: u32, gets: u32, hits: u32) -> u32 {
        let mut asked = 0;
        for _ in 0..rounds {
            let mut has_word = false;
            for get in 0..gets {
                if !worth.asks(mode) {
                    continue;
                }
                asked += 1;
                if !std::mem::replace(&mut has_word, true) {
                    worth.on_word();
                }
                if get < hits {
                    worth.on_paid();
                }
            }
        }
        asked
    }

    #[test]
    fn a_window_rests_where_words_cost_more_than_hits_save() {
        let worth = Worth::default();
        assert_eq!(run(&worth, Mode::Told, 8 * GETS, 1, 0), GETS);
        assert_eq!(run(&worth, Mode::Told, 9 * GETS, 1, 0), 0);
        // It has rested enough, and now it pays.
        let asked = run(&worth, Mode::Told, 8 * GETS, 4, 2);
        assert_eq!(asked, 32 * GETS);
    }

    #[test]
    fn one_hit_a_word_is_enough() {
        let worth = Worth::default();
        assert_eq!(run(&worth, Mode::Told, 8 * GETS, 1, 1), 8 * GETS);
    }

    #[test]
    fn in_mode_checked_a_few_that_share_are_enough() {
        let worth = Worth::default();
        assert_eq!(run(&worth, Mode::Checked, GETS, 16, 1), 16 * GETS);
        assert_eq!(run(&worth, Mode::Checked, 4 * GETS, 1, 0), GETS);
    }
}

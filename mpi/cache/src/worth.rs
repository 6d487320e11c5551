//! Whether asking the cache about the gets of a window pays, in modes with a cost even without hits: a round trip per
//! interval in mode told, the notes of gets in flight in mode checked.

use crate::settings::Mode;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of gets before a decision.
const GETS: u32 = 4096;

/// Number of gets passed on to MPI unchanged after asking has not paid.
const SUSPENDED_GETS: u32 = 16 * GETS;

/// In mode checked, asking pays if at least one in this many gets shares a transfer.
const SHARED_PART: u32 = 50;

/// Recent gets of a window and the benefit of asking about them. Concurrent counts may get lost.
#[derive(Debug, Default)]
pub struct Worth {
    asked: AtomicU32,
    /// Gets that needed no call of MPI.
    paid: AtomicU32,
    /// Words read for them.
    words: AtomicU32,
    /// Gets still to be passed on without asking.
    suspended: AtomicU32,
}

impl Worth {
    /// A get is about to begin. Returns whether the cache should be asked about it.
    #[inline]
    pub fn asks(&self, mode: Mode) -> bool {
        let suspended = self.suspended.load(Ordering::Relaxed);
        if suspended > 0 {
            self.suspended.store(suspended - 1, Ordering::Relaxed);
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
            self.suspended.store(SUSPENDED_GETS, Ordering::Relaxed);
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

    /// Gets of `rounds` intervals, with `gets` and `hits` in each. Returns the number of gets asked about.
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
    fn asking_is_suspended_where_words_cost_more_than_hits_save() {
        let worth = Worth::default();
        assert_eq!(run(&worth, Mode::Told, 8 * GETS, 1, 0), GETS);
        assert_eq!(run(&worth, Mode::Told, 9 * GETS, 1, 0), 0);
        // The suspension is over, and asking pays now.
        let asked = run(&worth, Mode::Told, 8 * GETS, 4, 2);
        assert_eq!(asked, 32 * GETS);
    }

    #[test]
    fn one_hit_a_word_is_enough() {
        let worth = Worth::default();
        assert_eq!(run(&worth, Mode::Told, 8 * GETS, 1, 1), 8 * GETS);
    }

    #[test]
    fn in_mode_checked_some_shared_transfers_are_enough() {
        let worth = Worth::default();
        assert_eq!(run(&worth, Mode::Checked, GETS, 16, 1), 16 * GETS);
        assert_eq!(run(&worth, Mode::Checked, 4 * GETS, 1, 0), GETS);
    }
}

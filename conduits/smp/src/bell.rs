//! The doorbell word: the sleeper at a rank to wake for an arrival.
//!
//! A *poster* makes something visible (a committed record in the inbox, a completion, a flag for `stay_awake`) and then
//! calls [`Bell::take_sleeper`]. A *sleeper* calls [`Bell::begin_sleep`], looks for posts, and only then blocks on its
//! eventfd. A caller *handing over* calls [`Bell::hand_over`], then looks for posts.
//!
//! # Why no wake-up is lost
//! Poster: write the post; `fence(SeqCst)`; read the word. Sleeper, and caller handing over: write the word;
//! `fence(SeqCst)`; read the post. The two fences are ordered one way or the other. If the poster's is first, the sleeper
//! sees the post and does not block. If the sleeper's is first, the poster reads the sleeper's word or a newer one:
//! - It finds the sleeper's bit: it clears the bit and writes the sleeper's eventfd. The eventfd keeps its count, so the
//!   sleeper may block before or after the write. Only the thread clearing a bit writes the eventfd.
//! - It finds [`DRIVING`]: a caller is awake. The bit is cleared only by [`Bell::hand_over`] or [`Bell::begin_sleep`], and
//!   both are followed by a look at the posts, so the caller sees the post then at the latest. Therefore a helper finding
//!   `DRIVING` in `begin_sleep` may leave arrivals alone.
//! - It finds nothing: the sleeper's bit was cleared before, so the sleeper has been rung and wakes; it looks for all
//!   posts again before its next sleep.
//!
//! A poster ringing a caller sets `DRIVING` in the same step: a rung caller counts as awake, so arrivals between the ring
//! and its first instruction do not wake the helper too.
//!
//! An eventfd may be written after its sleeper woke for another reason. Then the next sleep returns early; nothing is lost.

use vgasnet_conduit::Sleeper;

use crate::sync::{AtomicU32, Ordering, fence};

/// A client thread drives: wake nobody.
const DRIVING: u32 = 1;
/// The caller sleeps, or is about to.
const CALLER: u32 = 2;
/// The helper sleeps, or is about to.
const HELPER: u32 = 4;

/// The doorbell word of one rank, in shared memory. Initially zero: nobody sleeps, nobody drives.
#[repr(C, align(64))]
pub(crate) struct Bell {
    bits: AtomicU32,
}

impl Bell {
    #[cfg(test)]
    pub(crate) fn new() -> Self {
        Bell { bits: AtomicU32::new(0) }
    }

    /// For a poster, after its post: the sleeper to ring, if any. The poster must then write its eventfd.
    pub(crate) fn take_sleeper(&self) -> Option<Sleeper> {
        fence(Ordering::SeqCst);
        let mut bits = self.bits.load(Ordering::Relaxed);
        loop {
            let (sleeper, rung) = if bits & DRIVING != 0 {
                return None;
            } else if bits & CALLER != 0 {
                (Sleeper::Caller, (bits & !CALLER) | DRIVING)
            } else if bits & HELPER != 0 {
                (Sleeper::Helper, bits & !HELPER)
            } else {
                return None;
            };
            match self.bits.compare_exchange_weak(bits, rung, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Some(sleeper),
                Err(now) => bits = now,
            }
        }
    }

    /// For a post that can wait until a client thread calls in: as [`Bell::take_sleeper`], but the helper only if
    /// `holds_up` reports possible posts behind this one, hidden from the sleepers.
    pub(crate) fn take_caller(&self, holds_up: impl FnOnce() -> bool) -> Option<Sleeper> {
        fence(Ordering::SeqCst);
        let is_asleep = self.bits.load(Ordering::Relaxed) & CALLER != 0;
        if is_asleep || holds_up() { self.take_sleeper() } else { None }
    }

    /// For a post meant for the helper alone: whether the helper sleeps, and its eventfd must be written.
    pub(crate) fn take_helper(&self) -> bool {
        fence(Ordering::SeqCst);
        self.bits.fetch_and(!HELPER, Ordering::AcqRel) & HELPER != 0
    }

    /// A caller drives from now on.
    pub(crate) fn begin_driving(&self) {
        self.bits.fetch_or(DRIVING, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    /// The caller no longer drives; it must look for posts next.
    pub(crate) fn hand_over(&self) {
        self.bits.fetch_and(!DRIVING, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    /// `sleeper` is about to sleep; it must look for posts next. Returns whether this sleeper must react to arrivals: a
    /// helper leaves them to a driving caller.
    pub(crate) fn begin_sleep(&self, sleeper: Sleeper) -> bool {
        let arrivals_matter = match sleeper {
            Sleeper::Caller => {
                self.update(|bits| (bits | CALLER) & !DRIVING);
                true
            }
            Sleeper::Helper => self.bits.fetch_or(HELPER, Ordering::AcqRel) & DRIVING == 0,
        };
        fence(Ordering::SeqCst);
        arrivals_matter
    }

    /// `sleeper` is awake again. A caller drives from here on, as before the sleep.
    pub(crate) fn end_sleep(&self, sleeper: Sleeper) {
        match sleeper {
            Sleeper::Caller => self.update(|bits| (bits & !CALLER) | DRIVING),
            Sleeper::Helper => {
                self.bits.fetch_and(!HELPER, Ordering::AcqRel);
            }
        }
    }

    fn update(&self, change: impl Fn(u32) -> u32) {
        let mut bits = self.bits.load(Ordering::Relaxed);
        while let Err(now) = self.bits.compare_exchange_weak(bits, change(bits), Ordering::AcqRel, Ordering::Relaxed) {
            bits = now;
        }
    }
}

#[cfg(test)]
#[path = "bell_tests.rs"]
mod tests;

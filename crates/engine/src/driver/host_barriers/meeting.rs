//! The arrival counter of ranks that share memory.

#[cfg(all(loom, test))]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(all(loom, test)))]
use std::sync::atomic::{AtomicU64, Ordering};

/// A meeting number that is never reached.
pub(super) const NONE: u64 = u64::MAX;

/// A word in a cache line of its own.
#[repr(C, align(64))]
pub(super) struct Line(pub AtomicU64);

/// The ranks' shared words, initially zero.
#[repr(C)]
pub(super) struct Meeting {
    /// Arrivals so far, at all meetings.
    arrivals: Line,
    /// Number of the last completed meeting, from 1.
    over: Line,
}

impl Meeting {
    /// Arrives at the next meeting of `ranks` ranks. Returns its number and whether this rank is the last. The last
    /// rank calls `before_over` and completes the meeting. Each rank must have seen the previous meeting complete.
    pub(super) fn come(&self, ranks: u64, before_over: impl FnOnce()) -> (u64, bool) {
        // The last rank sees each rank's earlier writes, and so do all ranks that it releases.
        let before = self.arrivals.0.fetch_add(1, Ordering::AcqRel);
        let number = before / ranks + 1;
        debug_assert!(self.over.0.load(Ordering::Relaxed) + 1 >= number, "each rank has seen the meeting before end");
        let is_last = before + 1 == number * ranks;
        if is_last {
            before_over();
            self.over.0.store(number, Ordering::Release);
        }
        (number, is_last)
    }

    /// Whether the meeting with this number is complete.
    #[inline]
    pub(super) fn is_over(&self, number: u64) -> bool {
        self.over.0.load(Ordering::Acquire) >= number
    }
}

#[cfg(test)]
impl Meeting {
    pub(super) fn new() -> Meeting {
        Meeting { arrivals: Line(AtomicU64::new(0)), over: Line(AtomicU64::new(0)) }
    }

    pub(super) fn arrivals(&self) -> u64 {
        self.arrivals.0.load(Ordering::Relaxed)
    }
}

//! Where ranks that share memory count themselves.

#[cfg(all(loom, test))]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(all(loom, test)))]
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of a meeting that is never over.
pub(super) const NONE: u64 = u64::MAX;

/// A word in a cache line of its own.
#[repr(C, align(64))]
pub(super) struct Line(pub AtomicU64);

/// What the ranks share: zero at first.
#[repr(C)]
pub(super) struct Meeting {
    /// How many have come so far, to all meetings.
    arrivals: Line,
    /// The number of the last meeting that is over, from 1.
    over: Line,
}

impl Meeting {
    /// Comes to the next meeting of so many ranks. Returns its number, and whether all others have come. Who is the last calls
    /// `before_over`, and then the meeting is over. A rank that comes has seen the meeting before it over.
    pub(super) fn come(&self, ranks: u64, before_over: impl FnOnce()) -> (u64, bool) {
        // What each rank has written before it comes is seen by the last one, and by all whom that lets go.
        let before = self.arrivals.0.fetch_add(1, Ordering::AcqRel);
        let number = before / ranks + 1;
        let is_last = before + 1 == number * ranks;
        if is_last {
            before_over();
            self.over.0.store(number, Ordering::Release);
        }
        (number, is_last)
    }

    /// Whether the meeting with this number is over.
    #[inline]
    pub(super) fn is_over(&self, number: u64) -> bool {
        self.over.0.load(Ordering::Acquire) >= number
    }
}

#[cfg(test)]
impl Meeting {
    /// In memory of a test.
    pub(super) fn new() -> Meeting {
        Meeting { arrivals: Line(AtomicU64::new(0)), over: Line(AtomicU64::new(0)) }
    }

    pub(super) fn arrivals(&self) -> u64 {
        self.arrivals.0.load(Ordering::Relaxed)
    }
}

//! Whether a page cannot come because MPI has a lock that the thread which gets pages waits for.
//!
//! A thread that faults within MPI has the lock, and waits for the page; the helper, which gets the page, waits for the lock.
//! Nobody can tell whether a fault is within MPI. But the helper's calls of MPI return at once: one that has been under way
//! for seconds, while a thread waits for a page, waits for the lock.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How often a thread that waits for a page looks. A process that is stopped does not look.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks that find the same call, until that is taken to be stuck.
const LOOKS: u32 = 5;

/// A thread has said so. Others that wait may be outside of MPI.
pub(super) static IS_SAID: AtomicBool = AtomicBool::new(false);

/// The looks of one thread.
#[derive(Debug, Default)]
pub(super) struct Watch {
    call: Option<u64>,
    looks: u32,
}

impl Watch {
    /// Notes the call that is under way now. Returns whether it is stuck.
    pub(super) fn is_stuck(&mut self, call: Option<u64>) -> bool {
        if call.is_none() || call != self.call {
            *self = Watch { call, looks: 0 };
        }
        self.looks += 1;
        call.is_some() && self.looks > LOOKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_stuck_that_is_seen_again_and_again() {
        let mut watch = Watch::default();
        assert!((0..20).all(|_| !watch.is_stuck(None)), "nobody calls");
        assert!((0..20).all(|at| !watch.is_stuck(Some(at))), "calls come and go");
        assert!((0..LOOKS).all(|_| !watch.is_stuck(Some(77))) && watch.is_stuck(Some(77)));
        assert!(!watch.is_stuck(Some(79)) && !watch.is_stuck(None));
    }
}

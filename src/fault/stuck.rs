//! Detects a page that cannot arrive because its fetching thread waits for a lock of MPI.
//!
//! A thread faulting within MPI holds the lock and waits for the page; the helper, which fetches the page, waits for
//! the lock. Whether a fault is within MPI cannot be told. But the helper's calls of MPI return at once: a call in
//! progress for seconds, while a thread waits for a page, waits for the lock.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Interval between checks by a waiting thread. A stopped process does not check.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A call seen in this many checks counts as stuck.
const LOOKS: u32 = 5;

/// A thread has reported it. Other waiting threads may be outside of MPI.
pub(super) static IS_SAID: AtomicBool = AtomicBool::new(false);

/// The checks of one thread.
#[derive(Debug, Default)]
pub(super) struct Watch {
    call: Option<u64>,
    looks: u32,
}

impl Watch {
    /// Notes the call in progress. Returns whether it is stuck.
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
    fn a_call_seen_again_and_again_is_stuck() {
        let mut watch = Watch::default();
        assert!((0..20).all(|_| !watch.is_stuck(None)), "nobody calls");
        assert!((0..20).all(|at| !watch.is_stuck(Some(at))), "calls come and go");
        assert!((0..LOOKS).all(|_| !watch.is_stuck(Some(77))) && watch.is_stuck(Some(77)));
        assert!(!watch.is_stuck(Some(79)) && !watch.is_stuck(None));
    }
}

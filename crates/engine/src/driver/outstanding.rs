//! The engine's outstanding work, published for threads without its lock: some thread has to drive again.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// First sleep while messages wait for room in the conduit, which does not signal when it has room.
pub(super) const HELD_UP_SLEEP: Duration = Duration::from_millis(1);

/// Maximum doublings of this sleep while there is no room: many ranks may wait for one.
const HELD_UP_DOUBLINGS: u32 = 4;

/// Work that a drive has left in the engine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Left {
    /// Messages or transfers wait for room in the conduit.
    pub is_held_up: bool,
    /// Storage operations are in flight.
    pub is_stored: bool,
    /// The storage's doorbell will ring at a set time.
    pub rings_later: bool,
}

/// The outstanding work.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    /// Storage operations are in flight, or messages or transfers wait for room: some thread has to drive again.
    unfinished: AtomicBool,
    /// The storage's doorbell will ring at a set time, and some thread has to watch it.
    rings_later: AtomicBool,
    /// Consecutive attempts without room for messages or transfers.
    held_up: AtomicU32,
}

impl Outstanding {
    /// Publishes the work left. Called under the engine's lock. `worked`: the thread has done anything since its last
    /// call.
    pub(super) fn publish(&self, left: Left, worked: bool) {
        self.note_held_up(left.is_held_up, worked);
        // A store of an equal value would take the cache line from the threads that read it.
        store_new(&self.unfinished, left.is_held_up || left.is_stored);
        store_new(&self.rings_later, left.rings_later);
    }

    /// A thread has left a message without driving.
    pub(super) fn note_unfinished(&self) {
        self.unfinished.store(true, Ordering::SeqCst);
    }

    /// Whether some thread has to drive again soon.
    pub(super) fn is_unfinished(&self) -> bool {
        self.unfinished.load(Ordering::SeqCst)
    }

    /// Whether some thread has to watch for a timed ring of the storage's doorbell.
    pub(super) fn rings_later(&self) -> bool {
        self.rings_later.load(Ordering::SeqCst)
    }

    /// Whether messages or transfers wait for room.
    pub(super) fn is_held_up(&self) -> bool {
        self.held_up.load(Ordering::SeqCst) > 0
    }

    fn note_held_up(&self, is_held_up: bool, worked: bool) {
        let before = if worked { 0 } else { self.held_up.load(Ordering::SeqCst) };
        let times = if is_held_up { (before + 1).min(1 + HELD_UP_DOUBLINGS) } else { 0 };
        if self.held_up.load(Ordering::Relaxed) != times {
            self.held_up.store(times, Ordering::SeqCst);
        }
    }

    /// Longest sleep allowed while messages wait for room.
    pub(super) fn sleep_limit(&self) -> Option<Duration> {
        let times = self.held_up.load(Ordering::SeqCst);
        debug_assert!(times <= 1 + HELD_UP_DOUBLINGS, "sleeps are limited");
        times.checked_sub(1).map(|doublings| HELD_UP_SLEEP * (1 << doublings))
    }
}

fn store_new(flag: &AtomicBool, value: bool) {
    if flag.load(Ordering::Relaxed) != value {
        flag.store(value, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_get_longer_while_there_is_no_room() {
        let outstanding = Outstanding::default();
        assert_eq!(outstanding.sleep_limit(), None);
        let held_up = Left { is_held_up: true, ..Left::default() };
        let limits = [(); 7].map(|()| {
            outstanding.publish(held_up, false);
            outstanding.sleep_limit().map(|limit| limit.as_millis())
        });
        assert_eq!(limits, [1, 2, 4, 8, 16, 16, 16].map(Some));
        assert!(outstanding.is_held_up() && outstanding.is_unfinished());
        outstanding.publish(held_up, true);
        assert_eq!(outstanding.sleep_limit(), Some(HELD_UP_SLEEP), "there was room for something");
        outstanding.publish(Left::default(), false);
        assert!(!outstanding.is_held_up() && !outstanding.is_unfinished());
    }

    #[test]
    fn a_timed_ring_needs_no_drive_before() {
        let outstanding = Outstanding::default();
        outstanding.publish(Left { rings_later: true, ..Left::default() }, false);
        assert!(outstanding.rings_later() && !outstanding.is_unfinished());
        outstanding.note_unfinished();
        assert!(outstanding.is_unfinished() && !outstanding.is_held_up());
    }
}

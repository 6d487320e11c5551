//! Spinning of waiting threads before they sleep.

use super::sleepers::Sleepers;
use super::wait_mode::WaitMode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use vgasnet_conduit::give_way;

/// The time that threads spin.
#[derive(Debug, Default)]
pub(super) struct Spinning {
    us: AtomicU32,
}

impl Spinning {
    /// Sets the time in microseconds, unless the client sets a wait mode.
    pub(super) fn set(&self, us: u32) {
        self.us.store(us, Ordering::Relaxed);
    }

    /// The time that a driver spins before it sleeps in the present wait mode.
    pub(super) fn limit(&self) -> Duration {
        match WaitMode::current() {
            WaitMode::Spin => Duration::MAX,
            WaitMode::Block => Duration::ZERO,
            WaitMode::SpinBlock => Duration::from_micros(self.us.load(Ordering::Relaxed).into()),
        }
    }

    /// Spinning of a thread in a call.
    pub(super) fn in_call(&self) -> Spin {
        /// For a rank without a processor of its own: letting the others run is faster than a sleep and its wake-up.
        const TURNS: u32 = 4;
        let limit = self.limit();
        let is_crowded = limit.is_zero() && WaitMode::current() == WaitMode::SpinBlock;
        Spin { limit, limit_for_others: limit, yields: true, turns: if is_crowded { TURNS } else { 0 } }
    }

    /// Spinning of a thread in a SIGSEGV handler while it waits for a page. It does not yield: on a busy machine this
    /// costs a time slice of milliseconds, whereas a sleeping thread runs as soon as it is woken. Another rank that has
    /// the page may need this processor; the disk does not.
    pub(super) fn in_fault(&self) -> Spin {
        const SPIN_FOR_OTHERS_MAX: Duration = Duration::from_micros(20);
        let limit = self.in_call().limit;
        let limit_for_others = match WaitMode::current() {
            WaitMode::Spin => limit,
            WaitMode::Block | WaitMode::SpinBlock => limit.min(SPIN_FOR_OTHERS_MAX),
        };
        Spin { limit, limit_for_others, yields: false, turns: 0 }
    }
}

/// As [`give_way`]. A thread that never sleeps always yields: the awaited rank may need this processor.
pub(super) fn gives_way(may_sleep: bool) -> bool {
    if may_sleep {
        return give_way();
    }
    std::thread::yield_now();
    true
}

/// Spins briefly and keeps the processor: an answer comes sooner than another thread would be scheduled. Returns
/// whether there was one.
pub(super) fn look_eagerly(has_any: &dyn Fn() -> bool) -> bool {
    look(64, has_any)
}

/// Looks so many times. Returns whether there was any.
pub(super) fn look(times: u32, has_any: &dyn Fn() -> bool) -> bool {
    (0..times).any(|_| {
        std::hint::spin_loop();
        has_any()
    })
}

/// How an idle driver spins before it sleeps.
#[derive(Clone, Copy)]
pub(super) struct Spin {
    /// Time limit while operations of this rank are in flight.
    limit: Duration,
    /// Time limit otherwise.
    limit_for_others: Duration,
    /// Whether it yields to other threads in between.
    yields: bool,
    /// Yields instead, if it does not spin.
    turns: u32,
}

impl Spin {
    /// Whether the thread spins at all.
    pub(super) fn is_any(&self) -> bool {
        !self.limit.is_zero()
    }
}

/// State of an idle driver until it sleeps.
pub(super) struct Idle {
    spin: Spin,
    /// It has slept since there last was work.
    has_slept: bool,
    is_eager: bool,
    since: Option<Instant>,
    /// Yields so far.
    turns: u32,
}

impl Idle {
    pub(super) fn new(spin: Spin) -> Idle {
        Idle { spin, has_slept: false, is_eager: true, since: None, turns: 0 }
    }

    /// There was work.
    pub(super) fn end(&mut self) {
        (self.has_slept, self.is_eager, self.since, self.turns) = (false, true, None, 0);
    }

    /// The driver has slept.
    pub(super) fn on_slept(&mut self) {
        (self.has_slept, self.is_eager, self.since) = (true, true, None);
    }

    /// Whether it sleeps at once because other threads are waiting, one of which may be about to run.
    pub(super) fn gives_way_to(&self, sleepers: &Sleepers) -> bool {
        !self.spin.yields && self.spin.limit != Duration::MAX && sleepers.has_any()
    }

    /// Returns whether to drive again at once instead of sleeping. While it is eager, it watches for `has_any` itself.
    pub(super) fn spin(&mut self, is_unfinished: bool, has_any: &dyn Fn() -> bool) -> bool {
        /// Limit between two sleeps, when no arrival is imminent.
        const BETWEEN_SLEEPS_MAX: Duration = Duration::from_micros(50);
        let limit = if is_unfinished { self.spin.limit } else { self.spin.limit_for_others };
        let limit = if self.has_slept && limit != Duration::MAX { limit.min(BETWEEN_SLEEPS_MAX) } else { limit };
        if limit.is_zero() {
            self.turns += 1;
            return self.turns <= self.spin.turns && give_way();
        }
        if std::mem::take(&mut self.is_eager) {
            self.is_eager = look_eagerly(has_any);
            return true;
        }
        if self.spin.yields {
            // A thread just woken may need this processor.
            if !gives_way(limit != Duration::MAX) {
                return false;
            }
        } else {
            self.is_eager = true;
        }
        self.since.get_or_insert_with(Instant::now).elapsed() < limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_driver_spins_longer_while_its_own_operations_are_in_flight() {
        let hour = Duration::from_secs(3600);
        let spin = Spin { limit: hour, limit_for_others: Duration::ZERO, yields: false, turns: 0 };
        let mut idle = Idle::new(spin);
        assert!(idle.spin(true, &|| false) && idle.spin(true, &|| false) && idle.spin(true, &|| true));
        assert!(!idle.spin(false, &|| true), "it sleeps while others work");
        assert!(spin.is_any() && !Spin { limit: Duration::ZERO, ..spin }.is_any());
    }
}

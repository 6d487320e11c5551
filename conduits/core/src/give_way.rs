//! Giving way to other threads, as long as that costs little.
//!
//! Threads that wait for each other on one processor run in turns of microseconds if each yields. Beside a thread that computes, a yield
//! gives up a slice of milliseconds; Linux's scheduler has taken the next one as well since 6.17. A thread that sleeps keeps its claim
//! to the processor, and runs soon after it is woken.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A yield that took longer has let a thread run that does not wait.
const LONG: Duration = Duration::from_micros(200);

/// So many sleeps come after a long yield: together they take about as long as it did.
const SLEEPS_MIN: u32 = 32;

/// No more sleeps than these come between two yields.
const SLEEPS_MAX: u32 = 2048;

/// Whether a thread had better sleep than yield: after a long yield it had, twice as often after each further one, so that the yields that
/// find out whether the processor is still taken cost a small part of the time.
struct Manners {
    /// How often to sleep before the next yield.
    sleeps: Cell<u32>,
    /// As many as there were after the last yield.
    last: Cell<u32>,
}

impl Manners {
    const fn new() -> Manners {
        Manners { sleeps: Cell::new(0), last: Cell::new(0) }
    }

    /// Whether to yield now.
    fn may_yield(&self) -> bool {
        let sleeps = self.sleeps.get();
        self.sleeps.set(sleeps.saturating_sub(1));
        sleeps == 0
    }

    /// A yield took so long.
    fn on_yielded(&self, took: Duration) {
        let sleeps = if took > LONG { (2 * self.last.get()).clamp(SLEEPS_MIN, SLEEPS_MAX) } else { 0 };
        self.last.set(sleeps);
        self.sleeps.set(sleeps);
    }
}

thread_local! {
    static MANNERS: Manners = const { Manners::new() };
}

/// Yields the processor, unless yields of this thread have taken long. Returns whether it did; if not, the thread had better sleep, or go on.
pub fn give_way() -> bool {
    MANNERS.with(|manners| {
        manners.may_yield() && {
            let before = Instant::now();
            std::thread::yield_now();
            manners.on_yielded(before.elapsed());
            true
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(3);
    const SLICE: Duration = Duration::from_millis(3);

    /// How often it sleeps before it yields.
    fn sleeps(manners: &Manners) -> u32 {
        (0..).take_while(|_| !manners.may_yield()).count() as u32
    }

    #[test]
    fn yields_that_take_long_become_seldom_and_come_back() {
        let manners = Manners::new();
        for _ in 0..100 {
            assert_eq!(sleeps(&manners), 0);
            manners.on_yielded(SHORT);
        }
        for expected in [32, 64, 128, 256, 512, 1024, 2048, 2048, 2048] {
            manners.on_yielded(SLICE);
            assert_eq!(sleeps(&manners), expected);
        }
        manners.on_yielded(SHORT);
        assert_eq!(sleeps(&manners), 0, "one short yield says that the processor is free");
        manners.on_yielded(LONG);
        assert_eq!(sleeps(&manners), 0);
        manners.on_yielded(SLICE);
        assert_eq!(sleeps(&manners), SLEEPS_MIN);
    }
}

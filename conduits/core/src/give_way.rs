//! Yielding the processor to other threads while it is cheap.
//!
//! Threads waiting for each other on one processor alternate within microseconds if each yields. Next to a computing
//! thread, a yield gives up slices of milliseconds. A sleeping thread keeps its scheduling claim, and runs soon after
//! it is woken.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A longer yield has let a non-waiting thread run.
const LONG: Duration = Duration::from_micros(200);

/// Pause after a long yield, as a multiple of its duration: it bounds the time lost on probing whether the processor is
/// still busy.
const PAUSE_TO_YIELD: u32 = 16;

/// Maximum delay until a free processor is noticed.
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// A thread's choice between sleeping and yielding.
struct YieldPolicy {
    /// Time until which it should sleep.
    until: Cell<Option<Instant>>,
    /// Length of the pause after the last yield.
    pause: Cell<Duration>,
}

impl YieldPolicy {
    const fn new() -> YieldPolicy {
        YieldPolicy { until: Cell::new(None), pause: Cell::new(Duration::ZERO) }
    }

    /// Whether to yield now.
    fn may_yield(&self, now: Instant) -> bool {
        self.until.get().is_none_or(|until| now >= until)
    }

    /// Records a yield of length `took` ending now. A yield after a sleep may be short by chance, so pauses are only
    /// halved.
    fn on_yielded(&self, took: Duration, now: Instant) {
        let before = self.pause.get();
        let pause = if took > LONG { (2 * before).max(PAUSE_TO_YIELD * took).min(PAUSE_MAX) } else { before / 2 };
        let pause = if pause < LONG { Duration::ZERO } else { pause };
        self.pause.set(pause);
        self.until.set((pause > Duration::ZERO).then(|| now + pause));
    }
}

thread_local! {
    static YIELD_POLICY: YieldPolicy = const { YieldPolicy::new() };
}

/// Yields the processor, unless recent yields of this thread were long. Returns whether it did; if not, the thread
/// should sleep, or go on.
pub fn give_way() -> bool {
    YIELD_POLICY.with(|policy| {
        let before = Instant::now();
        policy.may_yield(before) && {
            std::thread::yield_now();
            let after = Instant::now();
            policy.on_yielded(after - before, after);
            true
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(3);
    const SLICE: Duration = Duration::from_millis(3);

    /// A thread yielding as soon as it may, on a clock advanced only by its yields and pauses.
    struct Thread {
        policy: YieldPolicy,
        now: Instant,
    }

    impl Thread {
        /// Yields for `took`. Returns the following pause.
        fn yields(&mut self, took: Duration) -> Duration {
            assert!(self.policy.may_yield(self.now));
            self.now += took;
            self.policy.on_yielded(took, self.now);
            let pause = self.policy.pause.get();
            assert!(pause.is_zero() || !self.policy.may_yield(self.now + pause - Duration::from_nanos(1)));
            self.now += pause;
            pause
        }
    }

    #[test]
    fn yields_that_take_long_become_seldom_and_come_back() {
        let mut thread = Thread { policy: YieldPolicy::new(), now: Instant::now() };
        assert!((0..100).all(|_| thread.yields(SHORT).is_zero()) && thread.yields(LONG).is_zero());
        let pauses: Vec<_> = (0..5).map(|_| thread.yields(SLICE).as_millis()).collect();
        assert_eq!(pauses, [48, 96, 192, 250, 250]);
        // By chance.
        assert_eq!(thread.yields(SHORT).as_millis(), 125);
        assert_eq!(thread.yields(SLICE).as_millis(), 250);
        // The processor is free.
        let short = std::iter::repeat_with(|| thread.yields(SHORT)).take_while(|pause| !pause.is_zero());
        assert!(short.sum::<Duration>() < PAUSE_MAX);
        assert!((0..100).all(|_| thread.yields(SHORT).is_zero()));
    }
}

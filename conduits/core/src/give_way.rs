//! Giving way to other threads, as long as that costs little.
//!
//! Threads that wait for each other on one processor run in turns of microseconds if each yields. Beside a thread that computes, a yield
//! gives up slices of milliseconds. A thread that sleeps keeps its claim to the processor, and runs soon after it is woken.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A yield that took longer has let a thread run that does not wait.
const LONG: Duration = Duration::from_micros(200);

/// After a long yield no other comes for so many times as long as it took: so at most a part of the time goes into finding out whether the
/// processor is still taken.
const PAUSE_TO_YIELD: u32 = 16;

/// A processor that has become free is noticed after so long at most.
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// Whether a thread had better sleep than yield.
struct Manners {
    /// Until then it had.
    until: Cell<Option<Instant>>,
    /// For how long it had after the last yield.
    pause: Cell<Duration>,
}

impl Manners {
    const fn new() -> Manners {
        Manners { until: Cell::new(None), pause: Cell::new(Duration::ZERO) }
    }

    /// Whether to yield now.
    fn may_yield(&self, now: Instant) -> bool {
        self.until.get().is_none_or(|until| now >= until)
    }

    /// A yield took so long, until now. One that follows a sleep may be short by chance, so that pauses end by halves.
    fn on_yielded(&self, took: Duration, now: Instant) {
        let before = self.pause.get();
        let pause = if took > LONG { (2 * before).max(PAUSE_TO_YIELD * took).min(PAUSE_MAX) } else { before / 2 };
        let pause = if pause < LONG { Duration::ZERO } else { pause };
        self.pause.set(pause);
        self.until.set((pause > Duration::ZERO).then(|| now + pause));
    }
}

thread_local! {
    static MANNERS: Manners = const { Manners::new() };
}

/// Yields the processor, unless yields of this thread have taken long. Returns whether it did; if not, the thread had better sleep, or go on.
pub fn give_way() -> bool {
    MANNERS.with(|manners| {
        let before = Instant::now();
        manners.may_yield(before) && {
            std::thread::yield_now();
            let after = Instant::now();
            manners.on_yielded(after - before, after);
            true
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(3);
    const SLICE: Duration = Duration::from_millis(3);

    /// A thread that yields as soon as it may, by a clock that only its yields and pauses move.
    struct Thread {
        manners: Manners,
        now: Instant,
    }

    impl Thread {
        /// Yields for so long. Returns the pause after it.
        fn yields(&mut self, took: Duration) -> Duration {
            assert!(self.manners.may_yield(self.now));
            self.now += took;
            self.manners.on_yielded(took, self.now);
            let pause = self.manners.pause.get();
            assert!(pause.is_zero() || !self.manners.may_yield(self.now + pause - Duration::from_nanos(1)));
            self.now += pause;
            pause
        }
    }

    #[test]
    fn yields_that_take_long_become_seldom_and_come_back() {
        let mut thread = Thread { manners: Manners::new(), now: Instant::now() };
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

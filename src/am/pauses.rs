//! When a client that waits for a handler looks at its condition again, which puts and other threads may change, too.

use std::time::{Duration, Instant};

/// The shortest sleep between two looks.
const SHORTEST: Duration = Duration::from_micros(50);

/// The longest sleep.
const LONGEST: Duration = Duration::from_millis(10);

/// How long a client that has waited for so long sleeps at most before it looks again, if waits spin for `spin`: not at
/// all at first, then as long as it has waited. So a look comes at most about as late as the wait has lasted.
pub(super) fn sleep_after(waited: Duration, spin: Duration) -> Duration {
    if waited < spin { Duration::ZERO } else { waited.clamp(SHORTEST, LONGEST) }
}

/// Nanoseconds of a clock that has not begun at 0.
pub(super) fn clock_ns() -> u64 {
    static BEGIN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    BEGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_grow_with_the_wait() {
        let sleep = |waited_us, spin_us| {
            sleep_after(Duration::from_micros(waited_us), Duration::from_micros(spin_us)).as_micros()
        };
        assert_eq!([sleep(0, 50), sleep(49, 50), sleep(50, 50), sleep(70, 50)], [0, 0, 50, 70]);
        assert_eq!([sleep(0, 0), sleep(1, 0), sleep(3000, 0), sleep(1_000_000, 0)], [50, 50, 3000, 10_000]);
        assert_eq!(sleep(1_000_000, u64::MAX), 0, "a client that wants to spin does");
        assert!(clock_ns() > 0);
    }
}

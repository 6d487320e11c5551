//! Intervals at which a client waiting for a handler checks its condition, which puts and other threads may change,
//! too.

use std::time::{Duration, Instant};

/// The shortest sleep between two checks.
const SHORTEST: Duration = Duration::from_micros(50);

/// The longest sleep.
const LONGEST: Duration = Duration::from_millis(10);

/// The longest sleep before the next check of a client that has waited for `waited`, if waits spin for `spin`: zero at
/// first, then as long as the wait so far. So a check is late by at most about the duration of the wait.
pub(super) fn sleep_after(waited: Duration, spin: Duration) -> Duration {
    if waited < spin { Duration::ZERO } else { waited.clamp(SHORTEST, LONGEST) }
}

/// Nanoseconds of a clock that does not begin at 0.
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

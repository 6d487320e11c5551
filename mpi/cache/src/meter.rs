//! Times the gets of one window at a time, and the completions of the process meanwhile.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

/// The window, by its number plus one. While it is 0, a completion costs one load.
static OWNER: AtomicU32 = AtomicU32::new(0);
static SPENT_NS: AtomicU64 = AtomicU64::new(0);
static IS_COMPLETED: AtomicBool = AtomicBool::new(false);

/// Takes the meter for a window, unless another window has it.
pub fn take(space: u32) -> bool {
    let is_taken = OWNER.compare_exchange(0, space + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if is_taken {
        IS_COMPLETED.store(false, Ordering::Relaxed);
    }
    is_taken
}

/// A window needs the meter no more.
pub fn release(space: u32) {
    _ = OWNER.compare_exchange(space + 1, 0, Ordering::Relaxed, Ordering::Relaxed);
}

/// The time since the last call.
pub fn take_ns() -> u64 {
    SPENT_NS.swap(0, Ordering::Relaxed)
}

/// Whether operations were completed since the last call.
pub fn take_completed() -> bool {
    IS_COMPLETED.swap(false, Ordering::Relaxed)
}

/// A get of a window.
#[inline]
pub fn get<T>(space: u32, work: impl FnOnce() -> T) -> T {
    if OWNER.load(Ordering::Relaxed) == space + 1 { time(work) } else { work() }
}

/// A call that completes operations, of any window: a request does not tell its window.
#[inline]
pub fn complete<T>(work: impl FnOnce() -> T) -> T {
    if OWNER.load(Ordering::Relaxed) == 0 {
        return work();
    }
    let result = time(work);
    IS_COMPLETED.store(true, Ordering::Relaxed);
    result
}

#[inline(never)]
fn time<T>(work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    let spent_ns = start.elapsed().as_nanos() as u64;
    SPENT_NS.fetch_add(spent_ns.saturating_sub(clock_ns()), Ordering::Relaxed);
    result
}

/// The time of reading the clock, which the measured call does not need.
fn clock_ns() -> u64 {
    static NS: OnceLock<u64> = OnceLock::new();
    *NS.get_or_init(|| {
        let read = |_| {
            let start = Instant::now();
            start.elapsed().as_nanos() as u64
        };
        (0..64).map(read).min().unwrap_or(0)
    })
}

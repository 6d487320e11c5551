//! MPI's progress. Many MPIs serve the gets of other ranks only within calls, and a program with hits only does not
//! call them. So calls answered by the library poll MPI now and then.

use crate::ffi;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Interval between two polls, by any thread.
const LOOK_NS: u64 = 50_000;

/// Number of calls after which a thread reads the clock.
const CALLS_A_LOOK: u32 = 16;

static START: OnceLock<Instant> = OnceLock::new();
static LOOKED_NS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// A call is not passed on.
#[inline]
pub fn on_saved_call() {
    let calls = CALLS.get().wrapping_add(1);
    CALLS.set(calls);
    if calls % CALLS_A_LOOK == 0 {
        look();
    }
}

#[cold]
fn look() {
    let now = START.get_or_init(Instant::now).elapsed().as_nanos() as u64;
    let before = LOOKED_NS.load(Ordering::Relaxed);
    let is_due = now.saturating_sub(before) >= LOOK_NS;
    if is_due && LOOKED_NS.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        ffi::look_at_messages();
    }
}

//! MPI's progress. Many MPIs serve the gets of others only while a rank calls them, and a program whose gets hit calls them no more: so
//! calls that go no further look at MPI now and then.

use crate::ffi;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Time between two looks, of all threads.
const LOOK_NS: u64 = 50_000;

/// A thread looks at the clock once in so many calls.
const CALLS_A_LOOK: u32 = 16;

static START: OnceLock<Instant> = OnceLock::new();
static LOOKED_NS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// A call goes no further.
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

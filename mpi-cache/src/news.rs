//! When this process may last have learned from another one.
//!
//! Every function of MPI's that can bring news is defined by the library ([`crate::news_c`], [`crate::news_fortran`], and the calls that
//! complete operations), and raises one number when it returns. What was read before that may be old: somebody may have written since, and
//! told this process.

use crate::windows;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

static NEWS: AtomicU64 = AtomicU64::new(1);

/// The interval without news that this is.
#[inline]
pub fn interval() -> u64 {
    NEWS.load(Ordering::Relaxed)
}

/// There may be news. Threads must not lose each other's.
#[inline]
pub fn learn() {
    if windows::is_any_cached() {
        NEWS.fetch_add(1, Ordering::Relaxed);
    }
}

/// A call that may bring news, also where it fails.
#[inline]
pub fn after(next: impl Fn() -> c_int) -> c_int {
    let error = next();
    learn();
    error
}

/// A call that nothing is to be done about where no window is cached.
#[inline]
pub fn after_cached(plain: impl Fn() -> c_int, next: impl Fn() -> c_int) -> c_int {
    if windows::is_any_cached() { after_out_of_line(next) } else { plain() }
}

/// So a call which only goes on saves no registers.
#[inline(never)]
fn after_out_of_line(next: impl Fn() -> c_int) -> c_int {
    after(next)
}

/// A call that brings news where it sets a flag.
#[inline]
pub fn if_found(next: impl Fn() -> c_int, flag: usize) -> c_int {
    let error = next();
    // SAFETY: MPI has set the flag, unless it has refused the call.
    if error != 0 || unsafe { *(flag as *const c_int) } != 0 {
        learn();
    }
    error
}

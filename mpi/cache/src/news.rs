//! The points at which this process may have learned from another one.
//!
//! The library defines every MPI function that can bring news ([`crate::news_calls`], and the calls that complete
//! operations). Each raises one number when it returns. Bytes read before may be stale: another process may have written
//! since, and told this one.

use crate::windows;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use vgasnet_mpi_front::kind::Flag;
use vgasnet_mpi_front::{Argument, SUCCESS};

static NEWS: AtomicU64 = AtomicU64::new(1);

/// The current interval without news.
#[inline]
pub fn interval() -> u64 {
    NEWS.load(Ordering::Relaxed)
}

/// There may be news. Threads must not lose each other's counts.
#[inline]
pub fn learn() {
    if windows::is_any_cached() {
        NEWS.fetch_add(1, Ordering::Relaxed);
    }
}

/// A call that may bring news, even if it fails.
#[inline]
pub fn after(next: impl Fn() -> c_int) -> c_int {
    let error = next();
    learn();
    error
}

/// A call that needs no action while no window is cached.
#[inline]
pub fn after_cached(plain: impl Fn() -> c_int, next: impl Fn() -> c_int) -> c_int {
    if windows::is_any_cached() { after_out_of_line(next) } else { plain() }
}

/// Out of line, so that calls passed on unchanged save no registers.
#[inline(never)]
fn after_out_of_line(next: impl Fn() -> c_int) -> c_int {
    after(next)
}

/// A call that brings news if it sets a flag.
#[inline]
pub fn if_found<L>(next: impl Fn() -> c_int, flag: Argument<'_, L, Flag>) -> c_int {
    let error = next();
    // SAFETY: MPI has returned success.
    if error != SUCCESS || unsafe { flag.is_set() } {
        learn();
    }
    error
}

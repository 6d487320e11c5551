//! Protection against cancellation of threads by the client. Functions called by MPI, GASNet and the library are
//! cancellation points (`pthreads(7)`), and a thread ended in one would leave locks and half of its work behind. So it
//! is not cancelled there: the request stays pending until a cancellation point of the client.

use std::ffi::c_int;
use std::marker::PhantomData;

/// Cancellation states and types; the numbers are from `pthread.h`.
const ENABLED: c_int = 0;
const DISABLED: c_int = 1;
const ASYNCHRONOUS: c_int = 1;

unsafe extern "C-unwind" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int;
}

/// Protects this thread from cancellation while it exists. Costs no system call.
pub struct CancellationGuard {
    was_enabled: bool,
    of_this_thread: PhantomData<*const ()>,
}

impl CancellationGuard {
    /// Defers cancellation from now on.
    #[inline]
    pub fn new() -> CancellationGuard {
        CancellationGuard { was_enabled: set_state(DISABLED) == ENABLED, of_this_thread: PhantomData }
    }
}

impl Default for CancellationGuard {
    fn default() -> CancellationGuard {
        CancellationGuard::new()
    }
}

impl Drop for CancellationGuard {
    #[inline]
    fn drop(&mut self) {
        if self.was_enabled {
            set_state(ENABLED);
        }
    }
}

fn set_state(state: c_int) -> c_int {
    let mut before = DISABLED;
    // SAFETY: `before` has room for the answer. The state alone cancels nobody: deferred requests wait for a
    // cancellation point, and the header forbids asynchronous ones where the segment is used.
    unsafe { pthread_setcancelstate(state, &raw mut before) };
    before
}

/// Runs a system call in which this thread may be cancelled, as in the C library's function for it.
pub(super) fn cancellable<T>(call: impl FnOnce() -> T) -> T {
    let before = set_kind(ASYNCHRONOUS);
    let answer = call();
    set_kind(before);
    answer
}

/// Sets the cancellation type; returns the one before.
fn set_kind(kind: c_int) -> c_int {
    let mut before = 0;
    // SAFETY: `before` has room for the answer. A thread cancelled at once holds nothing of the library's.
    unsafe { pthread_setcanceltype(kind, &raw mut before) };
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_may_end_in_any_order() {
        let first = CancellationGuard::new();
        let second = CancellationGuard::new();
        drop(first);
        drop(second);
        assert_eq!(set_state(ENABLED), ENABLED);
    }

    #[test]
    fn the_clients_setting_stays() {
        set_state(DISABLED);
        drop(CancellationGuard::new());
        assert_eq!(set_state(ENABLED), DISABLED);
    }
}

//! Once-flags in the segment.

use super::interposed;
use super::parking::{Limits, cancelled, wait, wake_all};
use crate::io::is_in_segment;
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

pub(super) type Once = libc::pthread_once_t;
pub(super) type Initialise = unsafe extern "C-unwind" fn();

const NEW: c_int = 0;
const RUNS: c_int = 1;
/// As the C library's: callers may look for it without a call.
const DONE: c_int = 2;

interposed! {
    /// As POSIX `pthread_once`.
    fn pthread_once(once: *mut Once, initialise: Initialise), if is_in_segment(once.addr()) => call(once, initialise);
}

/// Opens the flag again, if its function has been left by an exception or a cancellation.
struct Running<'a> {
    state: &'a AtomicI32,
    end: c_int,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.state.store(self.end, Ordering::Release);
        wake_all(std::ptr::from_ref(self.state).addr());
    }
}

/// # Safety
/// As POSIX `pthread_once`.
pub(super) unsafe fn call_anywhere(once: *mut Once, initialise: Initialise) -> c_int {
    // SAFETY: as this function requires.
    unsafe { if is_in_segment(once.addr()) { call(once, initialise) } else { next::pthread_once(once, initialise) } }
}

/// # Safety
/// As POSIX `pthread_once`.
unsafe fn call(once: *mut Once, initialise: Initialise) -> c_int {
    // SAFETY: the flag is valid, and all threads access it in atomic operations.
    let state = unsafe { AtomicI32::from_ptr(once) };
    loop {
        match state.compare_exchange(NEW, RUNS, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => {
                let mut running = Running { state, end: NEW };
                // SAFETY: as this function requires.
                unsafe { initialise() };
                running.end = DONE;
                return 0;
            }
            Err(RUNS) => {
                let is_over = || (state.load(Ordering::Acquire) != RUNS).then_some(());
                wait(once.addr(), cancelled(), Limits::default(), is_over);
            }
            Err(_) => return 0,
        }
    }
}

//! C11's locks in the segment. They are those of POSIX threads in the C library, which calls its own functions for them.

use super::conditions::{self, Condition};
use super::interposed;
use super::mutexes::{self, Mutex};
use super::once::{self, Initialise, Once};
use crate::io::is_in_segment;
use std::ffi::c_int;

/// Answers of C11's functions, of `threads.h` in the C library.
const SUCCESS: c_int = 0;
const ERROR: c_int = 2;
const TIMED_OUT: c_int = 4;

fn answer(error: c_int) -> c_int {
    match error {
        0 => SUCCESS,
        libc::ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

interposed! {
    /// As C11 `mtx_lock`.
    fn mtx_lock(mutex: *mut Mutex), if is_in_segment(mutex.addr()) => answer(mutexes::lock(mutex));

    /// As C11 `mtx_timedlock`.
    fn mtx_timedlock(mutex: *mut Mutex, time: *const libc::timespec), if is_in_segment(mutex.addr())
        => answer(mutexes::lock_until(mutex, time));

    /// As C11 `mtx_unlock`.
    fn mtx_unlock(mutex: *mut Mutex), if is_in_segment(mutex.addr()) => answer(mutexes::unlock(mutex));

    /// As C11 `cnd_wait`.
    fn cnd_wait(condition: *mut Condition, mutex: *mut Mutex), if conditions::concerns(condition, mutex)
        => answer(conditions::wait_without_limit(condition, mutex));

    /// As C11 `cnd_timedwait`.
    fn cnd_timedwait(condition: *mut Condition, mutex: *mut Mutex, time: *const libc::timespec),
        if conditions::concerns(condition, mutex) => answer(conditions::wait_until(condition, mutex, time));

    /// As C11 `cnd_signal`.
    fn cnd_signal(condition: *mut Condition), if conditions::may_have_waiters(condition)
        => answer(conditions::signal(condition));

    /// As C11 `cnd_broadcast`.
    fn cnd_broadcast(condition: *mut Condition), if conditions::may_have_waiters(condition)
        => answer(conditions::broadcast(condition));
}

/// As C11 `call_once`.
///
/// # Safety
/// The arguments are what the C library's function requires.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn call_once(flag: *mut Once, initialise: Initialise) {
    // SAFETY: as this function requires.
    unsafe { once::call_anywhere(flag, initialise) };
}

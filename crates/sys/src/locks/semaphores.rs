//! Semaphores in the segment.

use super::parking::{Ended, Limits, cancelled, wait, wake_one};
use super::{interposed, pthread_testcancel, until};
use crate::errno::{last_errno, set_errno};
use crate::io::is_in_segment;
use std::ffi::c_int;

type Semaphore = libc::sem_t;

interposed! {
    /// As POSIX `sem_wait`.
    fn sem_wait(semaphore: *mut Semaphore), if is_in_segment(semaphore.addr()) => take(semaphore, Ok(Limits::default()));

    /// As POSIX `sem_timedwait`.
    fn sem_timedwait(semaphore: *mut Semaphore, time: *const libc::timespec), if is_in_segment(semaphore.addr())
        => take(semaphore, until(libc::CLOCK_REALTIME, time));

    /// As POSIX `sem_clockwait`.
    fn sem_clockwait(semaphore: *mut Semaphore, clock: libc::clockid_t, time: *const libc::timespec),
        if is_in_segment(semaphore.addr()) => take(semaphore, until(clock, time));

    /// As POSIX `sem_post`.
    fn sem_post(semaphore: *mut Semaphore), if is_in_segment(semaphore.addr()) => {
        let status = next::sem_post(semaphore);
        if status == 0 {
            wake_one(semaphore.addr());
        }
        status
    };
}

/// # Safety
/// `semaphore` is an initialised semaphore.
unsafe fn take(semaphore: *mut Semaphore, limits: Result<Limits, c_int>) -> c_int {
    // SAFETY: this frame has nothing to drop.
    unsafe { pthread_testcancel() };
    // SAFETY: the semaphore is initialised.
    let error = match unsafe { attempt(semaphore) } {
        Some(error) => error,
        // SAFETY: the same.
        None => limits.map_or_else(|error| error, |limits| unsafe { wait_for(semaphore, limits) }),
    };
    if error == 0 {
        return 0;
    }
    set_errno(error);
    -1
}

/// `None` if the semaphore is 0, otherwise the error or 0.
///
/// # Safety
/// As [`take`].
unsafe fn attempt(semaphore: *mut Semaphore) -> Option<c_int> {
    // SAFETY: as this function requires.
    let error = if unsafe { libc::sem_trywait(semaphore) } == 0 { 0 } else { last_errno() };
    Some(error).filter(|&error| error != libc::EAGAIN)
}

/// # Safety
/// As [`take`].
unsafe fn wait_for(semaphore: *mut Semaphore, limits: Limits) -> c_int {
    let limits = Limits { is_interruptible: true, ..limits };
    // SAFETY: as this function requires.
    let attempt = || unsafe { attempt(semaphore) };
    loop {
        let before = cancelled();
        // SAFETY: this frame has nothing to drop.
        unsafe { pthread_testcancel() };
        match wait(semaphore.addr(), before, limits, attempt) {
            Ended::Ready(error) => return error,
            Ended::TimedOut => return attempt().unwrap_or(libc::ETIMEDOUT),
            Ended::Interrupted => {
                // The C library's signal to a thread that is cancelled is one, too.
                // SAFETY: this frame has nothing to drop.
                unsafe { pthread_testcancel() };
                return attempt().unwrap_or(libc::EINTR);
            }
            Ended::Woken => {
                // What it was woken for is not lost with a thread that is cancelled.
                if let Some(error) = attempt() {
                    return error;
                }
            }
            Ended::Disturbed => {}
        }
    }
}

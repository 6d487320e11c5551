//! Mutexes in the segment, of every type but those that inherit priorities: the kernel knows their owner, and a wait for
//! one ends with `EINVAL`.

use super::parking::{Ended, Limits, cancelled, wait, wake_one};
use super::{PAST, interposed, until};
use crate::io::is_in_segment;
use std::ffi::c_int;

pub(super) type Mutex = libc::pthread_mutex_t;

interposed! {
    /// As POSIX `pthread_mutex_lock`.
    fn pthread_mutex_lock(mutex: *mut Mutex), if is_in_segment(mutex.addr()) => lock_inside(mutex, || Ok(Limits::default()));

    /// As POSIX `pthread_mutex_timedlock`.
    fn pthread_mutex_timedlock(mutex: *mut Mutex, time: *const libc::timespec), if is_in_segment(mutex.addr())
        => lock_until(mutex, time);

    /// As POSIX `pthread_mutex_clocklock`.
    fn pthread_mutex_clocklock(mutex: *mut Mutex, clock: libc::clockid_t, time: *const libc::timespec),
        if is_in_segment(mutex.addr()) => lock_inside(mutex, || until(clock, time));

    /// As POSIX `pthread_mutex_unlock`.
    fn pthread_mutex_unlock(mutex: *mut Mutex), if is_in_segment(mutex.addr()) => unlock_inside(mutex);
}

/// Takes a mutex, wherever it is.
///
/// # Safety
/// As POSIX `pthread_mutex_lock`.
pub(super) unsafe fn lock(mutex: *mut Mutex) -> c_int {
    if is_in_segment(mutex.addr()) {
        // SAFETY: as this function requires.
        return unsafe { lock_inside(mutex, || Ok(Limits::default())) };
    }
    // SAFETY: the same.
    unsafe { next::pthread_mutex_lock(mutex) }
}

/// Takes a mutex in the segment, until a time of `CLOCK_REALTIME`.
///
/// # Safety
/// As POSIX `pthread_mutex_timedlock`.
pub(super) unsafe fn lock_until(mutex: *mut Mutex, time: *const libc::timespec) -> c_int {
    // SAFETY: as this function requires.
    unsafe { lock_inside(mutex, || until(libc::CLOCK_REALTIME, time)) }
}

/// Releases a mutex, wherever it is.
///
/// # Safety
/// As POSIX `pthread_mutex_unlock`.
pub(super) unsafe fn unlock(mutex: *mut Mutex) -> c_int {
    if is_in_segment(mutex.addr()) {
        // SAFETY: as this function requires.
        return unsafe { unlock_inside(mutex) };
    }
    // SAFETY: the same.
    unsafe { next::pthread_mutex_unlock(mutex) }
}

/// # Safety
/// `mutex` is an initialised mutex in the segment.
unsafe fn lock_inside(mutex: *mut Mutex, limits: impl FnOnce() -> Result<Limits, c_int>) -> c_int {
    // SAFETY: as this function requires.
    let tried = unsafe { libc::pthread_mutex_trylock(mutex) };
    if tried != libc::EBUSY {
        return tried;
    }
    match limits() {
        // SAFETY: as this function requires.
        Ok(limits) => unsafe { wait_for(mutex, limits) },
        Err(error) => error,
    }
}

/// # Safety
/// As [`lock_inside`].
#[cold]
unsafe fn wait_for(mutex: *mut Mutex, limits: Limits) -> c_int {
    // Unlike `pthread_mutex_trylock` it sees that the thread itself has the lock.
    // SAFETY: the mutex is initialised.
    let attempt =
        || Some(unsafe { next::pthread_mutex_timedlock(mutex, &raw const PAST) }).filter(|&e| e != libc::ETIMEDOUT);
    loop {
        match wait(mutex.addr(), cancelled(), limits, attempt) {
            Ended::Ready(error) => return error,
            Ended::TimedOut => return attempt().unwrap_or(libc::ETIMEDOUT),
            Ended::Woken | Ended::Disturbed | Ended::Interrupted => {}
        }
    }
}

/// # Safety
/// As POSIX `pthread_mutex_unlock`.
unsafe fn unlock_inside(mutex: *mut Mutex) -> c_int {
    // SAFETY: as this function requires.
    let error = unsafe { next::pthread_mutex_unlock(mutex) };
    if error == 0 {
        // Another thread may have freed the mutex by now: its address alone counts.
        wake_one(mutex.addr());
    }
    error
}

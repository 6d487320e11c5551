//! Read-write locks in the segment.

use super::parking::{Ended, Limits, cancelled, wait, wake_all};
use super::{PAST, interposed, until};
use crate::io::is_in_segment;
use std::ffi::c_int;

type RwLock = libc::pthread_rwlock_t;

interposed! {
    /// As POSIX `pthread_rwlock_rdlock`.
    fn pthread_rwlock_rdlock(lock: *mut RwLock), if is_in_segment(lock.addr())
        => wait_for(lock, Ok(Limits::default()), next::pthread_rwlock_timedrdlock);

    /// As POSIX `pthread_rwlock_timedrdlock`.
    fn pthread_rwlock_timedrdlock(lock: *mut RwLock, time: *const libc::timespec), if is_in_segment(lock.addr())
        => wait_for(lock, until(libc::CLOCK_REALTIME, time), next::pthread_rwlock_timedrdlock);

    /// As POSIX `pthread_rwlock_clockrdlock`.
    fn pthread_rwlock_clockrdlock(lock: *mut RwLock, clock: libc::clockid_t, time: *const libc::timespec),
        if is_in_segment(lock.addr()) => wait_for(lock, until(clock, time), next::pthread_rwlock_timedrdlock);

    /// As POSIX `pthread_rwlock_wrlock`.
    fn pthread_rwlock_wrlock(lock: *mut RwLock), if is_in_segment(lock.addr())
        => wait_for(lock, Ok(Limits::default()), next::pthread_rwlock_timedwrlock);

    /// As POSIX `pthread_rwlock_timedwrlock`.
    fn pthread_rwlock_timedwrlock(lock: *mut RwLock, time: *const libc::timespec), if is_in_segment(lock.addr())
        => wait_for(lock, until(libc::CLOCK_REALTIME, time), next::pthread_rwlock_timedwrlock);

    /// As POSIX `pthread_rwlock_clockwrlock`.
    fn pthread_rwlock_clockwrlock(lock: *mut RwLock, clock: libc::clockid_t, time: *const libc::timespec),
        if is_in_segment(lock.addr()) => wait_for(lock, until(clock, time), next::pthread_rwlock_timedwrlock);

    /// As POSIX `pthread_rwlock_unlock`.
    fn pthread_rwlock_unlock(lock: *mut RwLock), if is_in_segment(lock.addr()) => {
        let error = next::pthread_rwlock_unlock(lock);
        if error == 0 {
            wake_all(lock.addr());
        }
        error
    };
}

type Timed = unsafe fn(*mut RwLock, *const libc::timespec) -> c_int;

/// # Safety
/// `lock` is an initialised lock, and `timed` a function to take one with a time limit.
unsafe fn wait_for(lock: *mut RwLock, limits: Result<Limits, c_int>, timed: Timed) -> c_int {
    // SAFETY: as this function requires.
    let attempt = || Some(unsafe { timed(lock, &raw const PAST) }).filter(|&error| error != libc::ETIMEDOUT);
    if let Some(error) = attempt() {
        return error;
    }
    let limits = match limits {
        Ok(limits) => limits,
        Err(error) => return error,
    };
    loop {
        match wait(lock.addr(), cancelled(), limits, attempt) {
            Ended::Ready(error) => return error,
            Ended::TimedOut => return attempt().unwrap_or(libc::ETIMEDOUT),
            Ended::Woken | Ended::Disturbed | Ended::Interrupted => {}
        }
    }
}

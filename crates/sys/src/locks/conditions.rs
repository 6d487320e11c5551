//! Condition variables in the segment, or with a mutex there. They are addresses to wait at. Of their memory only the C
//! library's bit for the clock is read.

use super::mutexes::{self, Mutex};
use super::parking::{Ended, Limits, cancelled, wait, wake_all, wake_one};
use super::{interposed, pthread_testcancel, until};
use crate::io::is_in_segment;
use std::cell::Cell;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(super) type Condition = libc::pthread_cond_t;

/// Whether a thread has waited at a condition variable outside of the segment, with a mutex in it. From then on waiters
/// at all of them may be the library's or the C library's.
static IS_MIXED: AtomicBool = AtomicBool::new(false);

interposed! {
    /// As POSIX `pthread_cond_wait`.
    fn pthread_cond_wait(condition: *mut Condition, mutex: *mut Mutex), if concerns(condition, mutex)
        => wait_without_limit(condition, mutex);

    /// As POSIX `pthread_cond_timedwait`.
    fn pthread_cond_timedwait(condition: *mut Condition, mutex: *mut Mutex, time: *const libc::timespec),
        if concerns(condition, mutex) => wait_until(condition, mutex, time);

    /// As POSIX `pthread_cond_clockwait`.
    fn pthread_cond_clockwait(
        condition: *mut Condition, mutex: *mut Mutex, clock: libc::clockid_t, time: *const libc::timespec
    ), if concerns(condition, mutex) => wait_within(condition, mutex, until(clock, time));

    /// As POSIX `pthread_cond_signal`.
    fn pthread_cond_signal(condition: *mut Condition), if may_have_waiters(condition) => signal(condition);

    /// As POSIX `pthread_cond_broadcast`.
    fn pthread_cond_broadcast(condition: *mut Condition), if may_have_waiters(condition) => broadcast(condition);
}

/// Whether the library does the waiting.
pub(super) fn concerns(condition: *mut Condition, mutex: *mut Mutex) -> bool {
    is_in_segment(condition.addr()) || is_in_segment(mutex.addr())
}

/// Whether threads may wait there by the library.
pub(super) fn may_have_waiters(condition: *mut Condition) -> bool {
    is_in_segment(condition.addr()) || IS_MIXED.load(Ordering::SeqCst)
}

/// # Safety
/// As POSIX `pthread_cond_signal`.
pub(super) unsafe fn signal(condition: *mut Condition) -> c_int {
    wake_one(condition.addr());
    // SAFETY: as this function requires.
    if is_in_segment(condition.addr()) { 0 } else { unsafe { next::pthread_cond_signal(condition) } }
}

/// # Safety
/// As POSIX `pthread_cond_broadcast`.
pub(super) unsafe fn broadcast(condition: *mut Condition) -> c_int {
    wake_all(condition.addr());
    // SAFETY: as this function requires.
    if is_in_segment(condition.addr()) { 0 } else { unsafe { next::pthread_cond_broadcast(condition) } }
}

/// The bit by which the C library notes that a condition variable has `CLOCK_MONOTONIC`: its byte, and its mask. 0 for an
/// unknown layout. Its place is another one in each few versions, so it is looked up once.
fn monotonic_bit() -> (usize, u8) {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    /// Marks the number as found.
    const IS_KNOWN: usize = 1 << 31;
    let mut found = FOUND.load(Ordering::Relaxed);
    if found == 0 {
        let [one, other] = [libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC].map(bytes_with);
        let mut different = (0..one.len()).filter(|at| one[*at] != other[*at]);
        let (at, is_one) = (different.next().unwrap_or(0), different.next().is_none());
        let mask = if is_one { one[at] ^ other[at] } else { 0 };
        found = IS_KNOWN | at << 8 | usize::from(mask);
        FOUND.store(found, Ordering::Relaxed);
    }
    ((found & !IS_KNOWN) >> 8, found as u8)
}

/// The bytes of a condition variable with this clock.
fn bytes_with(clock: libc::clockid_t) -> [u8; size_of::<Condition>()] {
    let mut condition = MaybeUninit::<Condition>::zeroed();
    let mut attributes = MaybeUninit::<libc::pthread_condattr_t>::uninit();
    // SAFETY: there is room for both. They are destroyed after their only use. All bytes are initialised.
    unsafe {
        libc::pthread_condattr_init(attributes.as_mut_ptr());
        libc::pthread_condattr_setclock(attributes.as_mut_ptr(), clock);
        libc::pthread_cond_init(condition.as_mut_ptr(), attributes.as_ptr());
        libc::pthread_condattr_destroy(attributes.as_mut_ptr());
        let bytes = condition.as_ptr().cast::<[u8; size_of::<Condition>()]>().read();
        libc::pthread_cond_destroy(condition.as_mut_ptr());
        bytes
    }
}

/// # Safety
/// The condition variable is initialised.
unsafe fn clock_of(condition: *mut Condition) -> libc::clockid_t {
    let (at, mask) = monotonic_bit();
    // SAFETY: the byte is one of the condition variable.
    let byte = unsafe { condition.cast::<u8>().add(at).read_volatile() };
    if byte & mask == 0 { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC }
}

/// # Safety
/// As POSIX `pthread_cond_wait`.
pub(super) unsafe fn wait_without_limit(condition: *mut Condition, mutex: *mut Mutex) -> c_int {
    // SAFETY: as this function requires.
    unsafe { wait_within(condition, mutex, Ok(Limits::default())) }
}

/// # Safety
/// As POSIX `pthread_cond_timedwait`.
pub(super) unsafe fn wait_until(condition: *mut Condition, mutex: *mut Mutex, time: *const libc::timespec) -> c_int {
    // SAFETY: as this function requires.
    unsafe { wait_within(condition, mutex, until(clock_of(condition), time)) }
}

/// # Safety
/// `mutex` is an initialised mutex.
unsafe fn wait_within(condition: *mut Condition, mutex: *mut Mutex, limits: Result<Limits, c_int>) -> c_int {
    let limits = match limits {
        Ok(limits) => limits,
        Err(error) => return error,
    };
    if !is_in_segment(condition.addr()) {
        IS_MIXED.store(true, Ordering::SeqCst);
    }
    let before = cancelled();
    // SAFETY: this frame has nothing to drop.
    unsafe { pthread_testcancel() };
    let is_unlocked = Cell::new(false);
    let unlock = || {
        is_unlocked.set(true);
        // SAFETY: the mutex is initialised.
        Some(unsafe { mutexes::unlock(mutex) }).filter(|&error| error != 0)
    };
    let ended = wait(condition.addr(), before, limits, unlock);
    if let Ended::Ready(error) = ended {
        return error;
    }
    if !is_unlocked.get() {
        // A thread has been cancelled meanwhile.
        // SAFETY: this frame has nothing to drop.
        unsafe { pthread_testcancel() };
        return 0;
    }
    // SAFETY: the mutex is initialised.
    let error = unsafe { mutexes::lock(mutex) };
    if ended == Ended::Disturbed {
        // SAFETY: the same. If the thread goes on, it has woken spuriously.
        unsafe { pthread_testcancel() };
    }
    if error == 0 && ended == Ended::TimedOut { libc::ETIMEDOUT } else { error }
}

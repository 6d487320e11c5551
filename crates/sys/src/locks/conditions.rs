//! Condition variables in the segment, or with a mutex there. They are addresses to wait at: their memory is not used.

use super::mutexes::{self, Mutex};
use super::parking::{Ended, Limits, cancelled, wait, wake_all, wake_one};
use super::{interposed, pthread_testcancel, until};
use crate::alternate_stack::off_the_segment;
use crate::deferred_signals::SignalGuard;
use crate::futex::Lock;
use crate::io::is_in_segment;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(super) type Condition = libc::pthread_cond_t;

/// Whether a thread has waited at a condition variable outside of the segment, with a mutex in it. From then on waiters
/// at all of them may be the library's or the C library's.
static IS_MIXED: AtomicBool = AtomicBool::new(false);

/// Addresses of the condition variables initialised with `CLOCK_MONOTONIC`, in the segment or not.
static MONOTONIC: Lock<BTreeSet<usize>> = Lock::new(BTreeSet::new());
/// Their number.
static MONOTONIC_COUNT: AtomicUsize = AtomicUsize::new(0);

interposed! {
    /// As POSIX `pthread_cond_init`.
    fn pthread_cond_init(condition: *mut Condition, attributes: *const libc::pthread_condattr_t), if true
        => initialise(condition, attributes);

    /// As POSIX `pthread_cond_destroy`.
    fn pthread_cond_destroy(condition: *mut Condition), if true => destroy(condition);

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
/// As POSIX `pthread_cond_init`.
unsafe fn initialise(condition: *mut Condition, attributes: *const libc::pthread_condattr_t) -> c_int {
    let mut clock = libc::CLOCK_REALTIME;
    if !attributes.is_null() {
        // SAFETY: the attributes are initialised, and there is room for the answer.
        unsafe { libc::pthread_condattr_getclock(attributes, &raw mut clock) };
    }
    note_clock(condition, clock);
    // SAFETY: as this function requires.
    unsafe { next::pthread_cond_init(condition, attributes) }
}

/// # Safety
/// As POSIX `pthread_cond_destroy`.
unsafe fn destroy(condition: *mut Condition) -> c_int {
    note_clock(condition, libc::CLOCK_REALTIME);
    // SAFETY: as this function requires.
    if is_in_segment(condition.addr()) { 0 } else { unsafe { next::pthread_cond_destroy(condition) } }
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

/// Notes the clock of a condition variable that is initialised, or `CLOCK_REALTIME` for one that is destroyed.
pub(super) fn note_clock(condition: *mut Condition, clock: libc::clockid_t) {
    if clock == libc::CLOCK_REALTIME && MONOTONIC_COUNT.load(Ordering::Acquire) == 0 {
        return;
    }
    // The heap has a lock.
    off_the_segment(|| {
        let _signals = SignalGuard::new();
        let mut monotonic = MONOTONIC.lock();
        if clock == libc::CLOCK_MONOTONIC {
            monotonic.insert(condition.addr());
        } else {
            monotonic.remove(&condition.addr());
        }
        MONOTONIC_COUNT.store(monotonic.len(), Ordering::Release);
    });
}

fn clock_of(condition: *mut Condition) -> libc::clockid_t {
    let is_monotonic = off_the_segment(|| {
        let _signals = SignalGuard::new();
        MONOTONIC.lock().contains(&condition.addr())
    });
    if is_monotonic { libc::CLOCK_MONOTONIC } else { libc::CLOCK_REALTIME }
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

//! Waits in the kernel without the C library's locks, usable in signal handlers.

use crate::errno::last_errno;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Sleeps while `word` is `value`, until a wake-up; may also return spuriously.
pub fn wait(word: &AtomicU32, value: u32) {
    wait_for(word, value, None);
}

/// As [`wait`], for at most `limit`.
pub fn wait_for(word: &AtomicU32, value: u32, limit: Option<Duration>) {
    let limit = limit
        .map(|limit| libc::timespec { tv_sec: limit.as_secs() as libc::time_t, tv_nsec: limit.subsec_nanos().into() });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `word` and `limit` are valid for the call, which only reads them.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, value, limit) };
}

/// A time of a clock of the system.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    pub clock: libc::clockid_t,
    pub time: libc::timespec,
}

impl Deadline {
    /// The time that lies this long after now.
    pub fn after(clock: libc::clockid_t, length: libc::timespec) -> Deadline {
        let mut now = length;
        // SAFETY: there is room for the answer.
        unsafe { libc::clock_gettime(clock, &raw mut now) };
        let nanoseconds = now.tv_nsec + length.tv_nsec;
        let (more, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
        let seconds = now.tv_sec.saturating_add(length.tv_sec).saturating_add(more);
        Deadline { clock, time: libc::timespec { tv_sec: seconds, tv_nsec: rest } }
    }
}

/// How a sleep has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slept {
    /// By a wake-up, or because the word had another value; or spuriously.
    Woken,
    /// A signal handler has run.
    Interrupted,
    TimedOut,
}

/// As [`wait`], until the deadline. Its clock is `CLOCK_REALTIME` or `CLOCK_MONOTONIC`.
pub(super) fn wait_until(word: &AtomicU32, value: u32, deadline: Option<Deadline>) -> Slept {
    if deadline.is_some_and(|deadline| deadline.time.tv_sec < 0) {
        // The kernel refuses such times.
        return Slept::TimedOut;
    }
    let is_real_time = deadline.is_some_and(|deadline| deadline.clock == libc::CLOCK_REALTIME);
    let clock = if is_real_time { libc::FUTEX_CLOCK_REALTIME } else { 0 };
    let operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG | clock;
    let time = deadline.as_ref().map_or(std::ptr::null(), |deadline| &raw const deadline.time);
    let (nobody, all) = (std::ptr::null::<u32>(), libc::FUTEX_BITSET_MATCH_ANY);
    // SAFETY: `word` and `time` are valid for the call, which only reads them.
    let answer = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, time, nobody, all) };
    match (answer, last_errno()) {
        (-1, libc::ETIMEDOUT) => Slept::TimedOut,
        (-1, libc::EINTR) => Slept::Interrupted,
        _ => Slept::Woken,
    }
}

/// Wakes one thread that sleeps on the word at this address, which may be gone by now. Returns whether there was one.
pub fn wake_one(word: *const AtomicU32) -> bool {
    wake(word, 1)
}

/// Wakes all threads that sleep on the word.
pub fn wake_all(word: &AtomicU32) {
    wake(word, i32::MAX);
}

fn wake(word: *const AtomicU32, threads: i32) -> bool {
    // SAFETY: the kernel compares the address with sleepers' addresses, and neither reads nor writes there.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, threads) > 0 }
}

/// Whether the process may write the word at this address. The word does not change.
pub(super) fn is_writable(word: *const AtomicU32) -> bool {
    /// The kernel adds 0 to the word, in one step.
    const ADD_0: u32 = 1 << 28;
    let operation = libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG;
    let nobody = AtomicU32::new(0);
    // SAFETY: the kernel checks both addresses, and changes nothing.
    unsafe { libc::syscall(libc::SYS_futex, nobody.as_ptr(), operation, 0, 0_usize, word, ADD_0) == 0 }
}

const FREE: u32 = 0;
const TAKEN: u32 = 1;
/// Taken, and others wait.
const CONTENDED: u32 = 2;

/// A lock usable in signal handlers: it allocates nothing and has no thread-local state. All zero is a free lock.
///
/// A handler must not take the lock if it interrupts the owner. So a thread defers signals before it takes the lock,
/// and accesses no memory that may fault while it holds it.
///
/// Source: Drepper, "Futexes Are Tricky" (2011), mutex 2.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct RawLock(AtomicU32);

impl RawLock {
    /// A free lock.
    pub const fn new() -> RawLock {
        RawLock(AtomicU32::new(FREE))
    }

    /// Takes the lock; waits until it is free.
    pub fn lock(&self) {
        if !self.try_lock() {
            while self.0.swap(CONTENDED, Ordering::Acquire) != FREE {
                wait(&self.0, CONTENDED);
            }
        }
    }

    /// Takes the lock if it is free. Returns whether it was.
    pub fn try_lock(&self) -> bool {
        self.0.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Releases the lock.
    pub fn unlock(&self) {
        if self.0.swap(FREE, Ordering::Release) == CONTENDED {
            wake_one(&self.0);
        }
    }

    /// Whether the lock is free.
    pub fn is_free(&self) -> bool {
        self.0.load(Ordering::Relaxed) == FREE
    }
}

/// A value behind a [`RawLock`].
#[derive(Debug)]
pub struct Lock<T> {
    raw: RawLock,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands its value to one thread at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// A free lock.
    pub const fn new(value: T) -> Lock<T> {
        Lock { raw: RawLock::new(), value: UnsafeCell::new(value) }
    }

    /// Takes the lock; waits until it is free.
    pub fn lock(&self) -> Guard<'_, T> {
        self.raw.lock();
        Guard { lock: self }
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.raw.try_lock().then(|| Guard { lock: self })
    }
}

/// Holds the lock until it is dropped.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard has the lock, so nobody writes the value while it is borrowed from the guard.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard has the lock and is borrowed mutably, so nobody else has a reference to the value.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.lock.raw.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let lock = Lock::new(0_u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let mut guard = lock.lock();
                        let seen = *guard;
                        std::hint::black_box(seen);
                        *guard = seen + 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), 80_000);
    }
}

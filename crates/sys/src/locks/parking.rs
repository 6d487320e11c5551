//! Threads parked at addresses. A thread that has to wait for an object in the segment sleeps on a word of its own stack,
//! found by the object's address in a table. The kernel sees no address of the segment.
//!
//! A thread is in the table before it looks whether it has to wait, and a waker looks into the table after its change. So
//! no wake-up is lost between the two.

use crate::alternate_stack::off_the_segment;
use crate::deferred_signals::SignalGuard;
use crate::errno::keep_errno;
use crate::futex::{self, Deadline, RawLock, Slept};
use std::cell::{Cell, UnsafeCell};
use std::ptr::{from_ref, null};
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// How a wait has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended<T> {
    /// There was no need to wait.
    Ready(T),
    /// By [`wake_one`] or [`wake_all`].
    Woken,
    /// A thread has been cancelled, possibly this one.
    Disturbed,
    /// A signal handler has run, and the wait was to end then.
    Interrupted,
    /// At the deadline.
    TimedOut,
}

/// When a wait ends other than by a wake-up.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    pub deadline: Option<Deadline>,
    /// Whether it ends after a signal handler.
    pub is_interruptible: bool,
}

const ASLEEP: u32 = 0;
const WOKEN: u32 = 1;
const DISTURBED: u32 = 2;

/// A parked thread.
struct Waiter {
    address: usize,
    state: AtomicU32,
    /// The next one of its bucket. Under the bucket's lock.
    next: Cell<*const Waiter>,
}

/// The waiters whose addresses share a hash, in the order of their arrival.
struct Bucket {
    lock: RawLock,
    /// Their number, for wakers without the lock.
    count: AtomicU32,
    first: UnsafeCell<*const Waiter>,
}

// SAFETY: only the owner of the lock accesses the list.
unsafe impl Sync for Bucket {}

const BUCKETS: usize = 256;
static TABLE: [Bucket; BUCKETS] =
    [const { Bucket { lock: RawLock::new(), count: AtomicU32::new(0), first: UnsafeCell::new(null()) } }; BUCKETS];

/// How many threads have been cancelled.
static CANCELLED: AtomicU32 = AtomicU32::new(0);

fn bucket(address: usize) -> &'static Bucket {
    // Objects are at least 4 bytes long. The multiplier is 2^64 divided by the golden ratio.
    let hash = ((address >> 2) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &TABLE[(hash >> 56) as usize % BUCKETS]
}

impl Bucket {
    fn locked<T>(&self, body: impl FnOnce(&Cell<*const Waiter>) -> T) -> T {
        let _signals = SignalGuard::new();
        self.lock.lock();
        // SAFETY: this thread has the lock, and a `Cell` may stand for an `UnsafeCell`'s value.
        let answer = body(unsafe { Cell::from_mut(&mut *self.first.get()) });
        self.lock.unlock();
        answer
    }

    fn append(&self, waiter: &Waiter) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.locked(|first| {
            let mut place = first;
            // SAFETY: waiters in the list exist, since they leave it before they end.
            while let Some(before) = unsafe { place.get().as_ref() } {
                place = &before.next;
            }
            place.set(waiter);
        });
    }

    /// Takes waiters that match out of the list, at most as many, and gives each this state. Returns their number.
    fn release(&self, limit: usize, state: u32, matches: impl Fn(&Waiter) -> bool) -> usize {
        let mut left = limit;
        self.locked(|first| {
            let mut place = first;
            // SAFETY: the same as in `append`.
            while let Some(waiter) = unsafe { place.get().as_ref() }.filter(|_| left > 0) {
                if !matches(waiter) {
                    place = &waiter.next;
                    continue;
                }
                place.set(waiter.next.get());
                left -= 1;
                self.count.fetch_sub(1, Ordering::Relaxed);
                let word = from_ref(&waiter.state);
                // The waiter may end from here on.
                waiter.state.store(state, Ordering::Release);
                futex::wake_one(word);
            }
        });
        limit - left
    }
}

/// Parks this thread at the address. `ready` may answer that there is no need to; it runs when wakers see the thread.
/// `before` is the number of cancelled threads that it has seen.
pub(super) fn wait<T>(
    address: usize,
    before: Cancelled,
    limits: Limits,
    ready: impl FnOnce() -> Option<T>,
) -> Ended<T> {
    let park = || {
        let waiter = Waiter { address, state: AtomicU32::new(ASLEEP), next: Cell::new(null()) };
        bucket(address).append(&waiter);
        // Whoever is cancelled after that finds the waiter.
        let ended = if CANCELLED.load(Ordering::SeqCst) == before.0 {
            ready().map_or_else(|| sleep(&waiter, limits), Ended::Ready)
        } else {
            Ended::Disturbed
        };
        leave(&waiter, ended)
    };
    keep_errno(|| off_the_segment(park))
}

fn sleep<T>(waiter: &Waiter, limits: Limits) -> Ended<T> {
    while waiter.state.load(Ordering::Acquire) == ASLEEP {
        match futex::wait_until(&waiter.state, ASLEEP, limits.deadline) {
            Slept::TimedOut => return Ended::TimedOut,
            Slept::Interrupted if limits.is_interruptible => return Ended::Interrupted,
            Slept::Interrupted | Slept::Woken => {}
        }
    }
    Ended::Woken
}

/// Takes the waiter out of the table. A wake-up counts more than another end, so that none is lost.
fn leave<T>(waiter: &Waiter, ended: Ended<T>) -> Ended<T> {
    if waiter.state.load(Ordering::Acquire) == ASLEEP {
        bucket(waiter.address).release(1, DISTURBED, |other| std::ptr::eq(other, waiter));
    }
    match (ended, waiter.state.load(Ordering::Acquire)) {
        (Ended::Ready(answer), WOKEN) => {
            // It was meant for a thread that waits.
            wake_one(waiter.address);
            Ended::Ready(answer)
        }
        (_, WOKEN) => Ended::Woken,
        (Ended::Woken, _) => Ended::Disturbed,
        (ended, _) => ended,
    }
}

/// Wakes the thread that has waited longest at the address.
pub(super) fn wake_one(address: usize) {
    wake(address, 1);
}

/// Wakes all threads that wait at the address.
pub(super) fn wake_all(address: usize) {
    wake(address, usize::MAX);
}

/// Wakes at most as many threads that wait at the address. Returns their number.
pub(super) fn wake(address: usize, limit: usize) -> usize {
    // The change that the waiters wait for comes before the look at their number.
    fence(Ordering::SeqCst);
    let bucket = bucket(address);
    if bucket.count.load(Ordering::SeqCst) == 0 {
        return 0;
    }
    keep_errno(|| bucket.release(limit, WOKEN, |waiter| waiter.address == address))
}

/// A number of cancelled threads.
#[derive(Clone, Copy)]
pub(super) struct Cancelled(u32);

/// The number of cancelled threads, taken before the thread looks whether it is one of them.
pub(super) fn cancelled() -> Cancelled {
    Cancelled(CANCELLED.load(Ordering::SeqCst))
}

/// Ends the waits of all threads, since one has been cancelled.
pub(super) fn disturb() {
    CANCELLED.fetch_add(1, Ordering::SeqCst);
    for bucket in &TABLE {
        if bucket.count.load(Ordering::SeqCst) > 0 {
            bucket.release(usize::MAX, DISTURBED, |_| true);
        }
    }
}

/// In a forked child: the threads that waited are the parent's.
pub(super) fn in_child() {
    for bucket in &TABLE {
        bucket.count.store(0, Ordering::Relaxed);
        // SAFETY: the child has one thread, this one.
        unsafe { bucket.first.get().write(null()) };
        if !bucket.lock.is_free() {
            bucket.lock.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parked_at(address: usize) -> Ended<()> {
        wait(address, cancelled(), Limits::default(), || None)
    }

    fn until_there_are(number: u32, address: usize) {
        while bucket(address).count.load(Ordering::SeqCst) < number {
            std::thread::yield_now();
        }
    }

    #[test]
    fn wake_ups_go_to_their_address_in_the_order_of_arrival() {
        let (mine, other) = (0x1000_0000, 0x1000_0000 + (BUCKETS << 20));
        std::thread::scope(|scope| {
            let first = scope.spawn(|| parked_at(mine));
            until_there_are(1, mine);
            let second = scope.spawn(|| parked_at(mine));
            until_there_are(2, mine);
            wake_all(other);
            assert_eq!(bucket(mine).count.load(Ordering::SeqCst), 2);
            wake_one(mine);
            assert_eq!(first.join().expect("it ends"), Ended::Woken);
            assert!(!second.is_finished());
            wake_one(mine);
            assert_eq!(second.join().expect("it ends"), Ended::Woken);
        });
        assert_eq!(bucket(mine).count.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn who_is_ready_or_late_leaves_the_table() {
        let place = 0x2000_0000;
        assert_eq!(wait(place, cancelled(), Limits::default(), || Some(7)), Ended::Ready(7));
        let time = libc::timespec { tv_sec: 1, tv_nsec: 0 };
        let past = Deadline { clock: libc::CLOCK_REALTIME, time };
        let limits = Limits { deadline: Some(past), is_interruptible: false };
        assert_eq!(wait::<()>(place, cancelled(), limits, || None), Ended::TimedOut);
        // A wake-up that comes meanwhile is not lost.
        let woken_meanwhile = || {
            wake_one(place);
            None
        };
        assert_eq!(wait::<()>(place, cancelled(), limits, woken_meanwhile), Ended::Woken);
        assert_eq!(bucket(place).count.load(Ordering::SeqCst), 0);
    }
}

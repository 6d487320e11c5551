//! Handler-safe locks: may be taken in handlers and outside.
//!
//! Handlers run only in threads in calls, so this is an ordinary lock, except that its owner may take it again.
//! GASNet-1 forbids nesting. But a client may poll while it holds a lock, and a handler run by the poll may take the
//! same lock: this works in GASNet's sequential mode, where locks do nothing.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use vgasnet_sys::futex::RawLock;

/// `vgasnet_hsl_t`. All zero is a free lock.
#[repr(C)]
#[derive(Debug, Default)]
pub struct HandlerSafeLock {
    raw: RawLock,
    /// The owning thread; 0 for none.
    owner: AtomicU32,
    /// Nesting depth. Only the owner uses it.
    depth: AtomicU32,
    _reserved: u32,
}

thread_local! {
    static THREAD: Cell<u32> = const { Cell::new(0) };
}

fn this_thread() -> u32 {
    THREAD.with(|thread| {
        if thread.get() == 0 {
            // SAFETY: the call has no conditions.
            thread.set(unsafe { libc::gettid() as u32 });
        }
        thread.get()
    })
}

impl HandlerSafeLock {
    /// Takes the lock; waits until it is free or this thread's.
    pub fn lock(&self) {
        if self.try_lock() {
            return;
        }
        self.raw.lock();
        self.own();
    }

    /// Takes the lock if it is free or this thread's.
    pub fn try_lock(&self) -> bool {
        if self.is_own() {
            self.depth.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        let taken = self.raw.try_lock();
        if taken {
            self.own();
        }
        taken
    }

    /// Releases the lock once, or completely if the caller is not the owner. Returns false, without effect, if the lock
    /// is free.
    #[must_use]
    pub fn unlock(&self) -> bool {
        if self.is_free() {
            return false;
        }
        if !self.is_own() || self.depth.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.owner.store(0, Ordering::Relaxed);
            self.raw.unlock();
        }
        true
    }

    /// Whether the lock is free.
    pub fn is_free(&self) -> bool {
        self.raw.is_free()
    }

    /// Whether this thread has the lock. Only the owner stores its own number, so no other thread finds its number
    /// here.
    fn is_own(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == this_thread()
    }

    fn own(&self) {
        self.owner.store(this_thread(), Ordering::Relaxed);
        self.depth.store(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn the_lock_excludes_other_threads_and_nests_for_its_owner() {
        let (lock, counter) = (HandlerSafeLock::default(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5_000 {
                        lock.lock();
                        assert!(lock.try_lock());
                        let seen = counter.load(Ordering::Relaxed);
                        std::hint::black_box(seen);
                        counter.store(seen + 1, Ordering::Relaxed);
                        assert!(lock.unlock() && lock.unlock());
                    }
                });
            }
        });
        assert_eq!(counter.load(Ordering::Relaxed), 20_000);
        assert!(lock.is_free() && !lock.unlock());
    }
}

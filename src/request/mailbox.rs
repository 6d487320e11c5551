//! Where threads that fault leave requests for the helper thread, without a lock.

use crate::sys::futex;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use vgasnet_protocol::coherence::Access;

const WAITING: u32 = 0;
const SERVED: u32 = 1;

/// Hints that are kept at most; more are dropped.
const HINTS: usize = 16;
const NO_HINT: u32 = u32::MAX;

/// A thread that waits for a page of its rank's segment. It lies on that thread's stack.
#[derive(Debug)]
pub struct Fault {
    /// The page's index.
    pub index: u32,
    /// What the thread wants to do there.
    pub access: Access,
    /// The thread drives the engine itself while it waits.
    pub drives: bool,
    next: AtomicPtr<Fault>,
    state: AtomicU32,
}

impl Fault {
    /// A thread that `drives` the engine itself, or else leaves a request and sleeps.
    pub fn new(index: u32, access: Access, drives: bool) -> Fault {
        Fault { index, access, drives, next: AtomicPtr::default(), state: AtomicU32::new(WAITING) }
    }

    /// Sleeps until the page is shown and pinned for this thread.
    pub fn wait(&self) {
        while !self.is_served() {
            futex::wait(&self.state, WAITING);
        }
    }

    /// Whether the page is shown and pinned for this thread.
    pub fn is_served(&self) -> bool {
        self.state.load(Ordering::Acquire) == SERVED
    }
}

/// Names a thread that waits to those who serve it.
#[derive(Debug)]
pub struct FaultId(NonNull<Fault>);

// SAFETY: the thread that it names does not go on until it is served, and what it names is read by one thread at a time.
unsafe impl Send for FaultId {}

impl FaultId {
    /// What it waits for.
    pub fn wants(&self) -> (u32, Access) {
        // SAFETY: the thread waits, so its fault is there; it is served through this name alone.
        let fault = unsafe { self.0.as_ref() };
        (fault.index, fault.access)
    }

    /// The thread that waits. It outlives what is done with this name: it goes on when that is served.
    pub fn of(fault: &Fault) -> FaultId {
        FaultId(NonNull::from(fault))
    }

    /// Whether the thread drives the engine while it waits.
    pub fn drives(&self) -> bool {
        // SAFETY: as in `wants`.
        unsafe { self.0.as_ref() }.drives
    }

    /// Lets the thread go on.
    fn serve(self) {
        // SAFETY: as in `wants`. Once the state is stored the fault may be gone; its address is only a name from then on.
        let (state, sleeps) = unsafe { (&raw const (*self.0.as_ptr()).state, !(*self.0.as_ptr()).drives) };
        // SAFETY: as above.
        unsafe { (*state).store(SERVED, Ordering::Release) };
        if sleeps {
            futex::wake_one(state);
        }
    }
}

/// Threads that wait, and hints.
#[derive(Debug)]
pub struct Mailbox {
    newest: AtomicPtr<Fault>,
    hints: [AtomicU32; HINTS],
    /// Threads that sleep until the engine has fetched their pages.
    asleep: AtomicU32,
}

impl Default for Mailbox {
    fn default() -> Mailbox {
        Mailbox {
            newest: AtomicPtr::default(),
            hints: [const { AtomicU32::new(NO_HINT) }; HINTS],
            asleep: AtomicU32::new(0),
        }
    }
}

impl Mailbox {
    /// Leaves the request of a thread, which then waits. The reader is to be woken.
    pub fn post(&self, fault: &Fault) {
        let this = std::ptr::from_ref(fault).cast_mut();
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            fault.next.store(newest, Ordering::Relaxed);
            match self.newest.compare_exchange_weak(newest, this, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => newest = now,
            }
        }
    }

    /// Notes that a page which was fetched ahead is used, if there is room.
    pub fn hint(&self, index: u32) {
        let leave =
            |hint: &AtomicU32| hint.compare_exchange(NO_HINT, index, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        self.hints.iter().any(leave);
    }

    /// Whether there is anything to take.
    pub fn has_any(&self) -> bool {
        !self.newest.load(Ordering::SeqCst).is_null()
            || self.hints.iter().any(|hint| hint.load(Ordering::SeqCst) != NO_HINT)
    }

    /// Whether threads sleep whose requests were taken.
    pub fn has_sleepers(&self) -> bool {
        self.asleep.load(Ordering::SeqCst) > 0
    }

    /// Lets a thread go on whose page is mapped and pinned.
    pub fn serve(&self, fault: FaultId) {
        if !fault.drives() {
            self.asleep.fetch_sub(1, Ordering::SeqCst);
        }
        fault.serve();
    }

    /// Takes the requests of threads that wait, for the engine to fetch their pages.
    pub fn take(&self) -> impl Iterator<Item = FaultId> + '_ {
        let mut next = self.newest.swap(std::ptr::null_mut(), Ordering::SeqCst);
        std::iter::from_fn(move || {
            let fault = FaultId(NonNull::new(next)?);
            // SAFETY: the thread waits until it is served, which is after this.
            next = unsafe { fault.0.as_ref() }.next.load(Ordering::Relaxed);
            self.asleep.fetch_add(1, Ordering::SeqCst);
            Some(fault)
        })
    }

    /// Takes the hints.
    pub fn take_hints(&self) -> impl Iterator<Item = u32> + '_ {
        self.hints.iter().map(|hint| hint.swap(NO_HINT, Ordering::SeqCst)).filter(|index| *index != NO_HINT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn every_thread_that_posts_is_served() {
        const THREADS: usize = 4;
        const EACH: u32 = 2_000;
        let (mailbox, left) = (Mailbox::default(), AtomicUsize::new(THREADS));
        let mut served = 0;
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for index in 0..EACH {
                        let fault = Fault::new(index, Access::Read, false);
                        mailbox.post(&fault);
                        fault.wait();
                        mailbox.hint(index);
                    }
                    left.fetch_sub(1, Ordering::Release);
                });
            }
            while left.load(Ordering::Acquire) > 0 {
                for waiting in mailbox.take() {
                    assert!(waiting.wants().0 < EACH);
                    mailbox.serve(waiting);
                    served += 1;
                }
                assert!(mailbox.take_hints().all(|index| index < EACH));
                std::thread::yield_now();
            }
        });
        assert_eq!(served, THREADS as u32 * EACH);
        mailbox.take_hints().for_each(drop);
        assert!(!mailbox.has_any());
    }
}

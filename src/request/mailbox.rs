//! The mailbox: threads that fault leave requests there for the helper thread, without a lock.

use crate::sys::futex;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use vgasnet_protocol::coherence::Access;

const WAITING: u32 = 0;
const SERVED: u32 = 1;

/// Hints that are kept; more are dropped.
const HINTS: usize = 16;
const NO_HINT: u32 = u32::MAX;

/// A thread that waits for a page of its rank's segment. It lies on that thread's stack.
#[derive(Debug)]
pub struct Fault {
    /// The page's index.
    pub index: u32,
    /// The access that faulted.
    pub access: Access,
    /// The thread drives the engine itself while it waits.
    pub drives: bool,
    next: AtomicPtr<Fault>,
    state: AtomicU32,
}

impl Fault {
    /// A thread that `drives` the engine itself, or leaves a request and sleeps.
    pub fn new(index: u32, access: Access, drives: bool) -> Fault {
        Fault { index, access, drives, next: AtomicPtr::default(), state: AtomicU32::new(WAITING) }
    }

    /// Sleeps until the page is mapped and pinned for this thread.
    pub fn wait(&self) {
        while !self.is_served() {
            futex::wait(&self.state, WAITING);
        }
    }

    /// Whether the page is mapped and pinned for this thread.
    pub fn is_served(&self) -> bool {
        self.state.load(Ordering::Acquire) == SERVED
    }
}

/// Names a waiting thread to those that serve it.
#[derive(Debug)]
pub struct FaultId(NonNull<Fault>);

// SAFETY: the thread waits until it is served, so its fault stays; the fault's fields are constant or atomic.
unsafe impl Send for FaultId {}

impl FaultId {
    /// The name of a thread that waits until it is served by this name.
    pub fn of(fault: &Fault) -> FaultId {
        FaultId(NonNull::from(fault))
    }

    /// The page's index, and the access that faulted.
    pub fn wants(&self) -> (u32, Access) {
        (self.fault().index, self.fault().access)
    }

    /// Whether the thread drives the engine while it waits.
    pub fn drives(&self) -> bool {
        self.fault().drives
    }

    fn fault(&self) -> &Fault {
        // SAFETY: the thread waits with its fault on the stack until `serve` consumes this one name of it.
        unsafe { self.0.as_ref() }
    }

    /// Lets the thread go on.
    fn serve(self) {
        let sleeps = !self.drives();
        // SAFETY: the thread waits with its fault on the stack until the state is stored.
        let state = unsafe { &raw const (*self.0.as_ptr()).state };
        // SAFETY: the fault is there until the state is stored. From then on its address only names the sleeper.
        unsafe { (*state).store(SERVED, Ordering::Release) };
        if sleeps {
            futex::wake_one(state);
        }
    }
}

/// The requests of threads that wait, and hints.
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
    /// Leaves the request of a thread, which then wakes the helper and waits.
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

    /// Notes the first use of a page that was fetched ahead, if there is room.
    pub fn hint(&self, index: u32) {
        let leave =
            |hint: &AtomicU32| hint.compare_exchange(NO_HINT, index, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        self.hints.iter().any(leave);
    }

    /// Whether there is a request or a hint.
    pub fn has_any(&self) -> bool {
        !self.newest.load(Ordering::SeqCst).is_null()
            || self.hints.iter().any(|hint| hint.load(Ordering::SeqCst) != NO_HINT)
    }

    /// Whether any thread whose request was taken still sleeps.
    pub fn has_sleepers(&self) -> bool {
        self.asleep.load(Ordering::SeqCst) > 0
    }

    /// Lets a thread go on, whose page is mapped and pinned now.
    pub fn serve(&self, fault: FaultId) {
        if !fault.drives() {
            self.asleep.fetch_sub(1, Ordering::SeqCst);
        }
        fault.serve();
    }

    /// Takes the requests, for the engine to fetch the pages.
    pub fn take(&self) -> impl Iterator<Item = FaultId> + '_ {
        let mut next = self.newest.swap(std::ptr::null_mut(), Ordering::SeqCst);
        std::iter::from_fn(move || {
            let fault = FaultId(NonNull::new(next)?);
            next = fault.fault().next.load(Ordering::Relaxed);
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

//! Where threads that fault leave word for the helper thread, without a lock.

use super::futex;
use crate::coherence::Access;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

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
    /// The thread that waits fetches the page itself, as a leader.
    pub leads: bool,
    next: AtomicPtr<Fault>,
    state: AtomicU32,
}

impl Fault {
    /// A thread that will fetch the page itself, if it `leads`, else leave word and wait.
    pub fn new(index: u32, access: Access, leads: bool) -> Fault {
        Fault { index, access, leads, next: AtomicPtr::default(), state: AtomicU32::new(WAITING) }
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

/// A thread that waits, named to those who serve it.
#[derive(Debug)]
pub struct Waiting(NonNull<Fault>);

// SAFETY: the thread that it names does not go on until it is served, and what it names is read by one thread at a time.
unsafe impl Send for Waiting {}

impl Waiting {
    /// What it waits for.
    pub fn wants(&self) -> (u32, Access) {
        // SAFETY: the thread waits, so its fault is there; it is served through this name alone.
        let fault = unsafe { self.0.as_ref() };
        (fault.index, fault.access)
    }

    /// The thread that waits. It outlives what is done with this name: it goes on when that is served.
    pub fn of(fault: &Fault) -> Waiting {
        Waiting(NonNull::from(fault))
    }

    /// Whether the thread drives the engine while it waits.
    pub fn leads(&self) -> bool {
        // SAFETY: as in `wants`.
        unsafe { self.0.as_ref() }.leads
    }

    /// Lets the thread go on.
    pub fn serve(self) {
        // SAFETY: as in `wants`. Once the state is stored the fault may be gone; its address is only a name from then on.
        let (state, sleeps) = unsafe { (&raw const (*self.0.as_ptr()).state, !(*self.0.as_ptr()).leads) };
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
}

impl Default for Mailbox {
    fn default() -> Mailbox {
        Mailbox { newest: AtomicPtr::default(), hints: [const { AtomicU32::new(NO_HINT) }; HINTS] }
    }
}

impl Mailbox {
    /// Leaves word of a thread, which then waits. The reader is to be woken.
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

    /// Leaves word that a page which was fetched ahead is used, if there is room.
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

    /// Takes the threads that wait.
    pub fn take(&self) -> impl Iterator<Item = Waiting> + use<> {
        let mut next = self.newest.swap(std::ptr::null_mut(), Ordering::SeqCst);
        std::iter::from_fn(move || {
            let waiting = Waiting(NonNull::new(next)?);
            // SAFETY: the thread waits until it is served, which is after this.
            next = unsafe { waiting.0.as_ref() }.next.load(Ordering::Relaxed);
            Some(waiting)
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
                    waiting.serve();
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

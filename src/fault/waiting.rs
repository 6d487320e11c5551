//! Threads that wait for a page, and what becomes of those that do not come back.
//!
//! A thread that has waited for long lets the client's signals in. A handler may jump out of the access for good, and the
//! thread may then do anything, or end. So nothing is pinned for the access while a handler runs ([`let_go`]): an access
//! that goes on afterwards waits on, or asks again where its page has come meanwhile. A thread waits in a place that
//! stays, and its next fault gives the places back that earlier ones have left ([`left_behind`]).

use crate::request::Fault;
use crate::sys::{THREAD_TABLE_LEN, places_of_thread, thread_key};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use vgasnet_protocol::coherence::Access;

/// Where the frame of a handler of SIGSEGV lies.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    address: usize,
    pub(super) is_on_alternate_stack: bool,
}

impl Frame {
    /// # Safety
    /// `context` is the ucontext of the signal handler that calls this; it is in the handler's frame.
    pub(super) unsafe fn of(context: *mut c_void) -> Frame {
        // SAFETY: `context` is a ucontext, whose stack is the alternate one of this thread, if it has one.
        let stack = unsafe { (*context.cast::<libc::ucontext_t>()).uc_stack };
        let (address, start) = (context.addr(), stack.ss_sp.addr());
        Frame { address, is_on_alternate_stack: (start..start + stack.ss_size).contains(&address) }
    }

    /// Whether the thread has left this frame for good, where a handler of it has the frame `now`. Stacks grow downwards,
    /// and a thread on its own stack has left the alternate one.
    fn is_left_in(self, now: Frame) -> bool {
        if self.is_on_alternate_stack == now.is_on_alternate_stack {
            self.address <= now.address
        } else {
            self.is_on_alternate_stack
        }
    }
}

/// A place for a thread that waits.
#[repr(align(64))]
pub(super) struct Place {
    fault: Fault,
    /// The thread's key, or 0.
    thread: AtomicUsize,
    /// The frame of its signal handler: the address, and whether it is on the alternate stack. Only the thread with the
    /// key looks there.
    frame: Cell<Frame>,
}

// SAFETY: all else is atomic, and the frame belongs to the thread that has taken the fault.
unsafe impl Sync for Place {}

const NO_FRAME: Frame = Frame { address: 0, is_on_alternate_stack: false };

static PLACES: [Place; THREAD_TABLE_LEN] =
    [const { Place { fault: Fault::new(), thread: AtomicUsize::new(0), frame: Cell::new(NO_FRAME) } };
        THREAD_TABLE_LEN];

/// Threads that let signals in while they wait, and those that have not come back from them.
static INTERRUPTED: AtomicUsize = AtomicUsize::new(0);

impl Place {
    /// A place for this thread, whose handler of SIGSEGV has its frame there; `None` if all are taken.
    pub(super) fn take(frame: Frame, index: u32, access: Access, looks: bool) -> Option<&'static Place> {
        let place = places_of_thread(thread_key())
            .map(|place| &PLACES[place])
            .find(|place| place.fault.begin(index, access, looks))?;
        place.frame.set(frame);
        place.thread.store(thread_key(), Ordering::Relaxed);
        Some(place)
    }

    pub(super) fn fault(&self) -> &Fault {
        &self.fault
    }

    /// Runs `wait`, which lets signals in and blocks them again.
    pub(super) fn interruptibly(&self, wait: impl FnOnce()) {
        INTERRUPTED.fetch_add(1, Ordering::Relaxed);
        wait();
        INTERRUPTED.fetch_sub(1, Ordering::Relaxed);
    }

    /// Sleeps until the wait is over. Looks after every such time.
    pub(super) fn wait(&self, every: Option<Duration>, mut look: impl FnMut()) {
        while !self.fault.is_over() {
            self.fault.wait(every);
            look();
        }
    }

    /// Gives it back, after the wait. Returns whether the page is pinned for this thread.
    pub(super) fn give_back(&self) -> bool {
        let is_served = self.fault.is_served();
        self.thread.store(0, Ordering::Relaxed);
        self.fault.end();
        is_served
    }
}

/// The places of this thread, if any thread has let signals in.
fn own_places() -> impl Iterator<Item = &'static Place> {
    let places = if INTERRUPTED.load(Ordering::Relaxed) > 0 { &PLACES[..] } else { &[] };
    let key = thread_key();
    places.iter().filter(move |place| place.thread.load(Ordering::Relaxed) == key)
}

/// The pages that are pinned for accesses of this thread that a handler of the client interrupts. The caller unpins them,
/// before the handler runs.
pub(super) fn let_go() -> impl Iterator<Item = u32> {
    own_places().filter_map(|place| place.fault.interrupt())
}

/// Gives the places back of accesses which this thread, whose handler has this frame, has left for good. Returns the pages
/// that are pinned for them, which the caller unpins: none, unless a handler ran that the library does not see.
pub(super) fn left_behind(now: Frame) -> impl Iterator<Item = u32> {
    own_places().filter(move |place| place.frame.get().is_left_in(now)).filter_map(|place| {
        INTERRUPTED.fetch_sub(1, Ordering::Relaxed);
        place.thread.store(0, Ordering::Relaxed);
        place.fault.abandon()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_below_and_those_of_a_stack_that_was_left_are_behind() {
        let frame = |address, is_on_alternate_stack| Frame { address, is_on_alternate_stack };
        let (own, alternate) = (|address| frame(address, false), |address| frame(address, true));
        assert!(own(10).is_left_in(own(20)) && !own(20).is_left_in(own(10)));
        assert!(alternate(10).is_left_in(alternate(10)) && !alternate(20).is_left_in(alternate(10)));
        assert!(alternate(20).is_left_in(own(10)) && alternate(10).is_left_in(own(20)));
        assert!(!own(10).is_left_in(alternate(20)) && !own(20).is_left_in(alternate(10)));
    }
}

//! Threads that wait for a page, and what becomes of those that do not come back.
//!
//! A thread that has waited for long lets the client's signals in. A handler may jump out of the access for good. So a
//! thread waits in a place that stays, and the thread's next fault finds what an earlier one has left.

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

    /// Sleeps until the page is mapped and pinned for this thread, whose handlers may run meanwhile. Looks after every such
    /// time.
    pub(super) fn wait_interrupted(&self, every: Option<Duration>, mut look: impl FnMut()) {
        INTERRUPTED.fetch_add(1, Ordering::Relaxed);
        while !self.fault.is_served() {
            self.fault.wait(every);
            look();
        }
        INTERRUPTED.fetch_sub(1, Ordering::Relaxed);
    }

    /// Gives it back, after the thread was served.
    pub(super) fn give_back(&self) {
        self.thread.store(0, Ordering::Relaxed);
        self.fault.end();
    }
}

/// The pages that are pinned for accesses which this thread, whose handler has this frame, has left for good. The caller
/// unpins them.
pub(super) fn left_behind(now: Frame) -> impl Iterator<Item = u32> {
    let key = thread_key();
    let is_left =
        move |place: &&Place| place.thread.load(Ordering::Relaxed) == key && place.frame.get().is_left_in(now);
    let places = if INTERRUPTED.load(Ordering::Relaxed) > 0 { &PLACES[..] } else { &[] };
    places.iter().filter(is_left).filter_map(|place| {
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

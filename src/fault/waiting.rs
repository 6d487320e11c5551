//! Threads waiting for a page, and the entries of threads that do not come back.
//!
//! After a long wait a thread lets the client's signals in. A handler may jump out of the access for good, and the
//! thread may then do anything, or end. So nothing is pinned for the access while a handler runs ([`let_go`]): an
//! access that continues afterwards waits on, or faults again if its page has arrived meanwhile. A waiting thread's
//! entry is static, and the thread's next fault frees the entries of abandoned ones ([`left_behind`]).

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use vgasnet_engine::request::Fault;
use vgasnet_protocol::coherence::Access;
use vgasnet_sys::{THREAD_TABLE_LEN, places_of_thread, thread_key};

/// Bytes of an alternate stack that a thread needs to drive the engine: several times what it was seen to use.
const DRIVING_BYTES: usize = 64 << 10;

/// Position of a SIGSEGV handler's frame.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    address: usize,
    is_on_alternate_stack: bool,
    /// Whether the stack has room to drive the engine. An alternate one of the client's may be small.
    pub(super) has_room: bool,
}

impl Frame {
    /// # Safety
    /// `context` is the ucontext of the calling signal handler; it is in the handler's frame.
    pub(super) unsafe fn of(context: *mut c_void) -> Frame {
        // SAFETY: `context` is a ucontext. Its stack is the alternate one of this thread, if it has one.
        let stack = unsafe { (*context.cast::<libc::ucontext_t>()).uc_stack };
        let (address, start) = (context.addr(), stack.ss_sp.addr());
        let is_on_alternate_stack = (start..start + stack.ss_size).contains(&address);
        let has_room = !is_on_alternate_stack || address - start >= DRIVING_BYTES;
        Frame { address, is_on_alternate_stack, has_room }
    }

    /// Whether the thread has left this frame for good, given the frame `now` of its present handler. Stacks grow
    /// downwards, and a thread on its own stack has left the alternate one.
    fn is_left_in(self, now: Frame) -> bool {
        if self.is_on_alternate_stack == now.is_on_alternate_stack {
            self.address <= now.address
        } else {
            self.is_on_alternate_stack
        }
    }
}

/// An entry for a waiting thread.
#[repr(align(64))]
pub(super) struct WaitSlot {
    fault: Fault,
    /// The thread's key, or 0.
    thread: AtomicUsize,
    /// The frame of its signal handler. Only the thread with the key accesses it.
    frame: Cell<Frame>,
}

// SAFETY: all other fields are atomic, and the frame belongs to the thread that has taken the fault.
unsafe impl Sync for WaitSlot {}

const NO_FRAME: Frame = Frame { address: 0, is_on_alternate_stack: false, has_room: false };

static PLACES: [WaitSlot; THREAD_TABLE_LEN] =
    [const { WaitSlot { fault: Fault::new(), thread: AtomicUsize::new(0), frame: Cell::new(NO_FRAME) } };
        THREAD_TABLE_LEN];

/// Threads waiting with signals let in, and threads that have not come back from a handler.
static INTERRUPTED: AtomicUsize = AtomicUsize::new(0);

impl WaitSlot {
    /// An entry for this thread, with its SIGSEGV handler's frame; `None` if all are taken.
    pub(super) fn take(frame: Frame, index: u32, access: Access, looks: bool) -> Option<&'static WaitSlot> {
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

    /// Sleeps until the wait is over, and calls `look` at each interval.
    pub(super) fn wait(&self, every: Option<Duration>, mut look: impl FnMut()) {
        while !self.fault.is_over() {
            self.fault.wait(every);
            look();
        }
    }

    /// Frees the entry after the wait. Returns whether the page is pinned for this thread.
    pub(super) fn give_back(&self) -> bool {
        let is_served = self.fault.is_served();
        self.thread.store(0, Ordering::Relaxed);
        self.fault.end();
        is_served
    }
}

/// The entries of this thread, if any thread has let signals in.
fn own_places() -> impl Iterator<Item = &'static WaitSlot> {
    let places = if INTERRUPTED.load(Ordering::Relaxed) > 0 { &PLACES[..] } else { &[] };
    let key = thread_key();
    places.iter().filter(move |place| place.thread.load(Ordering::Relaxed) == key)
}

/// The pages pinned for interrupted accesses of this thread. The caller unpins them before the client's handler runs.
pub(super) fn let_go() -> impl Iterator<Item = u32> {
    own_places().filter_map(|place| place.fault.interrupt())
}

/// Frees the entries of accesses that this thread has left for good, given its present handler's frame. Returns their
/// pinned pages, which the caller unpins: none, unless a handler ran unnoticed by the library.
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
    fn frames_below_and_on_an_abandoned_stack_are_left() {
        let frame = |address, is_on_alternate_stack| Frame { address, is_on_alternate_stack, ..NO_FRAME };
        let (own, alternate) = (|address| frame(address, false), |address| frame(address, true));
        assert!(own(10).is_left_in(own(20)) && !own(20).is_left_in(own(10)));
        assert!(alternate(10).is_left_in(alternate(10)) && !alternate(20).is_left_in(alternate(10)));
        assert!(alternate(20).is_left_in(own(10)) && alternate(10).is_left_in(own(20)));
        assert!(!own(10).is_left_in(alternate(20)) && !own(20).is_left_in(alternate(10)));
    }
}

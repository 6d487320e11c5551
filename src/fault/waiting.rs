//! Threads that wait for a page, and what becomes of those that do not come back.
//!
//! A thread that has waited for long lets the client's signals in. A handler may jump out of the access for good. So a
//! thread waits in a place that stays, and the thread's next fault finds what an earlier one has left.

use crate::request::Fault;
use crate::sys::{THREAD_TABLE_LEN, places_of_thread, thread_key};
use std::sync::atomic::{AtomicUsize, Ordering};
use vgasnet_protocol::coherence::Access;

/// A place for a thread that waits.
#[repr(align(64))]
pub(super) struct Place {
    fault: Fault,
    /// The thread's key, or 0.
    thread: AtomicUsize,
    /// The address of the frame of its signal handler. Stacks grow downwards.
    frame: AtomicUsize,
}

static PLACES: [Place; THREAD_TABLE_LEN] =
    [const { Place { fault: Fault::new(), thread: AtomicUsize::new(0), frame: AtomicUsize::new(0) } };
        THREAD_TABLE_LEN];

/// Threads that let signals in while they wait, and those that have not come back from them.
static INTERRUPTED: AtomicUsize = AtomicUsize::new(0);

impl Place {
    /// A place for this thread, whose handler of SIGSEGV has its frame there; `None` if all are taken.
    pub(super) fn take(frame: usize, index: u32, access: Access, looks: bool) -> Option<&'static Place> {
        let place = places_of_thread(thread_key())
            .map(|place| &PLACES[place])
            .find(|place| place.fault.begin(index, access, looks))?;
        place.frame.store(frame, Ordering::Relaxed);
        place.thread.store(thread_key(), Ordering::Relaxed);
        Some(place)
    }

    pub(super) fn fault(&self) -> &Fault {
        &self.fault
    }

    /// Sleeps until the page is mapped and pinned for this thread, whose handlers may run meanwhile.
    pub(super) fn wait_interrupted(&self) {
        INTERRUPTED.fetch_add(1, Ordering::Relaxed);
        self.fault.wait(None);
        INTERRUPTED.fetch_sub(1, Ordering::Relaxed);
    }

    /// Gives it back, after the thread was served.
    pub(super) fn give_back(&self) {
        self.thread.store(0, Ordering::Relaxed);
        self.fault.end();
    }
}

/// The pages that are pinned for accesses which this thread has left for good: their frames are below this one. The caller
/// unpins them.
pub(super) fn left_behind(frame: usize) -> impl Iterator<Item = u32> {
    let key = thread_key();
    let is_left = move |place: &&Place| {
        place.thread.load(Ordering::Relaxed) == key && place.frame.load(Ordering::Relaxed) < frame
    };
    let places = if INTERRUPTED.load(Ordering::Relaxed) > 0 { &PLACES[..] } else { &[] };
    places.iter().filter(is_left).filter_map(|place| {
        INTERRUPTED.fetch_sub(1, Ordering::Relaxed);
        place.thread.store(0, Ordering::Relaxed);
        place.fault.abandon()
    })
}

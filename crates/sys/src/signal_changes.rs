//! Serialises changes of the client's dispositions, with forks excluded and signals blocked.
//!
//! Until attach the kernel calls the client's handlers directly, and a handler may change dispositions: so a thread
//! blocks signals in the kernel during a change.

use super::deferred_signals::keep_slots_of_this_thread;
use super::futex::RawLock;
use super::signal_mask::{Mask, RESERVED, change_mask};
use super::thread_table::thread_key;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// Held during a change of a disposition, and during a fork.
static CHANGING: RawLock = RawLock::new();

/// The key of the forking thread, or 0. It holds [`CHANGING`], and the client's fork handlers may change dispositions.
static FORKING: AtomicUsize = AtomicUsize::new(0);

/// The process whose dispositions are in this memory; 0 before there are any.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Sets the process of the dispositions to this one.
pub(super) fn note_process() {
    // SAFETY: the call has no conditions.
    PROCESS.store(unsafe { libc::getpid() }, Ordering::Relaxed);
}

/// Whether this is a child that has borrowed its parent's memory (vfork): the dispositions here are the parent's.
pub(super) fn is_borrowed() -> bool {
    let process = PROCESS.load(Ordering::Relaxed);
    // SAFETY: the call has no conditions.
    process != 0 && process != unsafe { libc::getpid() }
}

/// While it exists, only this thread changes dispositions.
pub(super) struct Change {
    /// The thread's mask.
    before: Mask,
    /// False while the thread forks.
    has_taken: bool,
}

impl Change {
    pub(super) fn begin() -> Change {
        let before = block_all();
        let has_taken = !is_forking();
        if has_taken {
            CHANGING.lock();
        }
        Change { before, has_taken }
    }

    /// As [`Change::begin`], unless another change is in progress, which this thread may have interrupted.
    pub(super) fn try_begin() -> Option<Change> {
        let before = block_all();
        let has_taken = !is_forking() && CHANGING.try_lock();
        if !has_taken {
            change_mask(libc::SIG_SETMASK, Some(before));
        }
        has_taken.then_some(Change { before, has_taken })
    }
}

/// Whether this thread forks, and so excludes other threads' changes.
fn is_forking() -> bool {
    FORKING.load(Ordering::Relaxed) == thread_key()
}

impl Drop for Change {
    fn drop(&mut self) {
        if self.has_taken {
            CHANGING.unlock();
        }
        change_mask(libc::SIG_SETMASK, Some(self.before));
    }
}

/// Keeps dispositions and deferring consistent in a child forked by a thread of the client while another thread changes
/// a disposition or defers signals. To be called early.
pub fn survive_forks() {
    static ONCE: Once = Once::new();
    extern "C" fn before_fork() {
        let before = block_all();
        CHANGING.lock();
        FORKING.store(thread_key(), Ordering::Relaxed);
        change_mask(libc::SIG_SETMASK, Some(before));
    }
    extern "C" fn after_fork() {
        let before = block_all();
        FORKING.store(0, Ordering::Relaxed);
        CHANGING.unlock();
        change_mask(libc::SIG_SETMASK, Some(before));
    }
    extern "C" fn in_child() {
        keep_slots_of_this_thread();
        crate::locks::in_child();
        if PROCESS.load(Ordering::Relaxed) != 0 {
            note_process();
        }
        after_fork();
    }
    // SAFETY: the functions have the expected types. Without memory for the entry, children do without.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child));
    });
}

/// Blocks all signals of the client; returns this thread's mask.
fn block_all() -> Mask {
    change_mask(libc::SIG_BLOCK, Some(!RESERVED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deferred_signals::{SignalGuard, owned_slots};
    use crate::in_child::status_of;
    use std::ffi::c_int;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;

    static CHANGES: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn change(_: c_int) {
        let _change = Change::begin();
        CHANGES.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn handlers_that_change_dispositions_interrupt_no_change() {
        let status = status_of(|| {
            // SAFETY: the handler is valid, and the other arguments are numbers.
            unsafe {
                libc::signal(libc::SIGUSR1, change as *const () as usize);
                let own = Change::begin();
                libc::raise(libc::SIGUSR1);
                let early = CHANGES.load(Ordering::Relaxed);
                drop(own);
                early == 0 && CHANGES.load(Ordering::Relaxed) == 1
            }
        });
        assert_eq!(status, 0);
    }

    #[test]
    fn children_of_threads_next_to_one_that_changes_dispositions() {
        survive_forks();
        let ends = AtomicBool::new(false);
        let failed = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    drop(Change::begin());
                }
            });
            let changes = || {
                drop(Change::begin());
                true
            };
            let failed = (0..100).map(|_| status_of(changes)).find(|status| *status != 0);
            ends.store(true, Ordering::Relaxed);
            failed
        });
        assert_eq!(failed, None);
    }

    #[test]
    fn children_have_no_slots_of_other_threads() {
        survive_forks();
        let ((has_slots, slots), (end, ends)) = (channel(), channel::<()>());
        let status = std::thread::scope(|scope| {
            scope.spawn(move || {
                let _guards = [SignalGuard::new(), SignalGuard::new()];
                has_slots.send(()).expect("the test");
                let _ = ends.recv();
            });
            slots.recv().expect("the thread");
            let _own = SignalGuard::new();
            // There may have been no slot left for it.
            let status = status_of(|| owned_slots() <= 1);
            drop(end);
            status
        });
        assert_eq!(status, 0);
    }
}

//! Changes of the client's dispositions: one at a time, and no signal comes meanwhile.
//!
//! Until attach the kernel calls the client's handlers directly, and a handler may change dispositions: so who changes
//! one blocks signals in the kernel.

use super::futex::RawLock;
use super::signal_mask::{Mask, RESERVED, change_mask};

/// A thread that changes a disposition has it.
static CHANGING: RawLock = RawLock::new();

/// While it exists, this thread alone changes dispositions.
pub(super) struct Change {
    /// The thread's mask.
    before: Mask,
}

impl Change {
    pub(super) fn begin() -> Change {
        let before = block_all();
        CHANGING.lock();
        Change { before }
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        CHANGING.unlock();
        change_mask(libc::SIG_SETMASK, Some(self.before));
    }
}

/// Blocks all signals of the client; returns this thread's mask.
fn block_all() -> Mask {
    change_mask(libc::SIG_BLOCK, Some(!RESERVED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::in_child::status_of;
    use std::ffi::c_int;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static CHANGES: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn change(_: c_int) {
        let _change = Change::begin();
        CHANGES.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn handlers_that_change_dispositions_interrupt_no_change() {
        let status = status_of(|| {
            // SAFETY: the handler is one, and the calls take numbers besides.
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
}

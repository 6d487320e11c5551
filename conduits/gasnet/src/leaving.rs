//! How a process leaves a job that agents look after.
//!
//! GASNet's end waits for all ranks, or ends them without a word. When a rank has failed, the others are neither to wait nor to
//! vanish: it just ends, and the launcher tells them.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use vgasnet_cluster::is_attended;

use crate::ffi;

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    /// glibc's: runs `function` with the exit status when the process exits.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// From now on, an exit before [`expect_exit`] leaves GASNet out. To be called after GASNet's start, which registers what it
/// wants to do at exit: of such functions the last comes first.
pub(crate) fn guard_exit() {
    if is_attended() {
        // SAFETY: the function stays loaded as long as the process lives. If there is no memory for it, GASNet ends the job.
        unsafe { on_exit(leave, std::ptr::null_mut()) };
    }
}

/// From now on, the launcher's agent tells this rank of the others' ends. To be called after attach.
pub(crate) fn heed_agent() {
    if is_attended() {
        ffi::heed_ends(false);
    }
}

/// The job is over, and GASNet may end as it likes.
pub(crate) fn expect_exit() {
    IS_CLOSED.store(true, Ordering::Release);
    ffi::heed_ends(true);
}

extern "C" fn leave(status: c_int, _: *mut c_void) {
    if !IS_CLOSED.load(Ordering::Acquire) {
        ffi::flush();
        // SAFETY: ends the process at once; nothing of it is used any more.
        unsafe { libc::_exit(status) }
    }
}

//! GASNet's exit hooks, held back in jobs that agents look after and in forked children.
//!
//! GASNet's end waits for all ranks, or ends them without a word. When a rank has failed, the others are neither to wait nor to
//! vanish: the rank just ends, and the launcher tells them.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use vgasnet_hybrid::{Passed, has_agent, pass_descriptor};

use crate::ffi::{self, is_attached};

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// The rank's process.
static PID: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" {
    /// glibc's: runs `function` with the exit status when the process exits.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// From now on, an exit before [`expect_exit`] leaves GASNet out, and that of a child always. To be called after GASNet's start, which
/// registers exit handlers: the last one runs first.
pub(crate) fn guard_exit() {
    PID.store(std::process::id(), Ordering::Relaxed);
    // SAFETY: the function stays loaded as long as the process lives. If there is no memory for it, GASNet ends the job.
    unsafe { on_exit(leave, std::ptr::null_mut()) };
}

/// Whether GASNet is left out where ranks end. Where the program calls GASNet itself, it may end the job by it.
fn is_apart() -> bool {
    has_agent() && !is_attached() && !IS_CLOSED.load(Ordering::Acquire)
}

/// From now on, GASNet's launcher and this rank learn of other ranks' ends from the agents. To be called after GASNet's start.
pub(crate) fn leave_out_launcher() {
    if let Some(connection) = ffi::connection().filter(|_| is_apart()) {
        // The agent keeps the connection open, so the launcher does not notice this process's end before the agent's.
        pass_descriptor(connection, Passed::Connection);
        ffi::hear_launcher(false);
    }
}

/// Does something for which GASNet needs its launcher. No other thread calls GASNet meanwhile.
pub(crate) fn with_launcher<T>(what: impl FnOnce() -> T) -> T {
    ffi::hear_launcher(true);
    let done = what();
    if is_apart() {
        ffi::hear_launcher(false);
    }
    done
}

/// The job is over, and GASNet may end as it likes.
pub(crate) fn expect_exit() {
    IS_CLOSED.store(true, Ordering::Release);
    ffi::hear_launcher(true);
}

extern "C" fn leave(status: c_int, _: *mut c_void) {
    let is_child = PID.load(Ordering::Relaxed) != std::process::id();
    if is_child || (has_agent() && !IS_CLOSED.load(Ordering::Acquire)) {
        ffi::flush();
        // SAFETY: ends the process at once; nothing of it is used any more.
        unsafe { libc::_exit(status) }
    }
}

//! Suppression of GASNet's exit hooks, in jobs with agents and in forked children.
//!
//! GASNet's end waits for all ranks, or ends them silently. After a rank's failure the others must neither wait nor
//! vanish: the rank just ends, and the launcher tells them.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use vgasnet_hybrid::{Passed, has_agent, pass_descriptor};

use crate::ffi::{self, is_attached};

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// The rank's process.
static PID: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" {
    /// glibc: runs `function` with the exit status when the process exits.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// From now on, an exit before [`expect_exit`] skips GASNet, and a child's exit always does. Called after GASNet's
/// start, which registers exit handlers: the last one runs first.
pub(crate) fn guard_exit() {
    PID.store(std::process::id(), Ordering::Relaxed);
    // SAFETY: the function stays loaded as long as the process lives. Without memory for it, GASNet ends the job.
    unsafe { on_exit(leave, std::ptr::null_mut()) };
}

/// Whether GASNet is skipped when ranks end. A program calling GASNet itself may end the job by it.
fn is_apart() -> bool {
    has_agent() && !is_attached() && !IS_CLOSED.load(Ordering::Acquire)
}

/// From now on, GASNet's launcher and this rank learn of other ranks' ends from the agents. Called after GASNet's
/// start.
pub(crate) fn leave_out_launcher() {
    if let Some(connection) = ffi::connection().filter(|_| is_apart()) {
        // The agent keeps the connection open, so the launcher does not notice this process's end before the agent's.
        pass_descriptor(connection, Passed::Connection);
        ffi::hear_launcher(false);
    }
}

/// Runs code during which GASNet needs its launcher. No other thread calls GASNet meanwhile.
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
        // SAFETY: ends the process at once; no state is used afterwards.
        unsafe { libc::_exit(status) }
    }
}

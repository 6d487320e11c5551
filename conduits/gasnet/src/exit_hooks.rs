//! How a process leaves a job that agents look after.
//!
//! GASNet's end waits for all ranks, or ends them without a word. When a rank has failed, the others are neither to wait nor to
//! vanish: it just ends, and the launcher tells them.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use vgasnet_hybrid::{attendant, entrust, is_attended};

use crate::beside::is_attached;
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

/// Over the smp conduit a rank learns of another one's end by SIGIO, and ends. Leaves that to the launcher, as long as there is one.
/// To be called by the thread that has started GASNet.
pub(crate) fn outlive_others() {
    let Some(launcher) = attendant().filter(|_| is_apart()) else { return };
    // SAFETY: the calls fill in what they are given, and the new action is the old one but for its handler, which lives as long as
    // the process and only calls functions that handlers may.
    unsafe {
        let mut action = std::mem::zeroed::<libc::sigaction>();
        let is_known = libc::sigaction(libc::SIGIO, std::ptr::null(), &raw mut action) == 0;
        if !is_known || matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN) {
            return;
        }
        let gasnets = std::mem::transmute::<usize, extern "C" fn(c_int)>(action.sa_sigaction);
        let parent = libc::getppid();
        KEPT.get_or_init(|| Kept { parents: [parent, launcher], gasnets });
        action.sa_sigaction = on_end_of_another as *const () as usize;
        libc::sigaction(libc::SIGIO, &raw const action, std::ptr::null_mut());
        // The launcher's own child ends with it in any case. What comes when a connection breaks comes too early to tell whether the
        // launcher lives.
        if parent != launcher {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGIO);
            if libc::getppid() != parent {
                libc::raise(libc::SIGIO);
            }
        }
    }
}

/// What GASNet would do.
struct Kept {
    /// Whose child this process is, the first rank or what has started that, and the launcher, whose child it becomes after that.
    parents: [i32; 2],
    gasnets: extern "C" fn(c_int),
}

static KEPT: OnceLock<Kept> = OnceLock::new();

extern "C" fn on_end_of_another(signal: c_int) {
    let Some(kept) = KEPT.get() else { return };
    // SAFETY: the call has no condition.
    let is_looked_after = kept.parents.contains(&unsafe { libc::getppid() });
    if !is_looked_after || IS_CLOSED.load(Ordering::Acquire) {
        (kept.gasnets)(signal);
    }
}

/// Whether GASNet is left out where ranks end. Where the program calls GASNet itself, it may end the job by it.
fn is_apart() -> bool {
    is_attended() && !is_attached() && !IS_CLOSED.load(Ordering::Acquire)
}

/// From now on, GASNet's launcher and this rank learn of other ranks' ends from the agents. To be called after GASNet's start.
pub(crate) fn leave_launcher_out() {
    if let Some(connection) = ffi::connection().filter(|_| is_apart()) {
        // With that, the launcher does not notice this process's end before the agent's.
        entrust(connection);
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
    if !IS_CLOSED.load(Ordering::Acquire) {
        ffi::flush();
        // SAFETY: ends the process at once; nothing of it is used any more.
        unsafe { libc::_exit(status) }
    }
}

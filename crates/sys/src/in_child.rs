//! Runs tests in a forked child if they change once-only process state or may hang.

use std::ffi::c_int;

/// Runs `body` in a child, which the kernel ends if it hangs: by SIGALRM, or if this is blocked and it loops, by
/// SIGKILL. Returns the child's status: 0 if `body` is true.
pub(super) fn status_of(body: impl FnOnce() -> bool) -> c_int {
    let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let time_limit = libc::rlimit { rlim_cur: 20, rlim_max: 20 };
    // SAFETY: the child does nothing but the following.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: the calls take numbers, and valid limits. The last one does not return.
        unsafe {
            libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core);
            libc::setrlimit(libc::RLIMIT_CPU, &raw const time_limit);
            libc::alarm(20);
            libc::_exit(c_int::from(!body()));
        }
    }
    let mut status = -1;
    // SAFETY: the child is this thread's, and the status has room.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    status
}

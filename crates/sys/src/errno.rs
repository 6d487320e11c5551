//! The C library's errno of the calling thread.

use std::ffi::c_int;

fn place() -> *mut c_int {
    // SAFETY: the call has no conditions.
    unsafe { libc::__errno_location() }
}

/// The errno value of the call that has just failed.
pub fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)
}

/// Sets errno.
pub fn set_errno(errno: c_int) {
    // SAFETY: the place is this thread's own and valid as long as the thread.
    unsafe { place().write(errno) };
}

/// Runs `body` and restores errno, as a signal handler has to.
pub fn keep_errno<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: the place is this thread's own and valid as long as the thread.
    let before = unsafe { place().read() };
    let answer = body();
    set_errno(before);
    answer
}

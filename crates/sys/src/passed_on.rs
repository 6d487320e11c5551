//! How many handlers of the client have been called with a signal's ucontext.

use std::ffi::c_void;

/// Added to the unused bits of a ucontext's flags for each handler of the client that has been called with it. A
/// handler that replaced the library's, and found it there, may call the library's with signals it does not handle
/// itself.
pub(super) const PASSED_ON: libc::c_ulong = 1 << 60;

/// # Safety
/// `context` is a ucontext.
pub(super) unsafe fn times_passed_on(context: *mut c_void) -> libc::c_ulong {
    // SAFETY: it is a ucontext.
    unsafe { (*context.cast::<libc::ucontext_t>()).uc_flags / PASSED_ON }
}

/// # Safety
/// `context` is a ucontext.
pub(super) unsafe fn pass_on(context: *mut c_void, more: libc::c_ulong) {
    // SAFETY: it is a ucontext, and nobody else touches it while its handler runs.
    unsafe {
        let flags = &raw mut (*context.cast::<libc::ucontext_t>()).uc_flags;
        flags.write(flags.read().wrapping_add(more));
    }
}

//! Sets of signals, and a thread's mask of blocked ones.

use std::ffi::{c_int, c_void};

/// A set of signals in the kernel's format: signal `n` is bit `n - 1`.
pub type Mask = u64;

/// Signals raised by an instruction. They must reach their handler at once: blocked, they end the process.
pub(super) const SYNCHRONOUS: Mask =
    bit(libc::SIGSEGV) | bit(libc::SIGBUS) | bit(libc::SIGILL) | bit(libc::SIGFPE) | bit(libc::SIGTRAP);

/// Signals reserved by the C library (nptl(7)).
pub(super) const RESERVED: Mask = bit(32) | bit(33);

/// All other signals. They come from elsewhere and can wait.
pub const ASYNCHRONOUS: Mask = !(SYNCHRONOUS | RESERVED);

/// The set of one signal.
pub(super) const fn bit(signal: c_int) -> Mask {
    1 << (signal - 1)
}

/// The kernel's part of a signal set.
pub(super) fn to_mask(set: &libc::sigset_t) -> Mask {
    // SAFETY: on Linux a signal set begins with the kernel's mask, of 64 signals.
    unsafe { std::ptr::from_ref(set).cast::<Mask>().read() }
}

/// Changes this thread's mask, if one is given; returns the old one.
pub(super) fn change_mask(how: c_int, mask: Option<Mask>) -> Mask {
    let mut before: Mask = 0;
    let new = mask.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: both masks have the given size, and the call keeps neither.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, new, &raw mut before, size_of::<Mask>()) };
    before
}

/// The mask restored in the interrupted thread when a signal handler returns.
///
/// # Safety
/// `context` is the ucontext of a signal handler.
pub unsafe fn mask_in(context: *mut c_void) -> *mut Mask {
    // SAFETY: `context` is a ucontext. Its signal set begins with the kernel's mask, of 64 signals.
    unsafe { (&raw mut (*context.cast::<libc::ucontext_t>()).uc_sigmask).cast() }
}

/// Runs `body` with the signals admitted by the interrupted thread.
///
/// # Safety
/// `context` is the ucontext of the calling signal handler.
pub unsafe fn with_signals_of(context: *mut c_void, body: impl FnOnce()) {
    // SAFETY: `context` is the ucontext of the calling handler.
    let mask = unsafe { mask_in(context).read() };
    let before = change_mask(libc::SIG_SETMASK, Some(mask & !SYNCHRONOUS));
    body();
    change_mask(libc::SIG_SETMASK, Some(before));
}

//! The client's functions to handle and block signals, interposed before the C library's in the whole process.
//!
//! `sigaction`, `signal` with its other names, `sigset` and its kin, `sigprocmask` and its kin, and `pthread_sigmask`
//! follow POSIX and the C library, except that signals raised by an instruction are never blocked.
//!
//! If loaded by dlopen, the library finds the C library's functions by these names, as the program does
//! (`interposed.rs`). So no function here calls another by its name.

use super::client_signals::{__sigaction, Wanted, action, change, disposition};
use super::errno::set_errno;
use super::signal_mask::{ASYNCHRONOUS, Mask, RESERVED, SYNCHRONOUS, bit, change_mask, to_mask};
use std::ffi::c_int;

/// As POSIX `sigaction`.
///
/// # Safety
/// `new` is null or valid for reads, `old` null or valid for writes of an action. A handler in `new` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    // SAFETY: both pointers are as this function requires.
    unsafe { change_action(signal, new, old) }
}

/// # Safety
/// As [`sigaction`].
unsafe fn change_action(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    // Read before the lock is taken: the client's memory may fault.
    // SAFETY: `new` is null or points to an action.
    let wanted = unsafe { new.as_ref() }.map(Wanted::of);
    let Some(disposition) = disposition(signal) else {
        // SAFETY: both pointers are null or point to actions, as this function requires.
        return unsafe { __sigaction(signal, new, old) };
    };
    match change(signal, disposition, wanted) {
        // SAFETY: `old` is null or points to room for an action.
        Ok(before) => unsafe {
            if let Some(old) = old.as_mut() {
                *old = before.to_action();
            }
            0
        },
        Err(errno) => {
            set_errno(errno);
            -1
        }
    }
}

/// Installs a handler as the `signal` functions do; returns the one before.
fn install_simply(signal: c_int, handler: usize, flags: c_int, mask: Mask) -> usize {
    let (new, mut old) = (action(handler, flags, mask), Wanted::DEFAULT.to_action());
    // SAFETY: both are actions of this function's own.
    let status = unsafe { change_action(signal, &raw const new, &raw mut old) };
    if status == 0 { old.sa_sigaction } else { libc::SIG_ERR }
}

/// Defines functions of the kind of `signal`.
macro_rules! signal_functions {
    ($($name:ident: $flags:expr, $mask:expr;)*) => {
        $(
            /// As the C library's function of this name; see signal(2).
            #[unsafe(no_mangle)]
            pub extern "C" fn $name(signal: c_int, handler: usize) -> usize {
                let mask: fn(c_int) -> Mask = $mask;
                install_simply(signal, handler, $flags, if (1..=64).contains(&signal) { mask(signal) } else { 0 })
            }
        )*
    };
}

signal_functions! {
    signal: libc::SA_RESTART, bit;
    bsd_signal: libc::SA_RESTART, bit;
    ssignal: libc::SA_RESTART, bit;
    sysv_signal: libc::SA_RESETHAND | libc::SA_NODEFER, |_| 0;
    __sysv_signal: libc::SA_RESETHAND | libc::SA_NODEFER, |_| 0;
}

/// In place of a handler: the signal is to be blocked.
const SIG_HOLD: usize = 2;

/// As POSIX `sigset`: sets the disposition of a signal and unblocks it, or blocks it.
#[unsafe(no_mangle)]
pub extern "C" fn sigset(signal: c_int, handler: usize) -> usize {
    let Some(disposition) = disposition(signal) else {
        set_errno(libc::EINVAL);
        return libc::SIG_ERR;
    };
    let (how, wanted) = match handler {
        SIG_HOLD => (libc::SIG_BLOCK, None),
        handler => (libc::SIG_UNBLOCK, Some(Wanted { handler, ..Wanted::DEFAULT })),
    };
    let Ok(before) = change(signal, disposition, wanted) else { return libc::SIG_ERR };
    let mask = change_mask(how, Some(bit(signal) & ASYNCHRONOUS));
    if mask & bit(signal) != 0 { SIG_HOLD } else { before.handler }
}

/// As POSIX `pthread_sigmask`, but signals raised by an instruction are never blocked.
///
/// # Safety
/// `new` is null or valid for reads, `old` null or valid for writes of a signal set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_sigmask(how: c_int, new: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    // SAFETY: both pointers are as this function requires.
    unsafe { change_set(how, new, old) }
}

/// Changes this thread's blocked signals, if there is a new set, as far as the client may; returns the old set.
fn change_blocked(how: c_int, new: Option<Mask>) -> Mask {
    let unblockable = if how == libc::SIG_UNBLOCK { RESERVED } else { RESERVED | SYNCHRONOUS };
    // Who expects a load in the segment to raise SIGSEGV expects SIGBUS, too.
    let is_for_loads = |mask: &Mask| how == libc::SIG_UNBLOCK && mask & bit(libc::SIGSEGV) != 0;
    let others = new.filter(is_for_loads).map_or(0, |_| bit(libc::SIGBUS));
    change_mask(how, new.map(|mask| (mask | others) & !unblockable))
}

/// # Safety
/// As [`pthread_sigmask`].
unsafe fn change_set(how: c_int, new: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    if !new.is_null() && ![libc::SIG_BLOCK, libc::SIG_UNBLOCK, libc::SIG_SETMASK].contains(&how) {
        return libc::EINVAL;
    }
    // SAFETY: `new` is null or points to a signal set.
    let new = unsafe { new.as_ref() }.map(to_mask);
    let before = change_blocked(how, new);
    if !old.is_null() {
        // SAFETY: `old` points to room for a signal set, which begins with the kernel's mask.
        unsafe {
            libc::sigemptyset(old);
            old.cast::<Mask>().write(before);
        }
    }
    0
}

/// As POSIX `sigprocmask`, but signals raised by an instruction are never blocked.
///
/// # Safety
/// `new` is null or valid for reads, `old` null or valid for writes of a signal set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigprocmask(how: c_int, new: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    // SAFETY: both pointers are null or point to signal sets, as this function requires.
    let error = unsafe { change_set(how, new, old) };
    if error == 0 {
        return 0;
    }
    set_errno(error);
    -1
}

/// The signals from 1 to 32 in BSD's representation.
fn of_bsd(mask: c_int) -> Mask {
    Mask::from(mask as u32)
}

/// As the C library's `sigblock`: blocks these signals, too. Returns the old set.
#[unsafe(no_mangle)]
pub extern "C" fn sigblock(mask: c_int) -> c_int {
    change_blocked(libc::SIG_BLOCK, Some(of_bsd(mask))) as c_int
}

/// As the C library's `sigsetmask`: blocks these signals. Returns the old set.
#[unsafe(no_mangle)]
pub extern "C" fn sigsetmask(mask: c_int) -> c_int {
    change_blocked(libc::SIG_SETMASK, Some(of_bsd(mask))) as c_int
}

/// Blocks or unblocks one signal as POSIX specifies for `sighold` and `sigrelse`.
fn change_one(how: c_int, signal: c_int) -> c_int {
    if !(1..=64).contains(&signal) || RESERVED & bit(signal) != 0 {
        set_errno(libc::EINVAL);
        return -1;
    }
    change_blocked(how, Some(bit(signal)));
    0
}

/// As POSIX `sighold`: blocks a signal.
#[unsafe(no_mangle)]
pub extern "C" fn sighold(signal: c_int) -> c_int {
    change_one(libc::SIG_BLOCK, signal)
}

/// As POSIX `sigrelse`: unblocks a signal.
#[unsafe(no_mangle)]
pub extern "C" fn sigrelse(signal: c_int) -> c_int {
    change_one(libc::SIG_UNBLOCK, signal)
}

/// As POSIX `sigignore`: ignores a signal.
#[unsafe(no_mangle)]
pub extern "C" fn sigignore(signal: c_int) -> c_int {
    if install_simply(signal, libc::SIG_IGN, 0, 0) == libc::SIG_ERR { -1 } else { 0 }
}

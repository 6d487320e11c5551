//! Keeping the program's signals when libraries of networks start.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::mem::MaybeUninit;

use nix::sys::signal::{SigSet, SigmaskHow};

/// Every signal with a name of its own.
pub const NAMED: std::ops::Range<c_int> = 1..32;

/// Does something that may start threads, which take no signals then.
pub fn blocking_signals<T>(what: impl FnOnce() -> T) -> T {
    // Neither call can fail: the arguments are right.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let done = what();
    let _ = before.map(|mask| mask.thread_set_mask());
    done
}

/// Does something that may set handlers, and restores the handlers of these signals.
pub fn keeping_handlers<T>(signals: impl IntoIterator<Item = c_int>, what: impl FnOnce() -> T) -> T {
    let before = signals.into_iter().filter_map(|signal| Some((signal, action_of(signal)?)));
    let before: Vec<_> = before.collect();
    let done = what();
    for (signal, action) in before {
        // SAFETY: the action is one that was in force for this signal.
        unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    }
    done
}

/// What the process does with a signal, if there is such a signal. It may be asked in a signal handler.
pub fn action_of(signal: c_int) -> Option<libc::sigaction> {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: the call changes nothing, and fills `action` when it succeeds, which is checked.
    unsafe { (libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0).then(|| action.assume_init()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn ignore(_: c_int) {}

    #[test]
    fn handlers_and_mask_are_as_before() {
        let own = ignore as *const () as usize;
        let mine = || action_of(libc::SIGUSR2).expect("a signal").sa_sigaction == own;
        // SAFETY: the handler does nothing.
        unsafe { libc::signal(libc::SIGUSR2, own) };
        let inside = blocking_signals(|| {
            // SAFETY: as the default, which nobody sends here.
            keeping_handlers(NAMED, || unsafe { libc::signal(libc::SIGUSR2, libc::SIG_DFL) });
            let thread = std::thread::spawn(|| SigSet::thread_get_mask().expect("a mask"));
            thread.join().expect("a thread")
        });
        assert!(mine());
        assert!(inside.contains(nix::sys::signal::SIGTERM));
        assert!(!SigSet::thread_get_mask().expect("a mask").contains(nix::sys::signal::SIGTERM));
        // SAFETY: as above.
        keeping_handlers([libc::SIGUSR1], || unsafe { libc::signal(libc::SIGUSR2, libc::SIG_DFL) });
        assert!(!mine());
    }
}

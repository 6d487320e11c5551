//! Protection of the program's signals while network libraries start.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::mem::MaybeUninit;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// Every named signal.
pub const NAMED: std::ops::Range<c_int> = 1..32;

/// Runs code that may start threads, with all signals blocked in them.
pub fn blocking_signals<T>(what: impl FnOnce() -> T) -> T {
    // Neither call can fail: the arguments are valid.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let done = what();
    let _ = before.map(|mask| mask.thread_set_mask());
    done
}

/// Runs code that may write to a pipe without reader: it gets an error, and the process no signal.
pub(crate) fn without_sigpipe<T>(what: impl FnOnce() -> T) -> T {
    let pipe = SigSet::from(Signal::SIGPIPE);
    let before = pipe.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let was_pending = is_pending(libc::SIGPIPE);
    let done = what();
    if !was_pending && is_pending(libc::SIGPIPE) {
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the set and the time are valid, and a null pointer requests no details.
        unsafe { libc::sigtimedwait(pipe.as_ref(), std::ptr::null_mut(), &at_once) };
    }
    let _ = before.map(|mask| mask.thread_set_mask());
    done
}

/// Whether a signal is pending for this thread.
fn is_pending(signal: c_int) -> bool {
    let mut pending = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the call fills the set on success, which is checked.
    unsafe { libc::sigpending(pending.as_mut_ptr()) == 0 && libc::sigismember(pending.as_ptr(), signal) == 1 }
}

/// Runs code that may set handlers, and restores the handlers of these signals.
pub fn keeping_handlers<T>(signals: impl IntoIterator<Item = c_int>, what: impl FnOnce() -> T) -> T {
    let before = signals.into_iter().filter_map(|signal| Some((signal, action_of(signal)?)));
    let before: Vec<_> = before.collect();
    let done = what();
    for (signal, action) in before {
        // SAFETY: the action was in force for this signal.
        unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    }
    done
}

/// The process's action for a signal, if there is such a signal. May be called in a signal handler.
pub fn action_of(signal: c_int) -> Option<libc::sigaction> {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: the call changes nothing, and fills `action` on success, which is checked.
    unsafe { (libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0).then(|| action.assume_init()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn ignore(_: c_int) {}

    #[test]
    fn a_pipe_of_which_nobody_reads_gives_an_error_and_no_signal() {
        let (read, write) = nix::unistd::pipe().expect("a pipe");
        drop(read);
        // The tests may run with the signal ignored; it would then never be pending. SAFETY: the default action, fatal
        // to this thread.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        for _ in 0..2 {
            let written = without_sigpipe(|| nix::unistd::write(&write, b"line"));
            assert_eq!(written, Err(nix::errno::Errno::EPIPE));
            assert!(!is_pending(libc::SIGPIPE));
        }
        assert!(!SigSet::thread_get_mask().expect("a mask").contains(Signal::SIGPIPE));
    }

    #[test]
    fn handlers_and_mask_are_as_before() {
        let own = ignore as *const () as usize;
        let mine = || action_of(libc::SIGUSR2).expect("a signal").sa_sigaction == own;
        // SAFETY: the handler does nothing.
        unsafe { libc::signal(libc::SIGUSR2, own) };
        let inside = blocking_signals(|| {
            // SAFETY: the default action; nobody sends the signal here.
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

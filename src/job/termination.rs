//! Terminating signals: a client with a handler for SIGQUIT gets SIGQUIT in their place.
//!
//! Source: GASNet specification 1.8, gasnet_exit: a node gets SIGQUIT when the job got a terminating signal.

use std::ffi::c_int;
use vgasnet_conduit::action_of;

/// The signals with which users, terminals and batch systems end a job.
const TERMINATING: [c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Turns terminating signals not handled by the client into SIGQUIT, if the client handles SIGQUIT.
pub fn watch() {
    for signal in TERMINATING {
        if handler_of(signal) == Some(libc::SIG_DFL) {
            let handler: extern "C" fn(c_int) = on_terminating_signal;
            set_handler(signal, handler as usize);
        }
    }
}

/// Runs at any time in any thread, so it makes only async-signal-safe calls. The library's `sigaction` is one: no
/// signal arrives while the library holds its lock.
extern "C" fn on_terminating_signal(signal: c_int) {
    let is_handled = handler_of(libc::SIGQUIT).is_some_and(|its| its != libc::SIG_DFL && its != libc::SIG_IGN);
    let next = if is_handled { libc::SIGQUIT } else { signal };
    if !is_handled {
        set_handler(signal, libc::SIG_DFL);
    }
    // SAFETY: the call takes only a number. A signal being handled arrives again when this function has returned.
    unsafe { libc::raise(next) };
}

pub(super) fn handler_of(signal: c_int) -> Option<usize> {
    action_of(signal).map(|action| action.sa_sigaction)
}

/// The handler does not interrupt itself, and interrupted system calls are restarted.
pub(super) fn set_handler(signal: c_int, handler: usize) {
    // SAFETY: the handler is a constant of libc, or a function of this room that takes the number passed by the kernel.
    unsafe { libc::signal(signal, handler) };
}

//! What the user types. The other launcher has a process group of its own, so the terminal would stop it for reading.

use std::io::{IsTerminal, stdin};
use std::process::{ChildStdin, Command, Stdio};

use nix::sys::signal::{SigSet, Signal};

/// Gives the launcher a pipe in the terminal's place, where there is one.
pub(crate) fn replace(launcher: &mut Command) {
    if stdin().is_terminal() {
        launcher.stdin(Stdio::piped());
    }
}

/// Writes to the pipe what is typed, until the process ends.
pub(crate) fn forward(mut pipe: ChildStdin) {
    let read = move || {
        // In the background there is nothing to read then, in place of being stopped.
        let _ = SigSet::from(Signal::SIGTTIN).thread_block();
        // It fails when the launcher has ended.
        let _ = std::io::copy(&mut stdin().lock(), &mut pipe);
    };
    // Where there is no thread, nothing can be typed.
    let _ = std::thread::Builder::new().name("terminal".into()).spawn(read);
}

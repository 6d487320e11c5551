//! The user's input. The other launcher has its own process group, so the terminal would stop it for reading.

use std::io::{IsTerminal, stdin};
use std::process::{ChildStdin, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};

/// Interval of a background job's attempts to read.
const BACKGROUND_LOOK: Duration = Duration::from_secs(1);

/// Replaces the launcher's terminal input by a pipe.
pub(crate) fn replace(launcher: &mut Command) {
    if stdin().is_terminal() {
        launcher.stdin(Stdio::piped());
    }
}

/// Copies the user's input to the pipe, until the process ends.
pub(crate) fn forward(mut pipe: ChildStdin) {
    let read = move || {
        // In the background, reading then returns an error instead of stopping this process.
        let _ = SigSet::from(Signal::SIGTTIN).thread_block();
        while let Err(error) = std::io::copy(&mut stdin().lock(), &mut pipe) {
            if error.raw_os_error() != Some(libc::EIO) {
                // The launcher has ended.
                break;
            }
            std::thread::sleep(BACKGROUND_LOOK);
        }
    };
    // Without a thread, nothing can be typed.
    let _ = std::thread::Builder::new().name("terminal".into()).spawn(read);
}

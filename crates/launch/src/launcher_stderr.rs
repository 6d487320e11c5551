//! Forwards stderr of the other launcher and its ranks to the user, without the launcher's meaningless lines.
//!
//! A separate process copies it, so that the last output still arrives after this process has been killed.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Command, Stdio};

use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, poll};
use nix::unistd::{ForkResult, fork, pipe2};

use crate::process::Process;

/// Recognises a line of the other launcher without meaning to the user.
pub type IsNoise = fn(&str) -> bool;

/// Capacity of a pipe, so that a line written at once is read at once.
const READ_BYTES: usize = 64 << 10;

/// Time-out for the remaining output after the launcher's end. A process it left behind keeps the pipe open.
const PATIENCE_MS: u16 = 1000;

/// The copying process.
pub(crate) struct LauncherStderr(Process);

impl LauncherStderr {
    /// Copies stderr of the process started by `launcher` to this process's.
    ///
    /// # Errors
    /// The system has no descriptor or no process left.
    pub(crate) fn redirect(launcher: &mut Command, is_noise: IsNoise) -> io::Result<LauncherStderr> {
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        launcher.stderr(Stdio::from(write));
        // SAFETY: no other thread has started yet; otherwise the C library still keeps the heap usable in the child,
        // which needs no other lock.
        match unsafe { fork() }? {
            ForkResult::Child => copy_and_end(&read, is_noise),
            ForkResult::Parent { child } => Ok(LauncherStderr(Process::adopt(child.as_raw() as u32)?)),
        }
    }

    /// Waits for the remaining output, for as long as the user holds it up.
    pub(crate) fn finish(&self, is_held_up: fn() -> bool) {
        let Some(running) = self.0.running_fd() else { return };
        while poll(&mut [PollFd::new(running, PollFlags::POLLIN)], PATIENCE_MS) == Ok(0) && is_held_up() {}
    }
}

/// Body of the copying process. It has the launcher's signals blocked, and only the needed descriptors open.
fn copy_and_end(pipe: &OwnedFd, is_noise: IsNoise) -> ! {
    // SAFETY: from now on only this code uses these descriptors, and no value owning another is used or dropped.
    // Descriptor 0 is owned once.
    unsafe {
        libc::dup2(pipe.as_raw_fd(), 0);
        libc::dup2(2, 1);
        // If the system lacks the call, other processes' ends of streams close later.
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0);
        copy(File::from_raw_fd(0), io::stderr(), is_noise);
        libc::_exit(0)
    }
}

/// Copies bytes as soon as they arrive.
fn copy(mut from: impl Read, mut to: impl Write, is_noise: IsNoise) {
    let mut bytes = vec![0; READ_BYTES];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => return,
            // If stderr is closed there is nobody to tell.
            Ok(count) => drop(to.write_all(&without_noise(&bytes[..count], is_noise))),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// The meaningful lines. An unfinished last line may be a prompt, so it is written at once.
fn without_noise(lines: &[u8], is_noise: IsNoise) -> Vec<u8> {
    let says_something = |line: &&[u8]| !(line.ends_with(b"\n") && is_noise(&String::from_utf8_lossy(line)));
    lines.split_inclusive(|byte| *byte == b'\n').filter(says_something).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_noise(line: &str) -> bool {
        line.contains("noise")
    }

    #[test]
    fn lines_that_say_nothing_are_left_out() {
        let left = |lines: &[u8]| String::from_utf8(without_noise(lines, is_noise)).expect("words");
        assert_eq!(left(b"one\nnoise\ntwo\nnoise\n"), "one\ntwo\n");
        assert_eq!(left(b"\n\nno end"), "\n\nno end");
        assert_eq!(left(b"noise without end"), "noise without end");
        assert_eq!(left(b""), "");
    }

    #[test]
    fn a_pipe_is_copied_to_its_end() {
        let (mut copied, lines) = (Vec::new(), "a line\nnoise\n".repeat(READ_BYTES / 13));
        copy(lines.as_bytes(), &mut copied, is_noise);
        assert_eq!(copied, "a line\n".repeat(READ_BYTES / 13).into_bytes());
    }
}

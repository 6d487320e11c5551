//! The end of a rank whose launcher has been killed.
//!
//! The system kills the children of a launcher that dies. A rank started by a script is no child of the launcher, so it
//! watches its connection to the launcher.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::get_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::fstat;
use nix::unistd::{Pid, getpid, getppid};

use crate::signals::blocking_signals;

/// Time from SIGTERM to SIGKILL, as for ranks whose agent has lost its launcher.
const GRACE: Duration = Duration::from_secs(1);

/// Ends this process when the other end of `connection` hangs up, with the death of the process that looks after this
/// rank. Its number is `launcher`; 0 in another PID namespace. A rank that dies with its parent needs no thread for it.
/// If the system has no thread left, the rank is not watched.
pub fn end_with_launcher(connection: OwnedFd, launcher: u32) {
    if dies_with_parent(launcher) {
        return;
    }
    let watch = move || {
        if await_hangup(connection) {
            end();
        }
    };
    // The program's signals are for its own threads.
    let _watcher = blocking_signals(|| std::thread::Builder::new().name("vgasnet-end".into()).spawn(watch));
}

/// Whether the launcher is the parent, and the system kills this process with it.
fn dies_with_parent(launcher: u32) -> bool {
    getppid() == Pid::from_raw(launcher as i32) && get_pdeathsig() == Ok(Some(Signal::SIGKILL))
}

/// Waits until the other end is closed. Returns false if the program has closed the descriptor.
fn await_hangup(connection: OwnedFd) -> bool {
    // Not closed here: the program may have closed it, and its number may be another file's.
    let connection = ManuallyDrop::new(connection);
    let inode = || fstat(&*connection).map(|status| status.st_ino);
    let own = inode();
    loop {
        let mut watched = [PollFd::new(connection.as_fd(), PollFlags::empty())];
        match poll(&mut watched, PollTimeout::NONE) {
            Err(Errno::EINTR) => {}
            _ => {
                let is_over = watched[0].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP));
                return is_over && own.is_ok() && inode() == own;
            }
        }
    }
}

/// Ends this process as the launcher ends a rank.
fn end() {
    let _ = kill(getpid(), Signal::SIGTERM);
    std::thread::sleep(GRACE);
    let _ = kill(getpid(), Signal::SIGKILL);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_hangup_is_noticed_and_bytes_are_none() {
        let (near, far) = UnixStream::pair().expect("sockets");
        let watcher = std::thread::spawn(move || await_hangup(near.into()));
        std::io::Write::write_all(&mut &far, b"bytes").expect("room");
        assert!(!watcher.is_finished());
        drop(far);
        assert!(watcher.join().expect("no panic"));
    }
}

//! A handle's look at a file before it is opened: the handle's claim, or why it has none.

use crate::claims::{Claim, PATIENCE, settle, take_guest_byte, tell_of_readers};
use crate::locks::{has_no_locks, is_locked};
use crate::running;
use crate::say;
use std::ffi::CStr;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Once;
use std::time::{Duration, Instant};

/// How long a handle tries to lock a file that another process has locked as a whole.
const OTHERS_LOCK: Duration = Duration::from_secs(1);

/// A handle's look at a file that it may write.
#[derive(Debug)]
pub enum Look {
    /// Its claim as a guest, before it has waited for the owner.
    Claimed(Claim),
    /// There is no such file yet.
    Absent,
    /// The file has no claims: it is no regular file, this user may not write it, or its file system has no locks.
    Unclaimable,
    /// The file has claims, but this handle gets none. A line has told it.
    Refused,
}

impl Look {
    /// Looks at the file of a path.
    pub fn of(path: &CStr) -> Look {
        let file = match open(path) {
            Ok(file) => file,
            Err(error) => return Look::without_file(path, &error),
        };
        let start = Instant::now();
        let taken = loop {
            match take_guest_byte(file.as_raw_fd()) {
                Err(error) if is_locked(&error) && start.elapsed() < OTHERS_LOCK => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                taken => break taken,
            }
        };
        match taken {
            Ok(byte) => {
                if !byte.is_own {
                    tell_of_readers(file.as_raw_fd());
                }
                Look::Claimed(Claim::new(file, byte))
            }
            Err(error) if has_no_locks(&error) => Look::Unclaimable,
            Err(error) => {
                tell_refused(path, &error);
                Look::Refused
            }
        }
    }

    /// The look at a file that cannot be opened for it.
    fn without_file(path: &CStr, error: &io::Error) -> Look {
        match error.raw_os_error() {
            Some(libc::ENOENT) => Look::Absent,
            // MPI's own open may find a descriptor a moment later.
            Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EINTR | libc::EAGAIN) => {
                tell_refused(path, error);
                Look::Refused
            }
            _ => Look::Unclaimable,
        }
    }

    /// Whether there is no such file yet.
    pub fn is_absent(&self) -> bool {
        matches!(self, Look::Absent)
    }

    /// The claim, if there is one.
    pub fn claim(self) -> Option<Claim> {
        if let Look::Claimed(claim) = self { Some(claim) } else { None }
    }

    /// As [`Claim::become_owner`]. A file without claims may be cached as well.
    pub fn become_owner(&mut self) -> bool {
        match self {
            Look::Claimed(claim) => claim.become_owner(),
            Look::Absent | Look::Unclaimable => true,
            Look::Refused => false,
        }
    }

    /// Waits for the owner. Returns whether the file is free; if not, a line says so.
    pub fn settle(&self, path: &CStr) -> bool {
        if let Look::Claimed(claim) = self { settle(claim, path) } else { true }
    }
}

/// Opens a regular file only: opening a pipe would show its reader a writer.
fn open(path: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: all fields may be 0.
    let mut about: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the path is a string, and there is room for the answer.
    if unsafe { libc::stat(path.as_ptr(), &mut about) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if about.st_mode & libc::S_IFMT != libc::S_IFREG {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    let start = Instant::now();
    let opened = |access| loop {
        // SAFETY: the path is a string.
        let descriptor = unsafe { libc::open(path.as_ptr(), access | libc::O_NONBLOCK | libc::O_CLOEXEC) };
        match io::Error::last_os_error() {
            _ if descriptor >= 0 => break Ok(descriptor),
            // Another process has a lease of the file, which the system is taking back. MPI's open waits as well.
            error if error.kind() == ErrorKind::WouldBlock && start.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(1));
            }
            error => break Err(error),
        }
    };
    // A read lock needs the right to read, which this user may lack.
    let descriptor = opened(libc::O_RDWR).or_else(|_| opened(libc::O_WRONLY))?;
    // SAFETY: the file was just opened.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Says once that a file with locks cannot be locked.
fn tell_refused(path: &CStr, error: &io::Error) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        say(format_args!(
            "rank {}: MPI_File_open: {}: cannot be locked behind its end: {error}; MPI serves it, and other handles do not see that this one \
             may write it; end other processes' locks of the whole file, or allow more locks and open files",
            running::own_rank(),
            path.to_string_lossy()
        ));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::tests::Scratch;

    #[test]
    fn a_handle_that_cannot_look_at_a_file_does_not_own_it() {
        let owns = |errno| Look::without_file(c"file", &io::Error::from_raw_os_error(errno)).become_owner();
        assert!(
            [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EINTR, libc::EAGAIN].into_iter().all(|errno| !owns(errno))
        );
        assert!(owns(libc::ENOENT) && owns(libc::EACCES), "there is nothing to claim");
    }

    /// The system takes the lease back first.
    #[test]
    fn a_file_with_a_lease_has_claims() {
        let file = Scratch::new("lease");
        // SAFETY: the path is a string.
        let reader = unsafe { OwnedFd::from_raw_fd(libc::open(file.0.as_ptr(), libc::O_RDONLY)) };
        // SAFETY: the signal that asks for the lease is ignored, and the descriptor is open.
        unsafe {
            libc::signal(libc::SIGIO, libc::SIG_IGN);
            assert_eq!(libc::fcntl(reader.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK), 0);
        }
        let look = std::thread::spawn({
            let path = file.0.clone();
            move || Look::of(&path)
        });
        // SAFETY: the descriptor is open.
        unsafe {
            // The kernel shows the kind that it wants the lease to have.
            while libc::fcntl(reader.as_raw_fd(), libc::F_GETLEASE) == libc::F_RDLCK {
                std::thread::yield_now();
            }
            assert_eq!(libc::fcntl(reader.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK), 0);
        }
        assert!(matches!(look.join().expect("no panic"), Look::Claimed(_)));
    }
}

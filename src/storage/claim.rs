//! Who writes a file: of two teams or jobs that cache one, each would write whole blocks over what the other has written.

use super::NamedFile;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// A byte far behind all that is read and written, beside the one that `libvgasnet-mpi-io` locks.
const PLACE: i64 = i64::MAX - 2;

/// A lock of a file that says that its pages are cached and written, until this is dropped.
#[derive(Debug)]
pub struct Claim(Arc<NamedFile>);

impl NamedFile {
    /// Claims a file that is open to be written. `None` where the file system has no locks.
    ///
    /// # Errors
    /// `EBUSY`: it is claimed already.
    pub fn claim(self: &Arc<NamedFile>) -> io::Result<Option<Claim>> {
        let Some(file) = self.as_fd() else { return Ok(None) };
        // The lock is that of the open file: it takes no descriptor of its own.
        match set_lock(file, libc::F_WRLCK) {
            Ok(()) => Ok(Some(Claim(Arc::clone(self)))),
            Err(Errno::EAGAIN | Errno::EACCES) => Err(io::Error::from_raw_os_error(libc::EBUSY)),
            Err(_) => Ok(None),
        }
    }
}

impl Drop for Claim {
    /// A child that the program has forked has the file open, too, and closing it here would leave the lock with that.
    fn drop(&mut self) {
        let _failed = self.0.as_fd().map(|file| set_lock(file, libc::F_UNLCK));
    }
}

fn set_lock(file: BorrowedFd<'_>, kind: libc::c_int) -> nix::Result<()> {
    // SAFETY: all fields may be 0.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as i16;
    lock.l_whence = libc::SEEK_SET as i16;
    (lock.l_start, lock.l_len) = (PLACE, 1);
    fcntl(file, FcntlArg::F_OFD_SETLK(&lock)).map(drop)
}

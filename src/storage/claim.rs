//! Who writes a file: of two teams or jobs that cache one, each would write whole blocks over what the other has written.

use super::NamedFile;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;

/// A byte far behind all that is read and written, beside the one that `libvgasnet-mpi-io` locks.
const PLACE: i64 = i64::MAX - 2;

/// A lock of a file that says that its pages are cached and written, until this is dropped.
#[derive(Debug)]
pub struct Claim(Arc<NamedFile>);

impl NamedFile {
    /// Claims a file that is open to be written. `None` where the file system has no locks, and where a reader has locked the file: any
    /// process that may read it can do that, and a claim is a lock for writing, which only one that may write it can have.
    ///
    /// # Errors
    /// `EBUSY`: it is claimed already.
    pub fn claim(self: &Arc<NamedFile>) -> io::Result<Option<Claim>> {
        let Some(file) = self.as_fd() else { return Ok(None) };
        // The lock is that of the open file: it takes no descriptor of its own.
        for _ in 0..ATTEMPTS {
            match set_lock(file, libc::F_WRLCK) {
                Ok(()) => return Ok(Some(Claim(Arc::clone(self)))),
                Err(Errno::EAGAIN | Errno::EACCES) => {}
                Err(_) => return Ok(None),
            }
            match other_lock(file) {
                // It has just been given up.
                Some(lock) if lock.l_type == libc::F_UNLCK as i16 => {}
                Some(lock) if lock.l_type == libc::F_RDLCK as i16 => {
                    tell_of_reader(file, lock.l_pid);
                    return Ok(None);
                }
                _ => break,
            }
        }
        Err(io::Error::from_raw_os_error(libc::EBUSY))
    }
}

impl Drop for Claim {
    /// A child that the program has forked has the file open, too, and closing it here would leave the lock with that.
    fn drop(&mut self) {
        let _failed = self.0.as_fd().map(|file| set_lock(file, libc::F_UNLCK));
    }
}

/// How often a claim is tried when others give theirs up.
const ATTEMPTS: usize = 3;

fn set_lock(file: BorrowedFd<'_>, kind: libc::c_int) -> nix::Result<()> {
    fcntl(file, FcntlArg::F_OFD_SETLK(&lock_of(kind))).map(drop)
}

/// A lock of others that stands in the way of a claim, if that can be known.
fn other_lock(file: BorrowedFd<'_>) -> Option<libc::flock> {
    let mut lock = lock_of(libc::F_WRLCK);
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut lock)).ok()?;
    Some(lock)
}

/// Says that a file is written without a claim. The process is known where its lock is one of a process.
fn tell_of_reader(file: BorrowedFd<'_>, pid: libc::pid_t) {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_default();
    let by = if pid > 0 { format!(" (pid {pid})") } else { String::new() };
    vgasnet_conduit::say(&format!(
        "vgasnet: warning: {}: a process{by} has locked it for reading, so nobody sees whether another team or job writes it, too",
        path.display()
    ));
}

fn lock_of(kind: libc::c_int) -> libc::flock {
    // SAFETY: all fields may be 0.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as i16;
    lock.l_whence = libc::SEEK_SET as i16;
    (lock.l_start, lock.l_len) = (PLACE, 1);
    lock
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::NamedOptions;
    use std::fs::File;
    use std::os::fd::AsFd;

    /// Any process that may read a file can lock it for reading, and a program that may write it can lock it for writing.
    #[test]
    fn only_a_lock_for_writing_refuses_a_claim() {
        let path = std::env::temp_dir().join(format!("vgasnet-claim-{}", std::process::id()));
        std::fs::write(&path, "bytes").unwrap();
        let options = NamedOptions { write: true, ..NamedOptions::default() };
        let [named, other] = [(); 2].map(|()| Arc::new(NamedFile::open(&path, &options).unwrap()));
        let reader = File::open(&path).unwrap();
        set_lock(reader.as_fd(), libc::F_RDLCK).unwrap();
        assert!(named.claim().unwrap().is_none());
        set_lock(reader.as_fd(), libc::F_UNLCK).unwrap();
        let claim = named.claim().unwrap().expect("nobody else has it");
        assert_eq!(other.claim().unwrap_err().raw_os_error(), Some(libc::EBUSY));
        assert!(set_lock(reader.as_fd(), libc::F_RDLCK).is_err());
        drop(claim);
        assert!(other.claim().unwrap().is_some());
        std::fs::remove_file(&path).unwrap();
    }
}

//! The claim of a writer on a file. Two teams or jobs caching the same file would overwrite each other's bytes with
//! whole blocks.

use super::NamedFile;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use vgasnet_conduit::forked;

/// Position of the locked byte: far behind all data, next to the byte locked by `libvgasnet-mpi-io`.
const PLACE: i64 = i64::MAX - 2;

/// A lock on a file, held until this is dropped: pages of the file are cached and written.
#[derive(Debug)]
pub struct Claim(Arc<NamedFile>);

impl NamedFile {
    /// Claims a file open for writing. `None` if the file system has no locks or fails to lock, or if a reader has locked
    /// the file. Any process allowed to read the file can take a read lock, so a read lock must not refuse a claim. A
    /// claim is a write lock and needs permission to write.
    ///
    /// # Errors
    /// `EBUSY`: the file is already claimed.
    pub fn claim(self: &Arc<NamedFile>) -> io::Result<Option<Claim>> {
        let Some(file) = self.as_fd() else { return Ok(None) };
        // The lock belongs to the open file description, so it takes no descriptor of its own.
        for _ in 0..ATTEMPTS {
            match set_lock(file, libc::F_WRLCK) {
                Ok(()) => {
                    forked::keep_from_children(file.as_raw_fd());
                    return Ok(Some(Claim(Arc::clone(self))));
                }
                Err(Errno::EAGAIN | Errno::EACCES) => {}
                Err(Errno::EOPNOTSUPP | Errno::EINVAL | Errno::ENOSYS) => return Ok(None),
                Err(errno) => {
                    warn(file, &format!("it cannot be locked: {}", errno.desc()));
                    return Ok(None);
                }
            }
            match other_lock(file) {
                // The other lock has just been released.
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
    /// A child by vfork or clone has the same file open, and closing it here would leave the lock with the child. So the
    /// lock is released explicitly.
    fn drop(&mut self) {
        let Some(file) = self.0.as_fd() else { return };
        forked::forget(file.as_raw_fd());
        let _failed = set_lock(file, libc::F_UNLCK);
    }
}

/// Number of attempts at a claim while other processes release their locks.
const ATTEMPTS: usize = 3;

fn set_lock(file: BorrowedFd<'_>, kind: libc::c_int) -> nix::Result<()> {
    fcntl(file, FcntlArg::F_OFD_SETLK(&lock_of(kind))).map(drop)
}

/// A conflicting lock of another process, if the system reports one.
fn other_lock(file: BorrowedFd<'_>) -> Option<libc::flock> {
    let mut lock = lock_of(libc::F_WRLCK);
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut lock)).ok()?;
    Some(lock)
}

/// Warns of a reader's lock. The system names the process only for a lock owned by a process.
fn tell_of_reader(file: BorrowedFd<'_>, pid: libc::pid_t) {
    let by = if pid > 0 { format!(" (pid {pid})") } else { String::new() };
    warn(file, &format!("a process{by} has locked it for reading"));
}

/// Warns that a file is written without a claim, and why.
fn warn(file: BorrowedFd<'_>, why: &str) {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_default();
    vgasnet_conduit::say(&format!(
        "vgasnet: warning: {}: {why}, so nobody sees whether another team or job writes it, too",
        path.display()
    ));
}

fn lock_of(kind: libc::c_int) -> libc::flock {
    // SAFETY: 0 is a valid value of every field.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as i16;
    lock.l_whence = libc::SEEK_SET as i16;
    (lock.l_start, lock.l_len) = (PLACE, 1);
    lock
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NamedOptions;
    use std::fs::File;
    use std::os::fd::AsFd;

    /// Any process allowed to read a file can lock it for reading. Only a process allowed to write it can lock it for
    /// writing.
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

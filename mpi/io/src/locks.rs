//! Locks of a file's bytes. They belong to the open file, not to the process (`F_OFD_SETLK`).

use std::ffi::c_int;
use std::io;

/// Whether an error of a lock means that the file system has none.
pub fn has_no_locks(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ENOSYS))
}

/// Whether an error of a lock means that another lock is in the way.
pub fn is_locked(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES))
}

/// Locks a byte, unless another lock is in the way.
pub fn set_lock(descriptor: c_int, kind: c_int, place: i64) -> io::Result<()> {
    let lock = lock_of(kind, place, 1);
    // SAFETY: the lock is valid. A descriptor that is not open is refused.
    let answer = unsafe { libc::fcntl(descriptor, libc::F_OFD_SETLK, &lock) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A lock of bytes.
pub fn lock_of(kind: c_int, place: i64, bytes: i64) -> libc::flock {
    // SAFETY: all fields may be 0.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as i16;
    lock.l_whence = libc::SEEK_SET as i16;
    (lock.l_start, lock.l_len) = (place, bytes);
    lock
}

/// The kind of another lock that is in the way of one of this kind. If it cannot be known, one for writing is assumed.
pub fn find_lock(descriptor: c_int, kind: c_int, place: i64, bytes: i64) -> Option<c_int> {
    let mut lock = lock_of(kind, place, bytes);
    // SAFETY: there is room for a lock. A descriptor that is not open is refused.
    if unsafe { libc::fcntl(descriptor, libc::F_OFD_GETLK, &mut lock) } != 0 {
        return Some(libc::F_WRLCK).filter(|_| !has_no_locks(&io::Error::last_os_error()));
    }
    Some(c_int::from(lock.l_type)).filter(|kind| *kind != libc::F_UNLCK)
}

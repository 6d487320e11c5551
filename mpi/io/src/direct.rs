//! Direct reads and writes of a file that is no longer cached: each write has reached the file system when it returns.

use crate::ffi;
use crate::locks::has_no_locks;
use crate::say;
use crate::vgasnet::{Failed, Piece};
use crate::view::Extent;
use std::ffi::{CString, c_int};
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Maximum number of pieces for one system call.
const PIECES_MAX: usize = 512;

/// A file open for direct access.
#[derive(Debug)]
pub struct Direct {
    /// vgasnet's descriptor, until vgasnet closes the file. The library might not get another: descriptors may be used
    /// up, or the permission lost.
    descriptor: AtomicI32,
    path: CString,
    /// Serializes the threads in mode atomic: a lock of the file belongs to the descriptor, not to a thread.
    turn: Mutex<()>,
    /// The error of the first failed sync. The kernel then forgets the bytes, so no later sync can promise them.
    lost: OnceLock<c_int>,
}

impl Direct {
    /// The file of one of vgasnet's descriptors. From now on its bytes go through the system's cache.
    ///
    /// # Errors
    /// The system's number.
    pub fn of(descriptor: RawFd, path: CString) -> Result<Direct, Failed> {
        // SAFETY: the descriptor is open. No other code reads or writes through it any more.
        let is_buffered = unsafe {
            let flags = libc::fcntl(descriptor, libc::F_GETFL);
            flags >= 0 && libc::fcntl(descriptor, libc::F_SETFL, flags & !libc::O_DIRECT) == 0
        };
        let direct =
            Direct { descriptor: AtomicI32::new(descriptor), path, turn: Mutex::new(()), lost: OnceLock::new() };
        if is_buffered { Ok(direct) } else { Err(failed(&direct.path, "be buffered", &io::Error::last_os_error())) }
    }

    /// vgasnet is about to close the file, and no call uses it.
    pub fn end(&self) {
        self.descriptor.store(-1, Ordering::Relaxed);
    }

    fn descriptor(&self) -> RawFd {
        self.descriptor.load(Ordering::Relaxed)
    }

    /// The file, as long as it is open.
    fn file(&self) -> Result<ManuallyDrop<File>, io::Error> {
        let descriptor = self.descriptor();
        if descriptor < 0 {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        }
        // SAFETY: vgasnet has the descriptor open, and it is not closed here.
        Ok(ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) }))
    }

    /// Reads bytes from places into pieces, up to the end of the file. Returns the number of bytes.
    ///
    /// # Safety
    /// The pieces are writable, and nobody else accesses them, until this returns.
    pub unsafe fn read(&self, places: &[Extent], pieces: &[Piece], is_atomic: bool) -> Result<u64, Failed> {
        self.in_one_step(places, libc::F_RDLCK, is_atomic, || {
            // SAFETY: the vectors are parts of the pieces, which are writable until this returns, as the caller
            // promises.
            let call = |vectors: &[libc::iovec], offset| unsafe {
                libc::preadv(self.descriptor(), vectors.as_ptr(), vectors.len() as c_int, offset)
            };
            self.transfer(places, pieces, "be read", call)
        })
    }

    /// Writes bytes from pieces to places.
    ///
    /// # Safety
    /// The pieces are readable, and nobody writes them, until this returns.
    pub unsafe fn write(&self, places: &[Extent], pieces: &[Piece], is_atomic: bool) -> Result<(), Failed> {
        self.in_one_step(places, libc::F_WRLCK, is_atomic, || {
            // SAFETY: the vectors are parts of the pieces, which are readable until this returns, as the caller
            // promises.
            let call = |vectors: &[libc::iovec], offset| unsafe {
                libc::pwritev(self.descriptor(), vectors.as_ptr(), vectors.len() as c_int, offset)
            };
            self.transfer(places, pieces, "be written", call).map(drop)
        })
    }

    fn transfer(
        &self,
        places: &[Extent],
        pieces: &[Piece],
        what: &str,
        call: impl Fn(&[libc::iovec], i64) -> isize,
    ) -> Result<u64, Failed> {
        let mut pieces = pieces.iter().copied();
        let (mut piece, mut moved) = (Piece { address: 0, len: 0 }, 0);
        for place in places {
            let mut at = 0;
            while at < place.len {
                let mut vectors = Vec::new();
                let mut len = 0;
                while at + len < place.len && vectors.len() < PIECES_MAX {
                    if piece.len == 0 {
                        let Some(next) = pieces.next() else { break };
                        piece = next;
                        continue;
                    }
                    let part = (place.len - at - len).min(piece.len as u64) as usize;
                    vectors.push(libc::iovec { iov_base: piece.address as *mut _, iov_len: part });
                    piece = Piece { address: piece.address + part, len: piece.len - part };
                    len += part as u64;
                }
                if len == 0 {
                    return Ok(moved);
                }
                let done = self.whole(&mut vectors, place.offset + at, what, &call)?;
                moved += done;
                if done < len {
                    return Ok(moved);
                }
                at += len;
            }
        }
        Ok(moved)
    }

    /// Repeats the system call until all bytes are moved, or the file ends. Returns the number of bytes.
    fn whole(
        &self,
        mut vectors: &mut [libc::iovec],
        offset: u64,
        what: &str,
        call: impl Fn(&[libc::iovec], i64) -> isize,
    ) -> Result<u64, Failed> {
        let mut done = 0;
        while !vectors.is_empty() {
            let moved = call(vectors, (offset + done) as i64);
            if moved < 0 {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(failed(&self.path, what, &error));
            }
            if moved == 0 {
                break;
            }
            done += moved as u64;
            let mut moved = moved as usize;
            while let Some(first) = vectors.first_mut() {
                if moved < first.iov_len {
                    first.iov_base = first.iov_base.wrapping_byte_add(moved);
                    first.iov_len -= moved;
                    break;
                }
                moved -= first.iov_len;
                vectors = &mut vectors[1..];
            }
        }
        Ok(done)
    }

    /// In mode atomic, others that lock the file, such as MPI, wait meanwhile.
    fn in_one_step<T>(
        &self,
        places: &[Extent],
        kind: c_int,
        is_atomic: bool,
        work: impl FnOnce() -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let (first, end) =
            (places.iter().map(|place| place.offset).min(), places.iter().map(|p| p.offset + p.len).max());
        let (Some(first), Some(end), true) = (first, end, is_atomic) else { return work() };
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock(kind, first, end - first).map_err(|error| failed(&self.path, "be locked for mode atomic", &error))?;
        let done = work();
        let _held_until_closed = self.lock(libc::F_UNLCK, first, end - first);
        done
    }

    /// Waits for a lock. File systems without locks have no mode atomic.
    fn lock(&self, kind: c_int, first: u64, len: u64) -> io::Result<()> {
        // SAFETY: all fields may be 0.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as i16;
        lock.l_whence = libc::SEEK_SET as i16;
        (lock.l_start, lock.l_len) = (first as i64, len as i64);
        // SAFETY: the file is open, and the lock is valid.
        while unsafe { libc::fcntl(self.descriptor(), libc::F_OFD_SETLKW, &lock) } != 0 {
            let error = io::Error::last_os_error();
            if has_no_locks(&error) {
                break;
            }
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Bytes of the file.
    pub fn size(&self) -> Result<u64, Failed> {
        self.file()
            .and_then(|file| file.metadata())
            .map(|about| about.len())
            .map_err(|error| failed(&self.path, "be looked at", &error))
    }

    /// Cuts the file, or adds zeros.
    pub fn set_size(&self, bytes: u64) -> Result<(), Failed> {
        self.file().and_then(|file| file.set_len(bytes)).map_err(|error| failed(&self.path, "change its size", &error))
    }

    /// Extends the file to at least this size, even if others write it meanwhile.
    pub fn extend(&self, bytes: u64) -> Result<(), Failed> {
        if bytes <= self.size()? {
            return Ok(());
        }
        self.allocate(bytes - 1, 1)
    }

    /// Allocates space for this many bytes.
    pub fn preallocate(&self, bytes: u64) -> Result<(), Failed> {
        if bytes == 0 { Ok(()) } else { self.allocate(0, bytes) }
    }

    fn allocate(&self, from: u64, len: u64) -> Result<(), Failed> {
        // SAFETY: the file is open.
        let refused = unsafe { libc::posix_fallocate(self.descriptor(), from as i64, len as i64) };
        match refused {
            0 => Ok(()),
            errno => Err(failed(&self.path, "get its size", &io::Error::from_raw_os_error(errno))),
        }
    }

    /// Syncs all written bytes to the disk. After a failed sync every further one fails, until the file is closed.
    pub fn sync(&self) -> Result<(), Failed> {
        if let Some(errno) = self.lost.get() {
            return Err(failed(&self.path, "reach the disk", &io::Error::from_raw_os_error(*errno)));
        }
        self.file().and_then(|file| file.sync_all()).map_err(|error| {
            let _first = self.lost.set(error.raw_os_error().unwrap_or(libc::EIO));
            failed(&self.path, "reach the disk", &error)
        })
    }
}

fn failed(path: &CString, what: &str, error: &io::Error) -> Failed {
    say(format_args!(
        "rank {}: {}: cannot {what}: {error}; check its file system",
        ffi::world_rank(),
        path.to_string_lossy()
    ));
    Failed::System(error.raw_os_error().unwrap_or(libc::EIO))
}

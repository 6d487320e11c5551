//! Files with names, which other programs see, too: shared files are such.

use super::operation::{IoOperation, Progress, REQUEST_BYTES_MAX, Request, Step};
use super::{BLOCK_BYTES, BlockingReader, FileSlot, IoDirection};
use nix::fcntl::{FallocateFlags, fallocate};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use vgasnet_conduit::blocking_signals;

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedOptions {
    /// It is to be written. It is read in any case: of what is written in part the rest is read.
    pub write: bool,
    /// It is made if there is none, with these permissions less the process's mask.
    pub create: Option<u32>,
    /// It is an error if there is one.
    pub exclusive: bool,
    /// It is emptied.
    pub truncate: bool,
}

/// What a host knows of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Its number in its file system.
    pub inode: u64,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// When it was changed last, in nanoseconds.
    pub changed_ns: u64,
}

/// A file that is open.
#[derive(Debug)]
pub struct NamedFile {
    file: File,
    is_direct: bool,
}

impl NamedFile {
    /// Opens a file. It bypasses the system's cache (`O_DIRECT`) where the file system allows that.
    ///
    /// # Errors
    /// The system's. `EISDIR`, or `EINVAL`, where it is no regular file.
    pub fn open(path: &Path, options: &NamedOptions) -> io::Result<NamedFile> {
        let mut open = OpenOptions::new();
        open.read(true).write(options.write).truncate(options.truncate);
        open.mode(options.create.unwrap_or_default());
        if options.exclusive {
            open.create_new(options.create.is_some());
        } else {
            open.create(options.create.is_some());
        }
        let file = open.open(path)?;
        let kind = file.metadata()?;
        if !kind.is_file() {
            let errno = if kind.is_dir() { libc::EISDIR } else { libc::EINVAL };
            return Err(io::Error::from_raw_os_error(errno));
        }
        // The same file again: where it was just made, `O_EXCL` would refuse it, and other programs may have moved it.
        let same = format!("/proc/self/fd/{}", file.as_raw_fd());
        let direct = OpenOptions::new().read(true).write(options.write).custom_flags(libc::O_DIRECT).open(same);
        Ok(match direct.ok().filter(takes_direct) {
            Some(file) => NamedFile { file, is_direct: true },
            None => NamedFile { file, is_direct: false },
        })
    }

    /// Whether I/O bypasses the system's cache.
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// What this host knows of it. Hosts that see the same file know the same.
    ///
    /// # Errors
    /// The system's.
    pub fn about(&self) -> io::Result<About> {
        let about = self.file.metadata()?;
        let changed_ns = (about.mtime() as u64).wrapping_mul(1_000_000_000).wrapping_add(about.mtime_nsec() as u64);
        Ok(About { inode: about.ino(), size_bytes: about.len(), changed_ns })
    }

    /// How many bytes it has now.
    ///
    /// # Errors
    /// The system's.
    pub fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Cuts the file, or makes it longer by zeros.
    ///
    /// # Errors
    /// The system's.
    pub fn set_size(&self, size_bytes: u64) -> io::Result<()> {
        // A signal undoes it on some file systems.
        blocking_signals(|| self.file.set_len(size_bytes))
    }

    /// Makes room for the first `size_bytes` bytes, and the file that long at least. Where the file system cannot, the file is
    /// made that long.
    ///
    /// # Errors
    /// The system's: there is no room.
    pub fn allocate(&self, size_bytes: u64) -> io::Result<()> {
        let end = i64::try_from(size_bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
        match blocking_signals(|| fallocate(&self.file, FallocateFlags::empty(), 0, end)) {
            Ok(()) => Ok(()),
            Err(nix::Error::EOPNOTSUPP | nix::Error::ENOSYS) if self.size_bytes()? < size_bytes => {
                self.set_size(size_bytes)
            }
            Err(nix::Error::EOPNOTSUPP | nix::Error::ENOSYS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Has the disk take all that was written.
    ///
    /// # Errors
    /// The system's: something may be lost.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Does one request with a blocking call. Returns the bytes that it moved.
    ///
    /// # Safety
    /// The memory of the request is valid for its length: for writes if it is a read, for reads if it is a write.
    /// Nothing else accesses it during the call.
    pub(super) unsafe fn transfer(&self, direction: IoDirection, request: &Request) -> io::Result<usize> {
        let Request { offset_bytes, pointer, len_bytes } = *request;
        // Not by the C library's functions, in place of which other libraries have theirs.
        let call = match direction {
            IoDirection::Read => libc::SYS_pread64,
            IoDirection::Write => libc::SYS_pwrite64,
        };
        // SAFETY: the memory is valid for the length and direction of the request, and the file keeps its descriptor open.
        let moved = unsafe { libc::syscall(call, self.file.as_raw_fd(), pointer, len_bytes, offset_bytes) };
        usize::try_from(moved).map_err(|_| io::Error::last_os_error())
    }
}

impl AsFd for NamedFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl BlockingReader for NamedFile {
    unsafe fn read(&self, operation: &IoOperation) -> io::Result<()> {
        assert!(operation.direction == IoDirection::Read, "a blocking reader does not write");
        let mut progress = Progress::new(*operation, None);
        loop {
            // SAFETY: the request is a part of the operation, whose memory the caller leaves to this call.
            let result = unsafe { self.transfer(IoDirection::Read, &progress.request(REQUEST_BYTES_MAX)) };
            if let Step::Complete(result) = progress.advance(result) {
                return result;
            }
        }
    }
}

/// The files with names of a storage, by slot less one: slot 0 is the backing file.
#[derive(Debug, Default)]
pub(super) struct NamedFiles(Vec<Option<Arc<NamedFile>>>);

impl NamedFiles {
    pub(super) fn add(&mut self, file: Arc<NamedFile>) -> FileSlot {
        let free = self.0.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        });
        self.0[at] = Some(file);
        FileSlot(at as u32 + 1)
    }

    pub(super) fn remove(&mut self, slot: FileSlot) {
        self.0[slot.0 as usize - 1] = None;
    }

    /// The file of a slot; `None` for the backing file.
    pub(super) fn get(&self, slot: FileSlot) -> Option<&Arc<NamedFile>> {
        let at = slot.0.checked_sub(1)?;
        Some(self.0[at as usize].as_ref().expect("a file with operations is open"))
    }
}

/// Whether direct I/O in blocks works: some file systems take the flag, but refuse the reads, or need larger blocks.
fn takes_direct(file: &File) -> bool {
    #[repr(align(4096))]
    struct Block([u8; BLOCK_BYTES]);
    let mut block = Box::new(Block([0; BLOCK_BYTES]));
    // At the second block: where larger ones are needed, this one is none of them.
    !file.read_at(&mut block.0, BLOCK_BYTES as u64).is_err_and(|error| error.raw_os_error() == Some(libc::EINVAL))
}

//! A backing file as other processes of its host and user open it for reading. It has no name, so it is opened by its
//! descriptor in the process of its home.

use super::BlockingReader;
use super::file::BackingFile;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::Arc;

/// Where a backing file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedFile {
    process: u64,
    descriptor: u64,
    device: u64,
    inode: u64,
    size_bytes: u64,
    is_direct: bool,
}

impl SharedFile {
    /// Where a file of this process is. `None` if the system does not tell.
    pub(super) fn of(file: &BackingFile) -> Option<SharedFile> {
        let descriptor = file.as_fd().as_raw_fd();
        let known = fs::metadata(format!("/proc/self/fd/{descriptor}")).ok()?;
        Some(SharedFile {
            process: u64::from(std::process::id()),
            descriptor: descriptor as u64,
            device: known.dev(),
            inode: known.ino(),
            size_bytes: file.size_bytes(),
            is_direct: file.is_direct(),
        })
    }

    /// As numbers, for memory that the processes share.
    pub fn to_numbers(self) -> [u64; 6] {
        let SharedFile { process, descriptor, device, inode, size_bytes, is_direct } = self;
        [process, descriptor, device, inode, size_bytes, u64::from(is_direct)]
    }

    /// From the numbers of [`SharedFile::to_numbers`].
    pub fn from_numbers([process, descriptor, device, inode, size_bytes, is_direct]: [u64; 6]) -> SharedFile {
        SharedFile { process, descriptor, device, inode, size_bytes, is_direct: is_direct == 1 }
    }

    /// Opens the file for reading. A forked child closes it.
    ///
    /// # Errors
    /// The system's: the process has ended, does not let others look at it, or has another number in its own namespace;
    /// or this process may open no more files.
    pub fn open(&self) -> io::Result<Arc<dyn BlockingReader>> {
        let path = format!("/proc/{}/fd/{}", self.process, self.descriptor);
        // In another namespace it may be anything, which an open might change or wait for.
        self.check(&fs::metadata(&path)?)?;
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY | if self.is_direct { libc::O_DIRECT } else { 0 };
        let file = above_standard(OpenOptions::new().read(true).custom_flags(flags).open(path)?);
        self.check(&file.metadata()?)?;
        closed_in_children::add(file.as_raw_fd());
        Ok(Arc::new(BackingFile::of_other(file, self.size_bytes, self.is_direct)))
    }

    fn check(&self, found: &fs::Metadata) -> io::Result<()> {
        let is_it = (found.dev(), found.ino()) == (self.device, self.inode);
        if is_it { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESTALE)) }
    }
}

/// The same file by a number that programs rarely close and open again.
fn above_standard(file: File) -> File {
    const FIRST: i32 = 64;
    // SAFETY: the file keeps its descriptor open during the call.
    let number = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, FIRST) };
    // SAFETY: the descriptor is new, and nobody else's.
    if number < 0 { file } else { unsafe { File::from_raw_fd(number) } }
}

/// Descriptors that a forked child closes: it may live longer than the job, whose files are to go.
mod closed_in_children {
    use std::os::fd::RawFd;
    use std::sync::Once;
    use std::sync::atomic::{AtomicI32, Ordering};

    const NONE: RawFd = -1;

    /// More than the ranks of any host. Further descriptors stay open in children.
    static OPENED: [AtomicI32; 1024] = [const { AtomicI32::new(NONE) }; 1024];

    extern "C" fn close() {
        for opened in &OPENED {
            let number = opened.swap(NONE, Ordering::Relaxed);
            if number != NONE {
                // SAFETY: the child has the descriptor from its parent, and never uses it.
                unsafe { libc::close(number) };
            }
        }
    }

    pub(super) fn add(number: RawFd) {
        static ONCE: Once = Once::new();
        // SAFETY: the function has the expected type. Without memory for the entry, children keep the files.
        ONCE.call_once(|| unsafe {
            libc::pthread_atfork(None, None, Some(close));
        });
        let add =
            |place: &AtomicI32| place.compare_exchange(NONE, number, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let _is_added = OPENED.iter().any(add);
    }
}

//! A backing file as other processes of its host and user open it for reading. It has no name, so it is opened by its
//! descriptor in the process of its home.

use super::BlockingReader;
use super::file::BackingFile;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
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

    /// Opens the file for reading.
    ///
    /// # Errors
    /// The system's: the process has ended, does not let others look at it, or has another number in its own namespace;
    /// or this process may open no more files.
    pub fn open(&self) -> io::Result<Arc<dyn BlockingReader>> {
        let path = format!("/proc/{}/fd/{}", self.process, self.descriptor);
        let flags = if self.is_direct { libc::O_DIRECT } else { 0 };
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let found = file.metadata()?;
        if (found.dev(), found.ino()) != (self.device, self.inode) {
            return Err(io::Error::from_raw_os_error(libc::ESTALE));
        }
        Ok(Arc::new(BackingFile::of_other(file, self.size_bytes, self.is_direct)))
    }
}

//! A file that others write as well from some moment on, by MPI: `libvgasnet-mpi-io` has all ranks stop their calls, syncs the file, and has
//! the program read and write it without pages. The file stays open for its shared pointer.

use super::{FileError, Files, SharedFile};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering;

impl Files {
    /// The file has been synced, and its team caches nothing of it any more: to close it writes nothing, and cuts nothing. Each rank says so
    /// before the first one closes it. Returns the file's descriptor, which stays open as long as the file does.
    ///
    /// # Errors
    /// This rank does not see the file.
    pub fn hand_over(&self, file: &SharedFile) -> Result<RawFd, FileError> {
        let descriptor = file.file.as_ref().and_then(|named| named.as_fd()).map(|file| file.as_raw_fd());
        let descriptor = descriptor.ok_or_else(|| FileError::io(&file.path, "be handed over", libc::EOPNOTSUPP))?;
        file.is_handed_over.store(true, Ordering::Relaxed);
        Ok(descriptor)
    }
}

//! What `libvgasnet-mpi-io` does with a file by one rank.
//!
//! Where others write it as well from some moment on, it has all ranks stop their calls, syncs the file, and has the program read and write it
//! without pages. The file stays open for its shared pointer. Where the job is about to end, one rank has all written that any rank has.

use super::{FileError, Files, SharedFile};
use crate::storage::errno_of;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering;
use vgasnet_protocol::file_message::PageFilter;

impl Files {
    /// The file's descriptor, which stays open as long as the file does.
    ///
    /// # Errors
    /// This rank does not see the file.
    pub fn descriptor(&self, file: &SharedFile) -> Result<RawFd, FileError> {
        let descriptor = file.file.as_ref().and_then(|named| named.as_fd()).map(|file| file.as_raw_fd());
        descriptor.ok_or_else(|| FileError::io(&file.path, "be handed over", libc::EOPNOTSUPP))
    }

    /// The file has been synced, and its team caches nothing of it any more: to close it writes nothing, and cuts nothing. Each rank says so
    /// before the first one closes it.
    pub fn hand_over(&self, file: &SharedFile) {
        file.is_handed_over.store(true, Ordering::Relaxed);
    }

    /// What any rank has written has reached the file system, and the file ends where that does. The other ranks' helpers do their part.
    ///
    /// # Errors
    /// Some of it could not be written.
    pub fn rescue(&self, file: &SharedFile) -> Result<(), FileError> {
        if !file.access.write || file.is_handed_over.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.flush(file)?;
        let cause = self.driver().recall_file(file.space, &file.stripes.homes, PageFilter::ALL);
        if let Some(cause) = cause {
            return Err(file.failed("be written", cause));
        }
        // Whole blocks are written.
        let cut = self.cut_to_end(file);
        cut.map_err(|error| FileError::io(&file.path, "get its size", errno_of(&error)))
    }
}

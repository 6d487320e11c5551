//! Blocking reads of the backing file, by any thread.

use super::file::BackingFile;
use super::operation::{IoOperation, Progress, REQUEST_BYTES_MAX, Request, Step};
use super::{BlockingReader, IoDirection};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

impl BlockingReader for BackingFile {
    unsafe fn read(&self, operation: &IoOperation) -> io::Result<()> {
        assert!(operation.direction == IoDirection::Read, "a blocking reader does not write");
        let mut progress = Progress::new(*operation, Some(self.size_bytes()));
        loop {
            // SAFETY: the request is a part of the operation, whose memory the caller leaves to this call.
            let result = unsafe { read_once(self, &progress.request(REQUEST_BYTES_MAX)) };
            if let Step::Complete(result) = progress.advance(result) {
                return result;
            }
        }
    }
}

/// Does one request. Returns the bytes that it moved.
///
/// # Safety
/// The memory of the request is valid for writes, and nothing else accesses it during the call.
unsafe fn read_once(file: &BackingFile, request: &Request) -> io::Result<usize> {
    let Request { offset_bytes, pointer, len_bytes } = *request;
    let descriptor = file.as_fd().as_raw_fd();
    // Not by the C library's function, in which a thread can be cancelled, and in place of which other libraries have theirs.
    // SAFETY: the memory is valid for the length of the request, and the file keeps its descriptor open.
    let moved = unsafe { libc::syscall(libc::SYS_pread64, descriptor, pointer, len_bytes, offset_bytes) };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

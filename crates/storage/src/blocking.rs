//! Blocking reads of the backing file, from any thread.

use super::file::BackingFile;
use super::operation::{IoOperation, Progress, REQUEST_BYTES_MAX, Step};
use super::{BlockingReader, IoDirection, SharedFile};
use std::io;

impl BlockingReader for BackingFile {
    unsafe fn read(&self, operation: &IoOperation) -> io::Result<()> {
        assert!(operation.direction == IoDirection::Read, "a blocking reader does not write");
        let mut progress = Progress::new(*operation, self.size_bytes());
        loop {
            // SAFETY: the request is a part of the operation, and the caller leaves the memory of the operation to this
            // call.
            let result = unsafe { self.transfer(IoDirection::Read, &progress.request(REQUEST_BYTES_MAX)) };
            if let Step::Complete(result) = progress.advance(result, None) {
                return result;
            }
        }
    }

    fn shared(&self) -> Option<SharedFile> {
        SharedFile::of(self)
    }
}

//! What a user is told where the backing file fails.

use super::{Operation, StorageServer};
use crate::error::UserError;
use crate::storage::IoDirection;
use std::io;

impl StorageServer {
    /// The line about an operation that failed.
    pub(super) fn failure(&self, operation: &Operation, error: &io::Error) -> UserError {
        self.failure_at(operation.direction, operation.page.index, error)
    }

    /// The line about a page, by its index, of which something could not be moved.
    pub(super) fn failure_at(&self, direction: IoDirection, index: u32, error: &io::Error) -> UserError {
        let (verb, preposition) = match direction {
            IoDirection::Read => ("read", "from"),
            IoDirection::Write => ("write", "to"),
        };
        let offset = u64::from(index) * self.space.page_bytes() as u64;
        let hint = match error.raw_os_error() {
            Some(libc::EFBIG) => "raise `ulimit -f`",
            _ => "check the disk, or set VGASNET_STORAGE_DIR to a directory on another one",
        };
        UserError::new(format!(
            "cannot {verb} the page at offset {offset} of this rank's segment {preposition} its backing file: {error}; \
             no other copy can take its place, so the job ends; {hint}"
        ))
    }
}

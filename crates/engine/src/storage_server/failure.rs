//! Error lines for failures of the backing file.

use super::StorageServer;
use std::io;
use vgasnet_protocol::coherence::PageId;
use vgasnet_settings::UserError;
use vgasnet_storage::IoDirection;

impl StorageServer {
    /// The line for failed I/O on a page of a segment.
    pub(super) fn failure_at(&self, direction: IoDirection, page: PageId, error: &io::Error) -> UserError {
        let (verb, preposition) = match direction {
            IoDirection::Read => ("read", "from"),
            IoDirection::Write => ("write", "to"),
        };
        let offset = u64::from(page.index) * self.space.page_bytes() as u64;
        let (whose, which) = match page.space.segment().filter(|owner| *owner != self.space.rank) {
            None => ("this rank's segment".to_owned(), "its"),
            Some(owner) => (format!("rank {owner}'s segment"), "this rank's"),
        };
        let hint = match error.raw_os_error() {
            Some(libc::EFBIG) => "raise `ulimit -f`",
            _ => "check the disk, or set VGASNET_STORAGE_DIR to a directory on another one",
        };
        UserError::new(format!(
            "cannot {verb} the page at offset {offset} of {whose} {preposition} {which} backing file: {error}; \
             no other copy can take its place, so the job ends; {hint}"
        ))
    }
}

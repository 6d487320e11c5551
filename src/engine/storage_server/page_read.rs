//! Reads that threads do themselves: who waits for a small page of the own disk, and for nothing else, reads it with a blocking
//! call.
//!
//! That spares the thread that drives, and two changes of threads a page. The kernel ends an operation of the ring in the thread
//! that has begun it, which it wakes for that, so a thread that waits for its page elsewhere is woken twice.

use super::{Need, Operation, StorageServer};
use crate::storage::{BlockingReader, IoDirection, IoOperation};
use std::io;
use std::sync::Arc;
use vgasnet_protocol::coherence::{PageId, Priority};

/// The largest pages that threads read themselves, in bytes. Larger ones are better read into memory that stays pinned, which the
/// ring knows.
pub(super) const READ_BYTES_MAX: usize = 256 << 10;

/// A page that is to be read by the thread that has this.
pub struct PageRead {
    id: usize,
    operation: IoOperation,
    reader: Arc<dyn BlockingReader>,
}

impl PageRead {
    /// Reads the page.
    ///
    /// # Errors
    /// The storage's.
    pub fn run(self) -> EndedRead {
        // SAFETY: the memory lies in a frame that stays mapped until the process ends, and is reserved for the page until its Data
        // message, which is sent after `StorageServer::end_read`. Until then the home begins nothing else of the page.
        let result = unsafe { self.reader.read(&self.operation) };
        EndedRead { id: self.id, result }
    }
}

/// A read that a thread has done.
#[must_use]
pub struct EndedRead {
    pub(super) id: usize,
    pub(super) result: io::Result<()>,
}

impl StorageServer {
    /// Takes the read of a page that the storage has not begun, for a thread that waits for the page.
    pub(in crate::engine) fn take_read(&mut self, page: PageId) -> Option<PageRead> {
        let reader = self.reader.as_ref()?;
        let id = *self.of_page.get(&page.index)?;
        let Operation { direction, priority, need, .. } = self.operations[id];
        let is_meant = direction == IoDirection::Read && priority == Priority::Now && need == Some(Need::Nothing);
        let waiting = self.waiting_of(id).filter(|_| is_meant)?;
        let read = PageRead { id, operation: self.io_operation(id, self.whole()), reader: Arc::clone(reader) };
        self.waiting.remove(&waiting);
        (self.operations[id].need, self.operations[id].part) = (None, self.whole());
        self.by_threads += 1;
        Some(read)
    }
}

//! Reads that threads do themselves: who waits for a small page of the own disk, or a block, and for nothing else, reads it with a
//! blocking call.
//!
//! That spares the thread that drives, and two changes of threads a page. The kernel ends an operation of the ring in the thread
//! that has begun it, which it wakes for that, so a thread that waits for its page elsewhere is woken twice.

use super::{BLOCK_TOKEN, Need, Operation, StorageServer};
use crate::engine::work::Work;
use crate::error::UserError;
use crate::storage::{BlockingReader, IoDirection, IoOperation};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use vgasnet_protocol::coherence::{Event, PageId, Priority};

/// The largest pages that threads read themselves, in bytes. Larger ones are better read into memory that stays pinned, which the
/// ring knows.
pub(super) const READ_BYTES_MAX: usize = 256 << 10;

/// A page or block that is to be read by the thread that has this.
pub struct PageRead {
    /// The token of the storage.
    token: u64,
    operation: IoOperation,
    reader: Arc<dyn BlockingReader>,
}

impl PageRead {
    /// Reads the page or block.
    ///
    /// # Errors
    /// The storage's.
    pub fn run(self) -> EndedRead {
        // SAFETY: the memory lies in a frame that stays mapped until the process ends, and is reserved for the page until its Data
        // message, which is sent after `StorageServer::end_read`. Until then the home begins nothing else of the page. A block that is
        // wanted is left alone until it has been read.
        let result = unsafe { self.reader.read(&self.operation) };
        EndedRead { token: self.token, result }
    }
}

/// A read that a thread has done.
#[must_use]
pub struct EndedRead {
    pub(super) token: u64,
    pub(super) result: io::Result<()>,
}

impl StorageServer {
    /// Takes the read of a page that the storage has not begun, for a thread that waits for the page.
    pub(in crate::engine) fn take_read(&mut self, page: PageId) -> Option<PageRead> {
        let place = self.files.try_number(page)?;
        let id = *self.of_page.get(&place)?;
        let reader = self.page_reader(place)?;
        let Operation { direction, priority, need, .. } = self.operations[id];
        let is_meant = direction == IoDirection::Read && priority == Priority::Now && need == Some(Need::Nothing);
        let waiting = self.waiting_of(id).filter(|_| is_meant)?;
        let read = PageRead { token: id as u64, operation: self.io_operation(id, self.whole()), reader };
        self.waiting.remove(&waiting);
        (self.operations[id].need, self.operations[id].part) = (None, self.whole());
        self.by_threads += 1;
        Some(read)
    }

    /// A thread has done a read that it had taken.
    ///
    /// # Errors
    /// As [`StorageServer::poll`].
    pub(in crate::engine) fn end_read(
        &mut self,
        read: EndedRead,
        events: &mut VecDeque<Event>,
        work: &mut VecDeque<Work>,
    ) -> Result<(), UserError> {
        if read.token >= BLOCK_TOKEN {
            self.blocks_by_threads -= 1;
            return self.complete_block(read.token, &read.result, work);
        }
        self.by_threads -= 1;
        self.complete(read.token as usize, &read.result, events, work)
    }

    /// How many blocks wait to be read.
    pub(in crate::engine) fn blocks_to_read(&self) -> usize {
        self.blocks.to_read()
    }

    /// Takes the read of the one block that a thread has added to `before` others, for which it waits.
    pub(in crate::engine) fn take_block_read(&mut self, before: usize) -> Option<PageRead> {
        let place = self.blocks.last_to_read().filter(|_| self.blocks.to_read() == before + 1)?;
        let reader = self.block_reader_of(place)?;
        let operation = self.blocks.take_read()?;
        self.blocks_by_threads += 1;
        Some(PageRead { token: operation.token, operation, reader })
    }
}

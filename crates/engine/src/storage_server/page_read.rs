//! Blocking reads by threads. A thread waiting for nothing but one small page of the own disk, or a block, reads it
//! itself.
//!
//! This spares the driver and two thread switches per page. The kernel completes an io_uring operation in the
//! submitting thread and wakes it for this, so a page for a thread waiting elsewhere takes two wake-ups.

use super::{BLOCK_TOKEN, Need, Operation, StorageServer};
use crate::queue::Todo;
use std::io;
use std::sync::Arc;
use vgasnet_protocol::coherence::{PageId, Priority};
use vgasnet_settings::UserError;
use vgasnet_storage::{BlockingReader, IoDirection, IoOperation};

/// Largest page that threads read themselves, in bytes. Larger ones are better read into the ring's registered memory.
pub(super) const READ_BYTES_MAX: usize = 256 << 10;

/// A page or block to be read by the calling thread.
pub struct PageRead {
    /// The storage's token.
    token: u64,
    operation: IoOperation,
    reader: Arc<dyn BlockingReader>,
}

impl PageRead {
    /// Reads the page or block. The result holds the storage's error, if any.
    pub fn run(self) -> EndedRead {
        // SAFETY: the memory lies in a frame that stays mapped until the process ends. The frame is reserved for the
        // page until its Data message, which follows `StorageServer::end_read`; until then the home begins nothing else
        // on the page. A wanted block is not accessed before it has been read.
        let result = unsafe { self.reader.read(&self.operation) };
        EndedRead { token: self.token, result }
    }
}

/// A read performed by a thread.
#[must_use]
pub struct EndedRead {
    pub(super) token: u64,
    pub(super) result: io::Result<()>,
}

impl StorageServer {
    /// Takes the pending read of a page for a thread waiting for the page.
    pub(crate) fn take_read(&mut self, page: PageId) -> Option<PageRead> {
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

    /// A thread has performed a read.
    ///
    /// # Errors
    /// As [`StorageServer::poll`].
    pub(crate) fn end_read(&mut self, read: EndedRead, todo: &mut Todo) -> Result<(), UserError> {
        if read.token >= BLOCK_TOKEN {
            self.blocks_by_threads -= 1;
            return self.complete_block(read.token, &read.result, todo);
        }
        self.by_threads -= 1;
        self.complete(read.token as usize, &read.result, todo)
    }

    /// Number of blocks waiting to be read.
    pub(crate) fn blocks_to_read(&self) -> usize {
        self.blocks.to_read()
    }

    /// Takes the read of the only block added to `before` others, for the thread that added it and waits.
    pub(crate) fn take_block_read(&mut self, before: usize) -> Option<PageRead> {
        let place = self.blocks.last_to_read().filter(|_| self.blocks.to_read() == before + 1)?;
        let reader = self.block_reader_of(place)?;
        let operation = self.blocks.take_read()?;
        self.blocks_by_threads += 1;
        Some(PageRead { token: operation.token, operation, reader })
    }
}

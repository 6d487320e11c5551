//! Blocking reads by threads. A thread waiting for nothing but one small page of the own disk, or a block, reads it
//! itself.
//!
//! This spares the driver and two thread switches per page. The kernel completes an io_uring operation in the
//! submitting thread and wakes it for this, so a page for a thread waiting elsewhere takes two wake-ups.

use super::home_page::HomePage;
use super::{BLOCK_TOKEN, StorageServer};
use crate::queue::Todo;
use std::io;
use std::sync::Arc;
use vgasnet_protocol::coherence::PageId;
use vgasnet_settings::UserError;
use vgasnet_storage::{BlockingReader, FileSlot, IoDirection, IoOperation, Storage};

/// Largest page that threads read themselves, in bytes. Larger ones are better read into the ring's registered memory.
const READ_BYTES_MAX: usize = 256 << 10;

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
        debug_assert_eq!(self.operation.direction, IoDirection::Read, "threads only read");
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
    token: u64,
    result: io::Result<()>,
}

/// The reads that threads perform.
pub(super) struct ThreadReads {
    /// Reads pages of the backing file; `None` if threads may not.
    page_reader: Option<Arc<dyn BlockingReader>>,
    /// The same, for blocks.
    block_reader: Option<Arc<dyn BlockingReader>>,
    /// Pages and blocks being read.
    pages: usize,
    blocks: usize,
}

impl ThreadReads {
    /// No reads yet of the backing file of a storage, or of others.
    pub(super) fn new(storage: &dyn Storage, page_bytes: usize) -> ThreadReads {
        let block_reader = storage.reader(FileSlot::BACKING);
        let page_reader = block_reader.clone().filter(|_| page_bytes <= READ_BYTES_MAX);
        ThreadReads { page_reader, block_reader, pages: 0, blocks: 0 }
    }

    /// Number of pages being read.
    pub(super) fn pages(&self) -> usize {
        self.pages
    }

    /// Number of blocks being read.
    pub(super) fn blocks(&self) -> usize {
        self.blocks
    }
}

impl StorageServer {
    /// Takes the pending read of a page for a thread waiting for the page.
    pub(crate) fn take_read(&mut self, page: PageId) -> Option<PageRead> {
        let place = self.files.try_number(page)?;
        let id = self.operations.of_page(place)?;
        let reader = self.page_reader(place)?;
        let operation = self.operations.get(id);
        if operation.order().direction != IoDirection::Read || !operation.is_urgent() || !operation.is_ready() {
            return None;
        }
        debug_assert!(operation.staging().is_none(), "a thread reads a page into its own frame");
        let read = PageRead { token: id as u64, operation: self.io_operation(id, self.whole()), reader };
        self.operations.begin(id, self.whole());
        self.thread_reads.pages += 1;
        debug_assert!(self.thread_reads.pages <= self.operations.len(), "a page that a thread reads has an operation");
        Some(read)
    }

    /// A thread has performed a read.
    ///
    /// # Errors
    /// As [`StorageServer::poll`].
    pub(crate) fn end_read(&mut self, read: EndedRead, todo: &mut Todo) -> Result<(), UserError> {
        if read.token >= BLOCK_TOKEN {
            assert!(self.thread_reads.blocks > 0, "a thread was reading a block");
            self.thread_reads.blocks -= 1;
            return self.complete_block(read.token, &read.result, todo);
        }
        assert!(self.thread_reads.pages > 0, "a thread was reading a page");
        self.thread_reads.pages -= 1;
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
        debug_assert!(operation.token >= BLOCK_TOKEN, "token {} is of a block", operation.token);
        self.thread_reads.blocks += 1;
        Some(PageRead { token: operation.token, operation, reader })
    }

    /// Lets threads read pages of a file themselves, if they may.
    fn page_reader(&self, place: HomePage) -> Option<Arc<dyn BlockingReader>> {
        if place.is_of_segment() {
            return self.thread_reads.page_reader.clone();
        }
        self.block_reader_of(place).filter(|_| self.space.page_bytes() <= READ_BYTES_MAX)
    }

    /// The same, for blocks.
    fn block_reader_of(&self, place: HomePage) -> Option<Arc<dyn BlockingReader>> {
        if place.is_of_segment() {
            self.thread_reads.block_reader.clone()
        } else {
            self.storage.reader(FileSlot(place.slot()))
        }
    }
}

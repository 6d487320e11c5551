//! A home's storage server: reads pages from the backing file into requesters' frames, and writes dirty pages back.
//!
//! Frames mapped here are read or written in place. Other pages pass through a staging frame ([`Staging`]).
//!
//! If the holder's frame is mapped, only the dirty blocks of a page are written, in a few consecutive parts. A page in
//! a staging frame is written whole, since its blocks are not known here.
//!
//! The most urgent operation goes first. The number of background operations in the storage is bounded
//! ([`Background`]).

mod background;
mod blocks;
mod byte_jobs;
mod failure;
mod home_files;
mod home_page;
mod named_files;
mod page_io;
mod page_operations;
mod page_read;
mod runs;
mod shown;
mod spilled;
mod staging;
mod storage_queue;
#[cfg(test)]
mod tests;

pub use page_read::{EndedRead, PageRead};

use super::queue::Todo;
use super::work::Work;
use background::Background;
use blocks::{BLOCK_TOKEN, Blocks};
use home_files::HomeFiles;
use page_operations::{Operation, Order, PageOperations};
use page_read::ThreadReads;
use staging::Staging;
use std::io;
use std::sync::Arc;
use storage_queue::{Need, WaitingOperation};
use vgasnet_conduit::{Token, Transfer};
use vgasnet_memory::{AddressSpace, DIRTY_BLOCK_BYTES, HomeBlocks};
use vgasnet_protocol::coherence::{Cause, Event, FrameId, PageId, Priority};
use vgasnet_protocol::{Rank, Spaces};
use vgasnet_settings::UserError;
use vgasnet_stats::{self as stats, Row};
use vgasnet_storage::{BLOCK_BYTES, IoDirection, Storage, errno_of};

/// Gaps of fewer clean bytes between dirty ones are written along. A disk of a few GB/s writes them in the time of
/// another request.
const GAP_BYTES: usize = 64 << 10;

const _: () = assert!(DIRTY_BLOCK_BYTES % BLOCK_BYTES == 0);

/// The storage server of one rank.
pub struct StorageServer {
    space: Arc<AddressSpace>,
    storage: Box<dyn Storage>,
    files: HomeFiles,
    operations: PageOperations,
    staging: Staging,
    background: Background,
    blocks: Blocks,
    /// What neighbours see of the file, or nothing.
    shown: HomeBlocks,
    thread_reads: ThreadReads,
    /// Gaps of fewer clean bytes between dirty ones are written along.
    gap_bytes: usize,
    /// Failed loads for which no operation waited.
    forgotten: u64,
}

impl StorageServer {
    /// A server with the frames `staging` of the own pool, unknown to the cache, and with memory for `slots` blocks, at
    /// least one, from frame `first_of_blocks` on.
    ///
    /// # Panics
    /// If there are fewer than three frames for staging, or there is no memory for the blocks.
    pub fn new(
        space: Arc<AddressSpace>,
        storage: Box<dyn Storage>,
        staging: Vec<FrameId>,
        (first_of_blocks, slots): (FrameId, usize),
    ) -> StorageServer {
        assert!(slots > 0, "a job needs a block");
        assert!(
            staging.iter().all(|frame| *frame < first_of_blocks),
            "frames for staging come before those for blocks"
        );
        assert!(
            space.own.pool.bytes_from(first_of_blocks) >= slots * BLOCK_BYTES,
            "there is no memory for {slots} blocks"
        );
        let (pool, page_bytes) = (&space.own.pool, space.page_bytes());
        let (shown, slots) = shown::offer(&space, &*storage, pool.offset_bytes(first_of_blocks), slots);
        let mut blocks = Blocks::new(pool.frame(FrameId(0)), pool.offset_bytes(first_of_blocks), slots, page_bytes);
        blocks.show_by(shown);
        StorageServer {
            shown,
            files: HomeFiles::new(space.rank, Spaces::new([])),
            operations: PageOperations::default(),
            staging: Staging::new(staging),
            background: Background::new(page_bytes),
            blocks,
            thread_reads: ThreadReads::new(&*storage, page_bytes),
            gap_bytes: GAP_BYTES,
            forgotten: 0,
            space,
            storage,
        }
    }

    /// Sets the gap: fewer than `gap_bytes` clean bytes between dirty ones are written along.
    #[must_use]
    pub fn with_gaps(self, gap_bytes: usize) -> StorageServer {
        StorageServer { gap_bytes, ..self }
    }

    /// Sets the homes of the segments' pages.
    #[must_use]
    pub fn with_homes(self, segments: Spaces) -> StorageServer {
        assert!(self.files.is_empty() && self.operations.len() == 0, "homes are set before anything is stored");
        StorageServer { files: HomeFiles::new(self.space.rank, segments), ..self }
    }

    /// The storage.
    pub fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// Whether anything is in flight or waiting, except reads by threads.
    pub fn is_busy(&self) -> bool {
        debug_assert!(
            self.thread_reads.pages() <= self.operations.len(),
            "a page that a thread reads has an operation"
        );
        self.operations.len() > self.thread_reads.pages() || self.blocks.is_busy(self.thread_reads.blocks())
    }

    /// Number of operations in flight or waiting.
    pub fn operations(&self) -> usize {
        self.operations.len() + self.blocks.jobs()
    }

    /// Number of pages that could not be read ahead, which is no error.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Queues the read of a page from the file into a frame of `to`. [`StorageServer::advance`] begins it.
    pub(super) fn load(&mut self, page: PageId, to: Rank, frame: FrameId, priority: Priority) {
        self.start(IoDirection::Read, page, (to, frame), priority);
    }

    /// Queues the write of a page from a frame of `from` to the file.
    pub(super) fn store(&mut self, page: PageId, from: Rank, frame: FrameId, priority: Priority) {
        self.start(IoDirection::Write, page, (from, frame), priority);
    }

    /// Raises the priority of a page's operation.
    pub(super) fn raise_priority(&mut self, page: PageId, priority: Priority) {
        let Some(id) = self.operations.of_page(self.files.number(page)) else { return };
        let left = self.operations.raise_priority(id, priority);
        left.into_iter().for_each(|led| self.background.on_ended(led));
    }

    /// Handles the storage's completions. Returns whether there were any.
    ///
    /// # Errors
    /// An operation on the backing file failed. No other copy of the page is accounted for, so the job cannot go on.
    /// Only a background load may fail. Or a block could not be unmapped.
    pub(super) fn poll(&mut self, todo: &mut Todo) -> Result<bool, UserError> {
        self.check_unmapped()?;
        if self.storage.in_flight() == 0 {
            return Ok(false);
        }
        let (mut completed, drains) = (Vec::new(), self.drains_ended());
        self.storage.poll(&mut |token, result| completed.push((token, result)));
        for (token, result) in &completed {
            if *token >= BLOCK_TOKEN {
                self.complete_block(*token, result, todo)?;
            } else {
                self.complete(*token as usize, result, todo)?;
            }
        }
        Ok(!completed.is_empty() || self.drains_ended() != drains)
    }

    /// Handles the outcome of an operation's I/O by the storage or a thread.
    ///
    /// # Errors
    /// As [`StorageServer::poll`].
    fn complete(&mut self, id: usize, result: &io::Result<()>, todo: &mut Todo) -> Result<(), UserError> {
        let left = self.operations.leave_background(id);
        left.into_iter().for_each(|led| self.background.on_ended(led));
        let operation = *self.operations.get(id);
        debug_assert!(!operation.is_waiting(), "{:?} was in the storage", operation.order().page);
        let Order { direction, page, place, .. } = operation.order();
        let is_ahead = direction == IoDirection::Read && !operation.is_urgent();
        match (direction, result) {
            (_, Err(_)) if is_ahead => {
                self.forget(id);
                self.forgotten += 1;
                todo.raise(Event::LoadFailed { page, cause: None });
            }
            (_, Err(error)) if place.is_of_segment() => return Err(self.failure_at(direction, page, error)),
            (_, Err(error)) => {
                self.forget(id);
                let cause = cause_of(error);
                todo.raise(match direction {
                    IoDirection::Read => Event::LoadFailed { page, cause: Some(cause) },
                    IoDirection::Write => Event::StoreFailed { page, cause },
                });
            }
            (IoDirection::Read, Ok(())) => {
                if !place.is_of_segment() {
                    count_of_file(direction, self.space.page_bytes());
                }
                if self.is_whole_or_lays_over(id, todo) {
                    self.on_whole(id, todo);
                }
            }
            (IoDirection::Write, Ok(())) => {
                debug_assert!(operation.part().len_bytes() > 0, "a write writes some bytes");
                stats::add(Row::DiskWriteBytes, operation.part().len_bytes() as u64);
                if !place.is_of_segment() {
                    count_of_file(direction, operation.part().len_bytes());
                }
                match self.next_part(id) {
                    Some(_) => self.operations.wait(id, Need::Nothing),
                    None => todo.raise(self.finish(id)),
                }
            }
        }
        Ok(())
    }

    /// The page read is complete in its operation's memory.
    pub(super) fn on_whole(&mut self, id: usize, todo: &mut Todo) {
        debug_assert!(!self.operations.get(id).is_waiting(), "the read has ended");
        debug_assert_eq!(self.operations.get(id).order().direction, IoDirection::Read, "the page was read");
        match self.operations.get(id).staging() {
            Some(staging) => todo.add(Work::Put(self.transfer(id, staging))),
            None => todo.raise(self.finish(id)),
        }
    }

    /// A transfer requested by this server is complete.
    pub(super) fn on_transferred(&mut self, id: usize, todo: &mut Todo) {
        assert!(self.operations.get(id).staging().is_some(), "only pages in staging frames are transferred");
        debug_assert!(!self.operations.get(id).is_waiting(), "an operation waits for its transfer alone");
        match self.operations.get(id).order().direction {
            IoDirection::Read => todo.raise(self.finish(id)),
            IoDirection::Write => self.operations.wait(id, Need::Nothing),
        }
    }

    fn start(&mut self, direction: IoDirection, page: PageId, (peer, frame): (Rank, FrameId), priority: Priority) {
        let place = self.files.number(page);
        debug_assert!(!self.blocks.has_jobs(place), "a rank is about to hold {page:?}, and no job uses its blocks");
        match direction {
            IoDirection::Write => self.blocks.on_storing(place),
            IoDirection::Read if priority == Priority::Now => self.background.on_missed(),
            IoDirection::Read => {}
        }
        let id = self.operations.add(Order { direction, page, place, peer, frame, priority });
        self.begin_page(id);
    }

    /// Starts the next steps of operations, as far as there are staging frames and room in the storage. Called once all
    /// events have been handled, so that adjacent operations in the file are merged.
    pub(super) fn advance(&mut self, todo: &mut Todo) {
        self.advance_blocks(todo);
        while let Some(waiting) = self.next_ready() {
            let run = self.run_from(&waiting);
            let begun = match waiting.need {
                Need::Nothing => self.submit(&run),
                need => usize::from(self.begin_staged(waiting.id, need, todo)),
            };
            assert!(begun <= run.len(), "the storage takes what it is given");
            for (id, part) in &run[..begun] {
                self.operations.begin(*id, *part);
            }
            self.operations.on_begun(begun);
            if begun < run.len() {
                return;
            }
        }
    }

    /// The next operation among those with all resources available.
    fn next_ready(&self) -> Option<WaitingOperation> {
        let is_background_full = self.background.left() == 0;
        self.operations.next(|priority, need| {
            let is_urgent = priority == Priority::Now;
            // A store in the background is bounded once its page is here.
            let is_bounded = !is_urgent && need != Need::StoreStaging;
            !(is_bounded && is_background_full) && self.staging.has(need, is_urgent)
        })
    }

    /// Begins an operation with an available staging frame. Returns whether the storage had room for it.
    fn begin_staged(&mut self, id: usize, need: Need, todo: &mut Todo) -> bool {
        assert_ne!(need, Need::Nothing, "the operation waits for a staging frame");
        let staging = self.staging.take(need);
        self.operations.set_staging(id, staging);
        if need == Need::StoreStaging {
            todo.add(Work::Get(self.transfer(id, staging)));
            return true;
        }
        let has_begun = self.submit(&[(id, self.whole())]) == 1;
        if let Some(staging) = if has_begun { None } else { self.operations.take_staging(id) } {
            self.staging.give_back(staging, need);
        }
        has_begun
    }

    fn forget(&mut self, id: usize) -> Operation {
        let operation = self.operations.remove(id);
        debug_assert!(!operation.is_waiting(), "{:?} ends after its I/O", operation.order().page);
        if let Some(staging) = operation.staging() {
            self.staging.give_back(staging, operation.staging_need());
        }
        operation
    }

    fn finish(&mut self, id: usize) -> Event {
        if self.operations.get(id).order().direction == IoDirection::Write {
            self.forget_blocks(id);
        }
        let Order { direction, page, peer, frame, .. } = self.forget(id).order();
        debug_assert_eq!(self.operations.of_page(self.files.number(page)), None, "{page:?} had one operation");
        // The file equals the frame until the page is open to writers again.
        self.space.blocks(peer).into_iter().for_each(|blocks| blocks.clear(frame));
        match direction {
            IoDirection::Read => Event::Loaded(page),
            IoDirection::Write => Event::Stored(page),
        }
    }

    fn transfer(&self, id: usize, staging: FrameId) -> Transfer {
        debug_assert_eq!(self.operations.get(id).staging(), Some(staging), "the operation has the frame");
        let (pool, Order { peer, frame, .. }) = (&self.space.own.pool, self.operations.get(id).order());
        debug_assert!(peer != self.space.rank || frame != staging, "a page moves between two frames");
        Transfer {
            peer,
            peer_offset_bytes: pool.offset_bytes(frame),
            own_offset_bytes: pool.offset_bytes(staging),
            len_bytes: pool.page_bytes(),
            token: token(id),
        }
    }
}

/// Counts I/O of a file.
fn count_of_file(direction: IoDirection, len_bytes: usize) {
    let (row, bytes) = match direction {
        IoDirection::Read => (Row::FileDiskReads, Row::FileDiskReadBytes),
        IoDirection::Write => (Row::FileDiskWrites, Row::FileDiskWriteBytes),
    };
    stats::count(row);
    stats::add(bytes, len_bytes as u64);
}

/// The cause of failed file I/O.
fn cause_of(error: &io::Error) -> Cause {
    Cause(errno_of(error).unsigned_abs())
}

/// Tokens of this server are odd. Those of page transfers are even.
fn token(id: usize) -> Token {
    Token(id as u64 * 2 + 1)
}

/// The operation of a token, if it is one of this server's.
pub(super) fn operation_of(token: Token) -> Option<usize> {
    (token.0 % 2 == 1).then_some(token.0 as usize / 2)
}

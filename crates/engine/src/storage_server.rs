//! A home's storage server: reads pages from the backing file into requesters' frames, and writes dirty pages back.
//!
//! Frames mapped here are read or written in place. Other pages pass through a staging frame. Staging frames serve for
//! nothing else, so a home can always take in a dirty page, even with a full pool. Stores, which may wait for space on
//! the disk, leave one of them to loads; background operations leave one to urgent ones.
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
mod files;
mod home_page;
mod page_read;
mod runs;
mod spilled;

pub use page_read::{EndedRead, PageRead};

use super::queue::Todo;
use super::storage_queue::{Need, StorageQueue, Waiting};
use super::work::Work;
use background::Background;
use blocks::{BLOCK_TOKEN, Blocks};
use home_page::{HomeFiles, HomePage};
use page_read::READ_BYTES_MAX;
use slab::Slab;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use vgasnet_conduit::{Token, Transfer};
use vgasnet_memory::{AddressSpace, DIRTY_BLOCK_BYTES, Extent};
use vgasnet_protocol::coherence::{Cause, Event, FrameId, PageId, Priority};
use vgasnet_protocol::{Rank, Spaces};
use vgasnet_settings::UserError;
use vgasnet_stats::{self as stats, Row};
use vgasnet_storage::{BLOCK_BYTES, BlockingReader, FileSlot, IoDirection, Storage, errno_of};

/// Gaps of fewer clean bytes between dirty ones are written along. A disk of a few GB/s writes them in the time of
/// another request.
const GAP_BYTES: usize = 64 << 10;

const _: () = assert!(DIRTY_BLOCK_BYTES % BLOCK_BYTES == 0);

/// A page in flight between the file and a frame.
#[derive(Clone, Copy, Debug)]
struct Operation {
    direction: IoDirection,
    page: PageId,
    place: HomePage,
    peer: Rank,
    frame: FrameId,
    priority: Priority,
    /// The resource it waits for, while it waits.
    need: Option<Need>,
    staging: Option<FrameId>,
    /// The bytes of the page in the storage now, or last.
    part: Extent,
    /// Set while it is in the storage as a background operation: whether it is the first of its request.
    in_background: Option<bool>,
    /// Sequence number of arrival.
    number: u64,
}

/// The storage server of one rank.
pub struct StorageServer {
    space: Arc<AddressSpace>,
    storage: Box<dyn Storage>,
    operations: Slab<Operation>,
    files: HomeFiles,
    /// The operation of each page that has one.
    of_page: HashMap<HomePage, usize>,
    /// Sequence number of the next operation.
    next: u64,
    waiting: StorageQueue,
    staging_free: Vec<FrameId>,
    /// Stores that may still take a staging frame.
    stores_left: usize,
    background: Background,
    /// Failed loads for which no operation waited.
    forgotten: u64,
    /// Gaps of fewer clean bytes between dirty ones are written along.
    gap_bytes: usize,
    /// Lets threads read pages themselves; `None` if they may not.
    reader: Option<Arc<dyn BlockingReader>>,
    /// The same, for blocks.
    block_reader: Option<Arc<dyn BlockingReader>>,
    /// Operations performed by threads, and blocks read by them.
    by_threads: usize,
    blocks_by_threads: usize,
    blocks: Blocks,
    /// Operations that wait for blocks of their page to be written, by page.
    behind_blocks: HashMap<HomePage, usize>,
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
        assert!(staging.len() > 2, "a store, a load, and one that nobody waits for each need a frame for staging");
        assert!(
            space.own.pool.bytes_from(first_of_blocks) >= slots * BLOCK_BYTES,
            "there is no memory for {slots} blocks"
        );
        let block_reader = storage.reader(FileSlot::BACKING);
        let reader = block_reader.clone().filter(|_| space.page_bytes() <= READ_BYTES_MAX);
        StorageServer {
            background: Background::new(space.page_bytes()),
            blocks: Blocks::new(
                space.own.pool.frame(FrameId(0)),
                space.own.pool.offset_bytes(first_of_blocks),
                slots,
                space.page_bytes(),
            ),
            behind_blocks: HashMap::new(),
            files: HomeFiles::new(space.rank, Spaces::new([])),
            space,
            storage,
            operations: Slab::new(),
            of_page: HashMap::new(),
            next: 0,
            waiting: StorageQueue::default(),
            stores_left: staging.len() - 1,
            staging_free: staging,
            forgotten: 0,
            gap_bytes: GAP_BYTES,
            reader,
            block_reader,
            by_threads: 0,
            blocks_by_threads: 0,
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
        StorageServer { files: HomeFiles::new(self.space.rank, segments), ..self }
    }

    /// The storage.
    pub fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// Whether anything is in flight or waiting, except reads by threads.
    pub fn is_busy(&self) -> bool {
        self.operations.len() > self.by_threads || self.blocks.is_busy(self.blocks_by_threads)
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
        let Some(id) = self.of_page.get(&self.files.number(page)).copied() else { return };
        let waiting = self.waiting_of(id);
        let operation = &mut self.operations[id];
        operation.priority = priority;
        if let Some(waiting) = waiting.filter(|waiting| self.waiting.remove(waiting)) {
            self.waiting.push(Waiting { priority, ..waiting });
        } else if priority == Priority::Now {
            operation.in_background.take().into_iter().for_each(|led| self.background.on_ended(led));
        }
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
        let operation = &mut self.operations[id];
        operation.in_background.take().into_iter().for_each(|led| self.background.on_ended(led));
        let operation = *operation;
        let is_ahead = operation.direction == IoDirection::Read && operation.priority != Priority::Now;
        match (operation.direction, operation.staging, result) {
            (_, _, Err(_)) if is_ahead => {
                self.forget(id);
                self.forgotten += 1;
                todo.raise(Event::LoadFailed { page: operation.page, cause: None });
            }
            (_, _, Err(error)) if operation.place.is_of_segment() => return Err(self.failure(&operation, error)),
            (direction, _, Err(error)) => {
                self.forget(id);
                let (page, cause) = (operation.page, cause_of(error));
                todo.raise(match direction {
                    IoDirection::Read => Event::LoadFailed { page, cause: Some(cause) },
                    IoDirection::Write => Event::StoreFailed { page, cause },
                });
            }
            (IoDirection::Read, _, Ok(())) => {
                if !operation.place.is_of_segment() {
                    count_of_file(operation.direction, self.space.page_bytes());
                }
                if self.is_whole_or_lays_over(id, todo) {
                    self.on_whole(id, todo);
                }
            }
            (IoDirection::Write, _, Ok(())) => {
                stats::add(Row::DiskWriteBytes, operation.part.len_bytes() as u64);
                if !operation.place.is_of_segment() {
                    count_of_file(operation.direction, operation.part.len_bytes());
                }
                match self.next_part(id) {
                    Some(_) => self.wait(id, Need::Nothing),
                    None => todo.raise(self.finish(id)),
                }
            }
        }
        Ok(())
    }

    /// The page read is complete in its operation's memory.
    pub(super) fn on_whole(&mut self, id: usize, todo: &mut Todo) {
        let operation = self.operations[id];
        match operation.staging {
            Some(staging) => todo.add(Work::Put(self.transfer(id, &operation, staging))),
            None => todo.raise(self.finish(id)),
        }
    }

    /// A transfer requested by this server is complete.
    pub(super) fn on_transferred(&mut self, id: usize, todo: &mut Todo) {
        match self.operations[id].direction {
            IoDirection::Read => todo.raise(self.finish(id)),
            IoDirection::Write => self.wait(id, Need::Nothing),
        }
    }

    fn start(&mut self, direction: IoDirection, page: PageId, (peer, frame): (Rank, FrameId), priority: Priority) {
        let (staging, number, place) = (None, self.next, self.files.number(page));
        self.next += 1;
        let (in_background, part) = (None, Extent::NONE);
        match direction {
            IoDirection::Write => self.blocks.on_storing(place),
            IoDirection::Read if priority == Priority::Now => self.background.on_missed(),
            IoDirection::Read => {}
        }
        let operation = Operation {
            direction,
            page,
            place,
            peer,
            frame,
            priority,
            need: None,
            staging,
            part,
            in_background,
            number,
        };
        let id = self.operations.insert(operation);
        let before = self.of_page.insert(place, id);
        debug_assert!(before.is_none(), "{page:?} has one operation at a time");
        self.begin_page(id);
    }

    /// Makes an operation wait.
    fn wait(&mut self, id: usize, need: Need) {
        self.operations[id].need = Some(need);
        self.waiting.push(self.waiting_of(id).expect("it has a need"));
    }

    fn waiting_of(&self, id: usize) -> Option<Waiting> {
        let Operation { priority, number, need, .. } = self.operations[id];
        need.map(|need| Waiting { priority, need, number, id })
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
            for (id, part) in &run[..begun] {
                let waiting = self.waiting_of(*id).expect("it was waiting");
                self.waiting.remove(&waiting);
                let operation = &mut self.operations[*id];
                (operation.need, operation.part) = (None, *part);
            }
            self.waiting.on_begun(begun as u64);
            if begun < run.len() {
                return;
            }
        }
    }

    /// The next operation among those with all resources available.
    fn next_ready(&self) -> Option<Waiting> {
        let (free, stores_left, background) = (self.staging_free.len(), self.stores_left, self.background.left());
        let may_go_on = |priority: Priority, need: Need| match (need, priority) {
            (Need::Nothing, Priority::Now) => true,
            (Need::Nothing, _) => background > 0,
            (Need::LoadStaging, Priority::Now) => free > 0,
            (Need::LoadStaging, _) => background > 0 && free > usize::from(stores_left > 0),
            (Need::StoreStaging, Priority::Now) => free > 0 && stores_left > 0,
            (Need::StoreStaging, _) => free > 1 && stores_left > 1,
        };
        self.waiting.next(may_go_on)
    }

    /// Begins an operation with an available staging frame. Returns whether the storage had room for it.
    fn begin_staged(&mut self, id: usize, need: Need, todo: &mut Todo) -> bool {
        let staging = self.staging_free.pop().expect("it is ready");
        self.operations[id].staging = Some(staging);
        if need == Need::StoreStaging {
            self.stores_left -= 1;
            todo.add(Work::Get(self.transfer(id, &self.operations[id], staging)));
            return true;
        }
        let has_begun = self.submit(&[(id, self.whole())]) == 1;
        if !has_begun {
            self.staging_free.extend(self.operations[id].staging.take());
        }
        has_begun
    }

    fn forget(&mut self, id: usize) -> Operation {
        let operation = self.operations.remove(id);
        self.of_page.remove(&operation.place);
        self.staging_free.extend(operation.staging);
        let was_staged = operation.staging.is_some();
        self.stores_left += usize::from(was_staged && operation.direction == IoDirection::Write);
        operation
    }

    fn finish(&mut self, id: usize) -> Event {
        if self.operations[id].direction == IoDirection::Write {
            self.forget_blocks(id);
        }
        let operation = self.forget(id);
        // The file equals the frame until the page is open to writers again.
        self.space.blocks(operation.peer).into_iter().for_each(|blocks| blocks.clear(operation.frame));
        match operation.direction {
            IoDirection::Read => Event::Loaded(operation.page),
            IoDirection::Write => Event::Stored(operation.page),
        }
    }

    fn transfer(&self, id: usize, operation: &Operation, staging: FrameId) -> Transfer {
        let pool = &self.space.own.pool;
        Transfer {
            peer: operation.peer,
            peer_offset_bytes: pool.offset_bytes(operation.frame),
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

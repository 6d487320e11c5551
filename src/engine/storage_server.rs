//! A home's storage server: brings pages from the backing file into requesters' frames, and dirty pages back.
//!
//! A frame whose memory is mapped here is read or written in place. Pages of other frames pass through a staging frame.
//! Those serve for nothing else, so a home can always take in a dirty page, however full its pool is.

use super::work::Work;
use crate::error::UserError;
use crate::memory::AddressSpace;
use crate::storage::{IoDirection, IoOperation, Storage};
use slab::Slab;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use vgasnet_conduit::{Token, Transfer};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Event, FrameId, PageId};

/// A page on its way between the file and a frame.
#[derive(Clone, Copy, Debug)]
struct Operation {
    direction: IoDirection,
    page: PageId,
    peer: Rank,
    frame: FrameId,
    staging: Option<FrameId>,
}

/// The storage server of one rank.
pub struct StorageServer {
    space: Arc<AddressSpace>,
    storage: Box<dyn Storage>,
    operations: Slab<Operation>,
    /// Operations that wait for a staging frame, or for room in the storage.
    queue: VecDeque<usize>,
    /// Stores whose page is in its staging frame. They go first.
    fetched: VecDeque<usize>,
    staging_free: Vec<FrameId>,
}

impl StorageServer {
    /// A server that may use the frames `staging` of the own pool, which the cache does not know of.
    pub fn new(space: Arc<AddressSpace>, storage: Box<dyn Storage>, staging: Vec<FrameId>) -> StorageServer {
        StorageServer {
            space,
            storage,
            operations: Slab::new(),
            queue: VecDeque::new(),
            fetched: VecDeque::new(),
            staging_free: staging,
        }
    }

    /// The storage.
    pub fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// Whether anything is under way or waiting.
    pub fn is_busy(&self) -> bool {
        !self.operations.is_empty()
    }

    /// How many operations are under way or waiting.
    pub fn operations(&self) -> usize {
        self.operations.len()
    }

    /// Starts bringing a page from the file into a frame of `to`.
    pub(super) fn load(&mut self, page: PageId, to: Rank, frame: FrameId, work: &mut VecDeque<Work>) {
        self.start(Operation { direction: IoDirection::Read, page, peer: to, frame, staging: None }, work);
    }

    /// Starts bringing a page from a frame of `from` into the file.
    pub(super) fn store(&mut self, page: PageId, from: Rank, frame: FrameId, work: &mut VecDeque<Work>) {
        self.start(Operation { direction: IoDirection::Write, page, peer: from, frame, staging: None }, work);
    }

    /// Handles what the storage has completed. Returns whether there was anything.
    ///
    /// # Errors
    /// An operation failed. No other copy of the page is accounted for, so the job cannot go on.
    pub(super) fn poll(&mut self, events: &mut VecDeque<Event>, work: &mut VecDeque<Work>) -> Result<bool, UserError> {
        if self.storage.in_flight() == 0 {
            return Ok(false);
        }
        let mut completed = Vec::new();
        self.storage.poll(&mut |token, result| completed.push((token as usize, result)));
        for (id, result) in &completed {
            let operation = self.operations[*id];
            if let Err(error) = result {
                return Err(self.failure(&operation, error));
            }
            match (operation.direction, operation.staging) {
                (IoDirection::Read, Some(staging)) => {
                    work.push_back(Work::Put(self.transfer(*id, &operation, staging)))
                }
                _ => events.push_back(self.finish(*id)),
            }
        }
        self.advance(work);
        Ok(!completed.is_empty())
    }

    /// A transfer that this server asked for is complete.
    pub(super) fn on_transferred(&mut self, id: usize, events: &mut VecDeque<Event>, work: &mut VecDeque<Work>) {
        match self.operations[id].direction {
            IoDirection::Read => events.push_back(self.finish(id)),
            IoDirection::Write => self.fetched.push_back(id),
        }
        self.advance(work);
    }

    fn start(&mut self, operation: Operation, work: &mut VecDeque<Work>) {
        let id = self.operations.insert(operation);
        self.queue.push_back(id);
        self.advance(work);
    }

    /// Starts the next steps of operations, as far as there are staging frames and room in the storage.
    fn advance(&mut self, work: &mut VecDeque<Work>) {
        while let Some(id) = self.fetched.front().copied() {
            if !self.submit(id) {
                return;
            }
            self.fetched.pop_front();
        }
        while let Some(id) = self.queue.front().copied() {
            let operation = self.operations[id];
            let mapped = self.space.frame(operation.peer, operation.frame).is_some();
            if !mapped {
                let Some(staging) = self.staging_free.pop() else { return };
                self.operations[id].staging = Some(staging);
                if operation.direction == IoDirection::Write {
                    work.push_back(Work::Get(self.transfer(id, &operation, staging)));
                    self.queue.pop_front();
                    continue;
                }
            }
            if !self.submit(id) {
                self.staging_free.extend(self.operations[id].staging.take());
                return;
            }
            self.queue.pop_front();
        }
    }

    /// Hands an operation to the storage. Returns whether that had room.
    fn submit(&mut self, id: usize) -> bool {
        let Operation { direction, page, peer, frame, staging } = self.operations[id];
        let memory = match staging {
            Some(staging) => self.space.own.pool.frame(staging),
            None => self.space.frame(peer, frame).expect("a frame without staging is mapped here"),
        };
        let page_bytes = self.space.page_bytes();
        let offset_bytes = u64::from(page.index) * page_bytes as u64;
        let operation = IoOperation { direction, offset_bytes, memory, len_bytes: page_bytes, token: id as u64 };
        // SAFETY: the memory is a whole frame that stays mapped until the process ends. A staging frame belongs to this
        // operation. A requester's frame is reserved for the page until its Data message, which is sent after
        // completion. A dirty owner's frame keeps the page closed to writes until its Evicted message, which is sent
        // after completion.
        unsafe { self.storage.start(operation) }.is_ok()
    }

    fn finish(&mut self, id: usize) -> Event {
        let operation = self.operations.remove(id);
        self.staging_free.extend(operation.staging);
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

    fn failure(&self, operation: &Operation, error: &io::Error) -> UserError {
        let (verb, preposition) = match operation.direction {
            IoDirection::Read => ("read", "from"),
            IoDirection::Write => ("write", "to"),
        };
        let offset = u64::from(operation.page.index) * self.space.page_bytes() as u64;
        UserError::new(format!(
            "cannot {verb} the page at offset {offset} of this rank's segment {preposition} its backing file: {error}; \
             no other copy can take its place, so the job ends; check the disk, or set VGASNET_STORAGE_DIR to a \
             directory on another one"
        ))
    }
}

/// Tokens of this server are odd; those of page transfers are even.
fn token(id: usize) -> Token {
    Token(id as u64 * 2 + 1)
}

/// The operation that a token names, if it is one of this server's.
pub(super) fn operation_of(token: Token) -> Option<usize> {
    (token.0 % 2 == 1).then_some(token.0 as usize / 2)
}

//! A home's storage server: brings pages from the backing file into requesters' frames, and dirty pages back.
//!
//! A frame whose memory is mapped here is read or written in place. Pages of other frames pass through a staging frame.
//! Those serve for nothing else, so a home can always take in a dirty page, however full its pool is. Stores, which may
//! wait for space on the disk, leave one of them to loads.

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
    way: Way,
    staging: Option<FrameId>,
    /// Operations are counted as they come.
    number: u64,
}

/// The way of an operation between the file and its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The frame is mapped here.
    Direct,
    /// By a staging frame, into the requester's.
    StagedLoad,
    /// By a staging frame, from the owner's.
    StagedStore,
}

/// How many ways there are.
const WAYS: usize = 3;

/// The storage server of one rank.
pub struct StorageServer {
    space: Arc<AddressSpace>,
    storage: Box<dyn Storage>,
    operations: Slab<Operation>,
    /// The number of the next operation.
    next: u64,
    /// By way, operations that wait for a staging frame, or for room in the storage. Those of one way may have to wait
    /// while those of another go on.
    queues: [VecDeque<usize>; WAYS],
    /// Stores whose page is in its staging frame. They go first.
    fetched: VecDeque<usize>,
    staging_free: Vec<FrameId>,
    /// Stores that may have staging frames besides those that have some.
    stores_left: usize,
}

impl StorageServer {
    /// A server that may use the frames `staging` of the own pool, which the cache does not know of.
    ///
    /// # Panics
    /// If there are fewer than two.
    pub fn new(space: Arc<AddressSpace>, storage: Box<dyn Storage>, staging: Vec<FrameId>) -> StorageServer {
        assert!(staging.len() > 1, "loads and stores each need a frame for staging");
        StorageServer {
            space,
            storage,
            operations: Slab::new(),
            next: 0,
            queues: Default::default(),
            fetched: VecDeque::new(),
            stores_left: staging.len() - 1,
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
        self.start(IoDirection::Read, page, to, frame, work);
    }

    /// Starts bringing a page from a frame of `from` into the file.
    pub(super) fn store(&mut self, page: PageId, from: Rank, frame: FrameId, work: &mut VecDeque<Work>) {
        self.start(IoDirection::Write, page, from, frame, work);
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

    fn start(&mut self, direction: IoDirection, page: PageId, peer: Rank, frame: FrameId, work: &mut VecDeque<Work>) {
        let way = match direction {
            _ if self.space.frame(peer, frame).is_some() => Way::Direct,
            IoDirection::Read => Way::StagedLoad,
            IoDirection::Write => Way::StagedStore,
        };
        let operation = Operation { direction, page, peer, frame, way, staging: None, number: self.next };
        self.next += 1;
        self.queues[way as usize].push_back(self.operations.insert(operation));
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
        while let Some(id) = self.oldest_ready() {
            if !self.begin(id, work) {
                return;
            }
            self.queues[self.operations[id].way as usize].pop_front();
        }
    }

    /// The first operation of those that need no staging frame or may have one.
    fn oldest_ready(&self) -> Option<usize> {
        let has_staging = !self.staging_free.is_empty();
        let may_begin = |id: &usize| match self.operations[*id].way {
            Way::Direct => true,
            Way::StagedLoad => has_staging,
            Way::StagedStore => has_staging && self.stores_left > 0,
        };
        let ready = self.queues.iter().filter_map(|queue| queue.front().copied()).filter(may_begin);
        ready.min_by_key(|id| self.operations[*id].number)
    }

    /// Begins an operation that is ready. Returns whether there was room for it.
    fn begin(&mut self, id: usize, work: &mut VecDeque<Work>) -> bool {
        let operation = self.operations[id];
        if operation.way == Way::Direct {
            return self.submit(id);
        }
        let staging = self.staging_free.pop().expect("it is ready");
        self.operations[id].staging = Some(staging);
        if operation.way == Way::StagedStore {
            self.stores_left -= 1;
            work.push_back(Work::Get(self.transfer(id, &operation, staging)));
            return true;
        }
        let has_room = self.submit(id);
        if !has_room {
            self.staging_free.extend(self.operations[id].staging.take());
        }
        has_room
    }

    /// Hands an operation to the storage. Returns whether that had room.
    fn submit(&mut self, id: usize) -> bool {
        let Operation { direction, page, peer, frame, staging, .. } = self.operations[id];
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
        self.stores_left += usize::from(operation.way == Way::StagedStore);
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

/// Tokens of this server are odd; those of page transfers are even.
fn token(id: usize) -> Token {
    Token(id as u64 * 2 + 1)
}

/// The operation that a token names, if it is one of this server's.
pub(super) fn operation_of(token: Token) -> Option<usize> {
    (token.0 % 2 == 1).then_some(token.0 as usize / 2)
}

//! A burst buffer: writes of named files go to a file on the node's disk first, and are drained to their own file
//! later.
//!
//! It is itself a storage. A read of a spilled page takes each block from its newest place. Pages are drained in the
//! order in which they were spilled. No write of a page starts during its drain, so the file system sees the writes of
//! a page in order. If the node's disk is full or fails, writes go to the file directly. A page that cannot be drained
//! stays in the buffer.

mod drain;
mod pages;

use super::{
    BLOCK_BYTES, BlockingReader, Busy, FileSlot, IoDirection, IoOperation, NamedFile, Storage, Warn, errno_of,
};
use drain::{Drain, Draining};
use pages::{Key, Pages};
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;
use vgasnet_stats::{self as stats, Row};

/// Tokens of the inner storage from here on belong to operations started by this one.
const OWN: u64 = 1 << 62;

/// Any storage, with a burst buffer before its named files.
///
/// Each operation on a named file lies in one page.
pub struct Spill {
    /// Dropped first: it waits for its operations, which use the later fields.
    inner: Box<dyn Storage>,
    /// The file on the node's disk.
    buffer: FileSlot,
    page_bytes: u64,
    pages: Pages,
    started: Slab<Started>,
    reads: Slab<Read>,
    /// Operations refused by the inner storage as busy.
    backlog: VecDeque<IoOperation>,
    /// Number of writes waiting for the drain of their page.
    kept: usize,
    files: BTreeMap<FileSlot, FileState>,
    draining: Draining,
    /// The node's disk has failed.
    is_broken: bool,
    /// Takes a line about the failed disk.
    tell: Warn,
}

/// An operation started by this storage.
enum Started {
    /// A client's write to the buffer.
    Spilling(IoOperation),
    /// A client's write to the file, in a page with spilled blocks.
    Past(IoOperation),
    /// A part of a read: from the place of a page, or from the file.
    Part {
        read: usize,
        spilled: Option<Key>,
    },
    /// The read, then the write, of a drain.
    Fetching(Drain),
    Draining(Drain),
}

/// A client's read with some spilled blocks.
struct Read {
    token: u64,
    parts_left: usize,
    result: io::Result<()>,
}

#[derive(Debug, Default)]
struct FileState {
    /// Writes go to the file: a flush is about to drain all of it.
    is_through: bool,
    /// A drain of pages up to this number was requested.
    asked: u64,
    /// The error of the last failed drain. No drain of the file starts until a client asks again.
    refusal: Option<i32>,
    is_paused: bool,
    /// Number of drains in flight.
    drains: usize,
}

impl Spill {
    /// Wraps `inner`, with a buffer in `file` for `pages` pages of `page_bytes`. `tell` takes a line if the buffer
    /// fails.
    ///
    /// # Panics
    /// If `page_bytes` is not whole blocks.
    pub fn new(mut inner: Box<dyn Storage>, file: Arc<NamedFile>, page_bytes: usize, pages: u32, tell: Warn) -> Spill {
        assert!(page_bytes > 0 && page_bytes % BLOCK_BYTES == 0, "a page is whole blocks");
        let buffer = inner.add_file(file);
        Spill {
            inner,
            buffer,
            page_bytes: page_bytes as u64,
            pages: Pages::new(page_bytes, pages),
            started: Slab::new(),
            reads: Slab::new(),
            backlog: VecDeque::new(),
            kept: 0,
            files: BTreeMap::new(),
            draining: Draining::new(page_bytes / BLOCK_BYTES),
            is_broken: false,
            tell,
        }
    }

    /// Number of pages spilled, or about to be.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Sends writes of a file directly to the file until [`Spill::drain`]. Failed drains are tried again.
    pub fn begin_flush(&mut self, file: FileSlot) {
        let state = self.files.entry(file).or_default();
        (state.is_through, state.refusal) = (true, None);
        self.drain_some();
    }

    fn key(&self, operation: &IoOperation) -> Key {
        let page = operation.offset_bytes / self.page_bytes;
        let end = operation.offset_bytes + operation.len_bytes as u64;
        assert!(end <= (page + 1) * self.page_bytes, "an operation leaves its page");
        (operation.file, page)
    }

    /// The blocks of an operation inside its page.
    fn blocks(&self, operation: &IoOperation) -> Range<usize> {
        let start = (operation.offset_bytes % self.page_bytes) as usize / BLOCK_BYTES;
        start..start + operation.len_bytes / BLOCK_BYTES
    }

    /// The same part of the page in the buffer, for an operation on a file.
    fn in_buffer(&self, key: Key, operation: IoOperation) -> IoOperation {
        let place = u64::from(self.pages.get(key).expect("it has a place").place);
        let offset_bytes = place * self.page_bytes + operation.offset_bytes % self.page_bytes;
        IoOperation { file: self.buffer, offset_bytes, ..operation }
    }

    /// Starts an operation on the inner storage, now or when it has room.
    fn begin(&mut self, operation: IoOperation, what: Started) {
        let token = OWN | self.started.insert(what) as u64;
        self.begin_or_keep(IoOperation { token, ..operation });
    }

    fn begin_or_keep(&mut self, operation: IoOperation) {
        // SAFETY: a client has left the memory of its operation to this storage until the client's token comes back,
        // which happens after this operation; or the memory is a buffer of this storage, reserved until then.
        if !self.backlog.is_empty() || unsafe { self.inner.start(operation) }.is_err() {
            self.backlog.push_back(operation);
        }
    }

    /// Starts a read of a page with spilled blocks.
    fn read(&mut self, key: Key, operation: IoOperation) {
        let page = self.pages.get(key).expect("something is spilled");
        let runs = page.runs(self.blocks(&operation));
        let first = self.blocks(&operation).start;
        let read = Read { token: operation.token, parts_left: runs.len(), result: Ok(()) };
        let read = self.reads.insert(read);
        for (blocks, is_newer) in runs {
            let before = (blocks.start - first) * BLOCK_BYTES;
            let (offset_bytes, memory) =
                (operation.offset_bytes + before as u64, operation.memory.wrapping_add(before));
            let part = IoOperation { offset_bytes, memory, len_bytes: blocks.len() * BLOCK_BYTES, ..operation };
            if is_newer {
                self.pages.known(key).readers += 1;
                self.begin(self.in_buffer(key, part), Started::Part { read, spilled: Some(key) });
            } else {
                self.begin(part, Started::Part { read, spilled: None });
            }
        }
    }

    /// Whether a write may go to the buffer, if there is a place.
    fn may_spill(&self, file: FileSlot) -> bool {
        !self.is_broken && !self.files.get(&file).is_some_and(|state| state.is_through)
    }

    /// Starts a write of a page without a drain in flight. Returns whether it was started. If not, the write goes to
    /// its file, and the page has no spilled blocks.
    fn write(&mut self, key: Key, operation: IoOperation) -> bool {
        let blocks = self.blocks(&operation);
        if self.may_spill(key.0) {
            if let Some(page) = self.pages.begin(key) {
                page.writers += 1;
                // A failed write leaves unknown bytes in the place.
                page.set_newer(blocks, false);
                self.begin(self.in_buffer(key, operation), Started::Spilling(operation));
                return true;
            }
        }
        let is_known = self.pages.get(key).is_some();
        if is_known {
            self.pages.known(key).writers += 1;
            self.begin(operation, Started::Past(operation));
        }
        is_known
    }

    /// Starts a write that has waited for a drain.
    fn write_kept(&mut self, key: Key, operation: IoOperation) {
        self.kept -= 1;
        if !self.write(key, operation) {
            self.begin_or_keep(operation);
        }
    }

    /// Handles the end of a write to the buffer.
    fn on_spilled(
        &mut self,
        operation: IoOperation,
        result: io::Result<()>,
        sink: &mut dyn FnMut(u64, io::Result<()>),
    ) {
        let (key, blocks) = (self.key(&operation), self.blocks(&operation));
        match result {
            Ok(()) => {
                let page = self.pages.known(key);
                page.writers -= 1;
                page.set_newer(blocks, true);
                stats::add(Row::SpillBytes, operation.len_bytes as u64);
                sink(operation.token, Ok(()));
            }
            Err(error) => {
                if matches!(errno_of(&error), libc::ENOSPC | libc::EDQUOT | libc::EFBIG) {
                    self.pages.fill_up();
                } else if !std::mem::replace(&mut self.is_broken, true) {
                    (self.tell)(&format!(
                        "data written to shared files is not kept on the node's disk any more: {error}; check the disk, or set \
                         VGASNET_STORAGE_DIR to a directory on another one"
                    ));
                }
                self.begin(operation, Started::Past(operation));
            }
        }
    }

    fn on_own(&mut self, token: u64, result: io::Result<()>, sink: &mut dyn FnMut(u64, io::Result<()>)) {
        match self.started.remove((token & !OWN) as usize) {
            Started::Spilling(operation) => self.on_spilled(operation, result, sink),
            Started::Past(operation) => {
                let (key, blocks) = (self.key(&operation), self.blocks(&operation));
                let page = self.pages.known(key);
                page.writers -= 1;
                if result.is_ok() {
                    page.set_newer(blocks, false);
                }
                self.pages.settle(key);
                sink(operation.token, result);
            }
            Started::Part { read, spilled } => {
                if let Some(key) = spilled {
                    self.pages.known(key).readers -= 1;
                    self.pages.settle(key);
                }
                let whole = &mut self.reads[read];
                whole.parts_left -= 1;
                whole.result = std::mem::replace(&mut whole.result, Ok(())).and(result);
                if whole.parts_left == 0 {
                    let Read { token, result, .. } = self.reads.remove(read);
                    sink(token, result);
                }
            }
            Started::Fetching(drain) => self.on_fetched(drain, result),
            Started::Draining(drain) => self.on_drained(drain, result),
        }
    }

    /// Whether the inner storage can take an operation unchanged.
    fn is_plain(&self, operation: &IoOperation) -> bool {
        let is_read = operation.direction == IoDirection::Read;
        operation.file == FileSlot::BACKING
            || self.pages.get(self.key(operation)).is_none() && (is_read || !self.may_spill(operation.file))
    }
}

impl Storage for Spill {
    unsafe fn start(&mut self, operation: IoOperation) -> Result<(), Busy> {
        if operation.file == FileSlot::BACKING {
            // SAFETY: the caller keeps the operation's memory valid and unused until `poll` returns its token.
            return unsafe { self.inner.start(operation) };
        }
        if !self.backlog.is_empty() {
            return Err(Busy);
        }
        let (key, blocks) = (self.key(&operation), self.blocks(&operation));
        let is_taken = match (operation.direction, self.pages.get(key)) {
            (IoDirection::Write, Some(page)) if page.is_draining => {
                self.pages.known(key).waiting.push_back(operation);
                self.kept += 1;
                true
            }
            (IoDirection::Write, _) => self.write(key, operation),
            (IoDirection::Read, Some(page)) if page.runs(blocks).iter().any(|(_, is_newer)| *is_newer) => {
                self.read(key, operation);
                true
            }
            (IoDirection::Read, _) => false,
        };
        // SAFETY: the caller keeps the operation's memory valid and unused until `poll` returns its token.
        if is_taken { Ok(()) } else { unsafe { self.inner.start(operation) } }
    }

    unsafe fn start_runs(&mut self, runs: &[&[IoOperation]]) -> usize {
        let mut operations = runs.iter().copied().flatten();
        if self.backlog.is_empty() && operations.clone().all(|operation| self.is_plain(operation)) {
            // SAFETY: the caller keeps the memory of all operations valid and unused until `poll` returns their tokens.
            return unsafe { self.inner.start_runs(runs) };
        }
        // SAFETY: the caller keeps the operation's memory valid and unused until `poll` returns its token.
        operations.by_ref().take_while(|operation| unsafe { self.start(**operation) }.is_ok()).count()
    }

    fn poll(&mut self, sink: &mut dyn FnMut(u64, io::Result<()>)) {
        let mut completed = Vec::new();
        self.inner.poll(&mut |token, result| completed.push((token, result)));
        for (token, result) in completed {
            if token < OWN {
                sink(token, result);
            } else {
                self.on_own(token, result, sink);
            }
        }
        while let Some(operation) = self.backlog.front() {
            // SAFETY: a client has left the memory to this storage until its token comes back, or it is a buffer of this
            // storage, reserved until then.
            if unsafe { self.inner.start(*operation) }.is_err() {
                return;
            }
            self.backlog.pop_front();
        }
        self.drain_some();
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight() + self.backlog.len() + self.kept
    }

    fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        self.inner.doorbell()
    }

    fn ring_in(&mut self, time: Option<Duration>) {
        self.inner.ring_in(time);
    }

    fn add_file(&mut self, file: Arc<NamedFile>) -> FileSlot {
        self.inner.add_file(file)
    }

    /// Spilled blocks of the file are lost.
    fn remove_file(&mut self, slot: FileSlot) {
        self.forget(slot, 0);
        self.files.remove(&slot);
        self.inner.remove_file(slot);
    }

    /// A blocking read of a named file would miss its spilled blocks.
    fn reader(&self, file: FileSlot) -> Option<Arc<dyn BlockingReader>> {
        if file == FileSlot::BACKING { self.inner.reader(file) } else { None }
    }

    fn spill(&self) -> Option<&Spill> {
        Some(self)
    }

    fn spill_mut(&mut self) -> Option<&mut Spill> {
        Some(self)
    }
}

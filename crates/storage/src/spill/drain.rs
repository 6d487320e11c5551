//! Draining spilled pages to their files.

use super::super::{BLOCK_BYTES, FileSlot, IoDirection, IoOperation, errno_of};
use super::pages::Key;
use super::{Spill, Started};
use std::io;
use std::ops::Range;
use vgasnet_stats::{self as stats, Row};

/// Maximum blocks of a page in one drain.
const DRAIN_BLOCKS: usize = 64;

/// Maximum number of drains in flight. A disk works best with many small concurrent requests.
const DRAINS_MAX: usize = 64;

/// Maximum blocks of all drains in flight.
const BLOCKS_MAX: usize = 1024;

/// Blocks of a page in flight to the file.
#[derive(Clone, Debug)]
pub(super) struct Drain {
    key: Key,
    blocks: Range<usize>,
    /// Index of the memory they go through.
    memory: usize,
}

#[repr(align(4096))]
#[derive(Clone)]
struct Block([u8; BLOCK_BYTES]);

/// The memory of drains, and their outcomes.
pub(super) struct Draining {
    memory: Vec<Box<[Block]>>,
    free: Vec<usize>,
    /// Files with failed drains since the last [`Spill::take_failures`].
    failures: Vec<(FileSlot, i32)>,
    /// Number of completed drains; it wraps.
    ended: u32,
}

impl Draining {
    /// Memory for pages of `page_blocks` blocks.
    pub(super) fn new(page_blocks: usize) -> Draining {
        let blocks = page_blocks.min(DRAIN_BLOCKS);
        let drains = (BLOCKS_MAX / blocks).min(DRAINS_MAX);
        let memory = || vec![Block([0; BLOCK_BYTES]); blocks].into_boxed_slice();
        let (memory, free) = ((0..drains).map(|_| memory()).collect(), (0..drains).collect());
        Draining { memory, free, failures: Vec::new(), ended: 0 }
    }
}

impl Spill {
    /// Requests the drain of all pages of a file spilled so far, including pages of failed drains.
    pub fn drain(&mut self, file: FileSlot) {
        let asked = self.pages.last();
        let state = self.files.entry(file).or_default();
        (state.asked, state.refusal, state.is_through) = (asked, None, false);
        self.drain_some();
    }

    /// The outcome of [`Spill::drain`]: `None` while pages are pending, the error number if a drain failed.
    pub fn drained(&self, file: FileSlot) -> Option<Result<(), i32>> {
        let state = self.files.get(&file);
        match state.and_then(|state| state.refusal) {
            Some(errno) => (!self.is_draining(file)).then_some(Err(errno)),
            None => (!self.pages.has_until(file, state.map_or(0, |state| state.asked))).then_some(Ok(())),
        }
    }

    /// Whether a drain of the file is in flight.
    pub fn is_draining(&self, file: FileSlot) -> bool {
        self.files.get(&file).is_some_and(|state| state.drains > 0)
    }

    /// Stops starting drains of a file, or resumes.
    pub fn pause(&mut self, file: FileSlot, is_paused: bool) {
        self.files.entry(file).or_default().is_paused = is_paused;
        self.drain_some();
    }

    /// The files with failed drains since the last call, and their error numbers.
    pub fn take_failures(&mut self) -> Vec<(FileSlot, i32)> {
        std::mem::take(&mut self.draining.failures)
    }

    /// Number of completed drains; it wraps. No operation of a client completes with a drain, so a change of this
    /// number is the notice.
    pub fn drains_ended(&self) -> u32 {
        self.draining.ended
    }

    /// The bytes of a file left in the buffer by failed drains: ranges in order.
    pub fn undrained_bytes(&self, file: FileSlot) -> Vec<Range<u64>> {
        if self.files.get(&file).is_none_or(|state| state.refusal.is_none()) {
            return Vec::new();
        }
        let all = 0..self.page_bytes as usize / BLOCK_BYTES;
        let pages = self.pages.of_file(file).flat_map(|(key, page)| {
            let runs = page.runs(all.clone()).into_iter().filter(|(_, is_newer)| *is_newer);
            runs.map(move |(blocks, _)| (key.1, blocks))
        });
        let at = |page: u64, block: usize| page * self.page_bytes + (block * BLOCK_BYTES) as u64;
        pages.map(|(page, blocks)| at(page, blocks.start)..at(page, blocks.end)).collect()
    }

    /// Forgets the spilled pages of a file from `first_page` on.
    ///
    /// # Panics
    /// If an operation on such a page is in flight.
    pub fn forget(&mut self, file: FileSlot, first_page: u64) {
        self.pages.forget(file, first_page);
    }

    /// Starts drains of the oldest pages, as long as there is memory.
    pub(super) fn drain_some(&mut self) {
        while let Some(memory) = self.draining.free.last().copied() {
            let files = &self.files;
            let may_drain = |file| files.get(&file).is_none_or(|state| !state.is_paused && state.refusal.is_none());
            let Some(key) = self.pages.next_to_drain(may_drain) else { return };
            let page = self.pages.known(key);
            let blocks = page.first_newer(DRAIN_BLOCKS).expect("it has some");
            page.is_draining = true;
            self.draining.free.pop();
            self.files.entry(key.0).or_default().drains += 1;
            let drain = Drain { key, blocks, memory };
            let read = self.of_drain(&drain, IoDirection::Read);
            self.begin(self.in_buffer(key, read), Started::Fetching(drain));
        }
    }

    /// The operation of a drain on the file.
    fn of_drain(&mut self, drain: &Drain, direction: IoDirection) -> IoOperation {
        let memory = self.draining.memory[drain.memory][0].0.as_mut_ptr();
        IoOperation {
            file: drain.key.0,
            direction,
            offset_bytes: drain.key.1 * self.page_bytes + (drain.blocks.start * BLOCK_BYTES) as u64,
            memory,
            len_bytes: drain.blocks.len() * BLOCK_BYTES,
            token: 0,
            is_urgent: false,
        }
    }

    pub(super) fn on_fetched(&mut self, drain: Drain, result: io::Result<()>) {
        match result {
            Ok(()) => {
                let write = self.of_drain(&drain, IoDirection::Write);
                self.begin(write, Started::Draining(drain));
            }
            Err(error) => self.end_drain(&drain, Some(errno_of(&error))),
        }
    }

    pub(super) fn on_drained(&mut self, drain: Drain, result: io::Result<()>) {
        if result.is_ok() {
            self.pages.known(drain.key).set_newer(drain.blocks.clone(), false);
            stats::add(Row::DrainBytes, (drain.blocks.len() * BLOCK_BYTES) as u64);
        }
        self.end_drain(&drain, result.err().map(|error| errno_of(&error)));
    }

    fn end_drain(&mut self, drain: &Drain, errno: Option<i32>) {
        let (key, file) = (drain.key, drain.key.0);
        self.draining.free.push(drain.memory);
        self.draining.ended = self.draining.ended.wrapping_add(1);
        let state = self.files.get_mut(&file).expect("it has a drain in flight");
        state.drains -= 1;
        if let Some(errno) = errno {
            state.refusal = Some(errno);
            self.draining.failures.push((file, errno));
        }
        let page = self.pages.known(key);
        page.is_draining = false;
        let waiting = std::mem::take(&mut page.waiting);
        waiting.into_iter().for_each(|write| self.write_kept(key, write));
        self.pages.settle(key);
    }
}

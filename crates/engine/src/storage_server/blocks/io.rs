//! I/O between the block cache and the file.

use super::super::count_of_file;
use super::super::home_page::HomePage;
use super::{Block, Blocks, Slot, State};
use crate::work::BlockCopies;
use std::ops::Range;
use vgasnet_stats::{self as stats, Row};
use vgasnet_storage::{BLOCK_BYTES, FileSlot, IoDirection, IoOperation, Storage};

/// Storage tokens from here on belong to blocks.
pub(in super::super) const BLOCK_TOKEN: u64 = 1 << 32;

/// Maximum number of blocks being written.
const WRITES_MAX: usize = 16;

/// With this many reads at the disk, further ones wait until there are as many: submitting a single read takes longer
/// than the read.
const TOGETHER: usize = 16;

/// Write-back of dirty blocks starts when fewer than one slot in this many is idle, and stops at one in
/// [`CLEAN_ENOUGH_PART`].
const CLEAN_BELOW_PART: usize = 8;
const CLEAN_ENOUGH_PART: usize = 4;

/// Dirty blocks of files may take half of the slots. Their write-back starts when less than one slot in this many is
/// left of the half, and stops when they take one in [`FILES_CLEAN_ENOUGH_PART`].
const FILES_LEFT_PART: usize = 8;
const FILES_CLEAN_ENOUGH_PART: usize = 4;

/// Maximum dirty blocks in use that a search skips.
const LOOKS_MAX: usize = 16;

impl Blocks {
    /// Submits pending reads and writes as far as the storage has room. Only blocks of pages that `may_be_written` are
    /// written.
    pub(in super::super) fn advance(&mut self, storage: &mut dyn Storage, may_be_written: impl Fn(HomePage) -> bool) {
        let at_the_disk = self.reading - self.to_read.len();
        if !self.to_read.is_empty() && (at_the_disk < TOGETHER || self.to_read.len() >= TOGETHER) {
            self.to_read.make_contiguous();
            let begun = self.submit(storage, IoDirection::Read, self.to_read.as_slices().0);
            self.to_read.drain(..begun);
        }
        self.is_emptying &= !self.dirty.is_empty();
        self.is_cleaning &= !self.has_enough_clean() || !self.waiting.is_empty();
        self.is_cleaning &= !self.dirty.is_empty();
        while self.writing < WRITES_MAX && self.write_some(storage, &may_be_written) {}
    }

    /// Whether to write dirty blocks before a job has to wait for a clean one.
    pub(super) fn lacks_clean(&self) -> bool {
        let here = self.here();
        self.idle < here / CLEAN_BELOW_PART || self.dirty_of_files + here / FILES_LEFT_PART > here / 2
    }

    fn has_enough_clean(&self) -> bool {
        self.idle >= self.here() / CLEAN_ENOUGH_PART && self.dirty_of_files <= self.here() / FILES_CLEAN_ENOUGH_PART
    }

    /// Submits a run of writes, if any are due. Returns whether the storage took all of them.
    fn write_some(&mut self, storage: &mut dyn Storage, may_be_written: &impl Fn(HomePage) -> bool) -> bool {
        let mut run = self.leaving_to_write(WRITES_MAX - self.writing, may_be_written);
        let is_in_order = run.is_empty();
        if is_in_order && (self.is_cleaning || self.is_emptying) {
            (run, self.cursor) = self.next_to_write(0..Block::MAX, self.cursor, may_be_written);
        }
        if run.is_empty() {
            run = self.next_to_flush(may_be_written);
        }
        if run.is_empty() {
            return false;
        }
        for slot in &run {
            let at = self.in_slot(*slot);
            self.mapped.iter_mut().for_each(|mapped| mapped.protect(at));
        }
        let begun = self.submit(storage, IoDirection::Write, &run);
        for slot in &run[..begun] {
            let block = self.slots[*slot].block;
            self.slots[*slot].state = State::Writing;
            self.dirty.remove(&block);
            let page = self.page_of(block);
            if !page.is_of_segment() {
                self.files.flushes.on_writing(page.slot());
            }
        }
        self.writing += begun;
        if let Some(next) = run.get(begun).filter(|_| is_in_order) {
            // They are protected against stores by now, so they go next.
            self.cursor = self.slots[*next].block;
        }
        begun == run.len()
    }

    /// The next run of a file being flushed, in the order of the files' turns.
    fn next_to_flush(&mut self, may_be_written: &impl Fn(HomePage) -> bool) -> Vec<usize> {
        for _ in 0..self.files.flushes.count() {
            let Some((file, from)) = self.files.flushes.next() else { break };
            let (run, cursor) = self.next_to_write(self.blocks_of_file(file), from, may_be_written);
            self.files.flushes.go_on_from(file, cursor);
            if !run.is_empty() {
                return run;
            }
        }
        Vec::new()
    }

    /// A run of adjacent dirty blocks within `among` and from `from` on that no job uses, and the position of the next
    /// search.
    fn next_to_write(
        &self,
        among: Range<Block>,
        from: Block,
        may_be_written: &impl Fn(HomePage) -> bool,
    ) -> (Vec<usize>, Block) {
        let may = |block: &Block| {
            let (at, page) = (self.of_block[block], self.page_of(*block));
            let is_free = self.slots[at].users == 0 && self.refusal(page).is_none();
            (is_free && may_be_written(page)).then_some(at)
        };
        let middle = from.clamp(among.start, among.end);
        let in_order = self.dirty.range(middle..among.end).chain(self.dirty.range(among.start..middle));
        let Some(first) = in_order.take(LOOKS_MAX).find(|block| may(block).is_some()).copied() else {
            return (Vec::new(), self.dirty.range(middle..among.end).nth(LOOKS_MAX).copied().unwrap_or(0));
        };
        let room = WRITES_MAX - self.writing;
        let run = (first..).take(room).map_while(|block| self.dirty.get(&block).and_then(&may));
        let run: Vec<usize> = run.collect();
        let behind = first + run.len() as u64;
        (run, behind)
    }

    /// Number of blocks waiting to be read.
    pub(in super::super) fn to_read(&self) -> usize {
        self.to_read.len()
    }

    /// The page of the last block waiting to be read.
    pub(in super::super) fn last_to_read(&self) -> Option<HomePage> {
        self.to_read.back().map(|slot| self.page_of(self.slots[*slot].block))
    }

    /// Takes the last waiting read for a thread to perform.
    pub(in super::super) fn take_read(&mut self) -> Option<IoOperation> {
        let slot = self.to_read.pop_back()?;
        Some(self.operation(slot, IoDirection::Read))
    }

    /// Position of a slot's block in its file, in blocks.
    fn in_file(&self, slot: usize) -> u64 {
        let block = self.slots[slot].block;
        let page = self.page_of(block);
        block - HomePage::of_file(page.slot(), 0).first_block(self.page_shift)
    }

    fn operation(&self, slot: usize, direction: IoDirection) -> IoOperation {
        IoOperation {
            direction,
            file: FileSlot(self.page_of(self.slots[slot].block).slot()),
            offset_bytes: self.in_file(slot) * BLOCK_BYTES as u64,
            memory: self.place(slot),
            len_bytes: BLOCK_BYTES,
            token: BLOCK_TOKEN + slot as u64,
            is_urgent: direction == IoDirection::Read,
        }
    }

    /// Submits blocks to the storage, adjacent ones together. Returns how many it took.
    fn submit(&self, storage: &mut dyn Storage, direction: IoDirection, slots: &[usize]) -> usize {
        let operations: Vec<IoOperation> = slots.iter().map(|slot| self.operation(*slot, direction)).collect();
        let is_behind = |one: &IoOperation, next: &IoOperation| {
            one.file == next.file && one.offset_bytes + BLOCK_BYTES as u64 == next.offset_bytes
        };
        let runs: Vec<&[IoOperation]> = operations.chunk_by(is_behind).collect();
        let joined = runs.iter().filter(|run| run[0].file != FileSlot::BACKING).map(|run| run.len() as u64 - 1);
        let joined = if direction == IoDirection::Write { joined.sum() } else { 0 };
        stats::add(Row::FileCoalesced, joined);
        // SAFETY: the memory of a slot stays mapped until the process ends. No job accesses a block before it has been
        // read, and puts wait for a block being written.
        unsafe { storage.start_runs(&runs) }
    }

    /// The storage has read or written a slot's block. Returns the copies waiting for it, and for a write its page.
    pub(in super::super) fn on_moved(&mut self, slot: usize) -> (Vec<BlockCopies>, Option<HomePage>) {
        let page = self.page_of(self.slots[slot].block);
        if self.slots[slot].state == State::Writing {
            stats::add(Row::DiskWriteBytes, BLOCK_BYTES as u64);
            stats::count(Row::BlockWrites);
            if !page.is_of_segment() {
                count_of_file(IoDirection::Write, BLOCK_BYTES);
            }
            self.writing -= 1;
            if !page.is_of_segment() {
                self.files.flushes.on_written(page.slot(), self.slots[slot].mark);
                self.dirty_of_files -= 1;
            }
            self.cleaned += u32::from(self.is_cleaning);
            self.slots[slot].state = State::Clean;
            let writers = std::mem::take(&mut self.slots[slot].readers);
            self.note_idle(slot);
            let mut ready = self.served(writers);
            ready.extend(self.go_on());
            return (ready, Some(page));
        }
        stats::add(Row::DiskReadBytes, BLOCK_BYTES as u64);
        stats::count(Row::BlockReads);
        if !page.is_of_segment() {
            count_of_file(IoDirection::Read, BLOCK_BYTES);
        }
        self.reading -= 1;
        self.slots[slot].state = State::Clean;
        let readers = std::mem::take(&mut self.slots[slot].readers);
        (self.served(readers), None)
    }

    /// The page of a slot's block, and whether it is being read or written.
    pub(in super::super) fn operation_of(&self, slot: usize) -> (HomePage, IoDirection) {
        let Slot { block, state, .. } = self.slots[slot];
        (self.page_of(block), if state == State::Writing { IoDirection::Write } else { IoDirection::Read })
    }

    /// Whether blocks of the page are being written.
    pub(in super::super) fn is_writing(&self, page: HomePage) -> bool {
        self.of_page_blocks(page).any(|slot| self.slots[slot].state == State::Writing)
    }
}

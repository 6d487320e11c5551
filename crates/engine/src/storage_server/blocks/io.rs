//! I/O between the block cache and the file.

use super::super::count_of_file;
use super::super::home_page::HomePage;
use super::Blocks;
use super::numbering::{Block, Numbering};
use super::slots::{SlotState, Slots};
use crate::work::BlockCopies;
use std::ops::Range;
use vgasnet_stats::{self as stats, Row};
use vgasnet_storage::{BLOCK_BYTES, FileSlot, IoDirection, IoOperation, Storage};

/// Storage tokens from here on belong to blocks.
pub(in super::super) const BLOCK_TOKEN: u64 = 1 << 32;

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
        let (slots, numbering) = (&self.slots, self.numbering);
        let read = |slot: &usize| operation(slots, numbering, *slot, IoDirection::Read);
        let reads: Vec<IoOperation> = self.transfers.reads_due().iter().map(read).collect();
        let begun = submit(storage, IoDirection::Read, &reads);
        assert!(begun <= reads.len(), "the storage takes what it is given");
        self.transfers.on_reads_begun(begun);
        let has_enough = self.has_enough_clean() && self.jobs.first_waiting().is_none();
        self.cleaning.stop_if(has_enough, self.dirty.is_empty());
        while self.transfers.writes_left() > 0 && self.write_some(storage, &may_be_written) {}
    }

    /// Whether to write dirty blocks before a job has to wait for a clean one.
    pub(super) fn lacks_clean(&self) -> bool {
        let here = self.slots.here();
        self.slots.idle() < here / CLEAN_BELOW_PART || self.dirty.of_files() + here / FILES_LEFT_PART > here / 2
    }

    fn has_enough_clean(&self) -> bool {
        let here = self.slots.here();
        self.slots.idle() >= here / CLEAN_ENOUGH_PART && self.dirty.of_files() <= here / FILES_CLEAN_ENOUGH_PART
    }

    /// Submits a run of writes, if any are due. Returns whether the storage took all of them.
    fn write_some(&mut self, storage: &mut dyn Storage, may_be_written: &impl Fn(HomePage) -> bool) -> bool {
        let mut run = self.leaving_to_write(may_be_written);
        let is_in_order = run.is_empty();
        if is_in_order && self.cleaning.is_due() {
            let (in_order, cursor) = self.next_to_write(0..Block::MAX, self.cleaning.cursor(), may_be_written);
            self.cleaning.go_on_from(cursor);
            run = in_order;
        }
        if run.is_empty() {
            run = self.next_to_flush(may_be_written);
        }
        if run.is_empty() {
            return false;
        }
        debug_assert!(run.len() <= self.transfers.writes_left(), "so many blocks may be written at a time");
        for slot in &run {
            let at = self.in_slot(*slot);
            self.mapped.iter_mut().for_each(|mapped| mapped.protect(at));
        }
        let writes: Vec<IoOperation> = run.iter().map(|slot| self.operation(*slot, IoDirection::Write)).collect();
        let begun = submit(storage, IoDirection::Write, &writes);
        assert!(begun <= run.len(), "the storage takes what it is given");
        for slot in &run[..begun] {
            self.slots.begin_write(*slot);
            self.dirty.begin_write(self.slots.block(*slot));
        }
        self.transfers.on_writes_begun(begun);
        if let Some(next) = run.get(begun).filter(|_| is_in_order) {
            // They are protected against stores by now, so they go next.
            self.cleaning.go_on_from(self.slots.block(*next));
        }
        begun == run.len()
    }

    /// Unused and writable dirty blocks of the leaving frame, as many as may be written.
    fn leaving_to_write(&mut self, may_be_written: &impl Fn(HomePage) -> bool) -> Vec<usize> {
        let (most, mut found) = (self.transfers.writes_left(), Vec::new());
        for _ in 0..self.slots.leaving() {
            let Some(slot) = self.slots.next_leaving() else { break };
            debug_assert!(self.slots.is_leaving(slot), "slot {slot} is of the leaving frame");
            if self.slots.state(slot) == SlotState::Dirty && self.may_write(slot, may_be_written) {
                found.push(slot);
            }
            if found.len() == most {
                break;
            }
        }
        found
    }

    /// Whether a dirty block may be written now.
    fn may_write(&self, slot: usize, may_be_written: &impl Fn(HomePage) -> bool) -> bool {
        debug_assert_eq!(self.slots.state(slot), SlotState::Dirty, "slot {slot} is written because it is dirty");
        let page = self.numbering.page_of(self.slots.block(slot));
        !self.slots.is_used(slot) && self.refusal(page).is_none() && may_be_written(page)
    }

    /// The next run of a file being flushed, in the order of the files' turns.
    fn next_to_flush(&mut self, may_be_written: &impl Fn(HomePage) -> bool) -> Vec<usize> {
        for _ in 0..self.dirty.flushes().count() {
            let Some((file, from)) = self.dirty.flushes_mut().next() else { break };
            let (run, cursor) = self.next_to_write(self.numbering.of_file(file), from, may_be_written);
            self.dirty.flushes_mut().go_on_from(file, cursor);
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
        let may = |block: Block| self.slots.find(block).filter(|slot| self.may_write(*slot, may_be_written));
        let middle = from.clamp(among.start, among.end);
        let in_order = self.dirty.among(middle..among.end).chain(self.dirty.among(among.start..middle));
        let Some(first) = in_order.take(LOOKS_MAX).find(|block| may(*block).is_some()) else {
            return (Vec::new(), self.dirty.among(middle..among.end).nth(LOOKS_MAX).unwrap_or(0));
        };
        let room = self.transfers.writes_left();
        let run = (first..).take(room).map_while(|block| if self.dirty.has(block) { may(block) } else { None });
        let run: Vec<usize> = run.collect();
        debug_assert!(!run.is_empty() || room == 0, "the first block of a run may be written");
        let behind = first + run.len() as u64;
        (run, behind)
    }

    /// Number of blocks waiting to be read.
    pub(in super::super) fn to_read(&self) -> usize {
        self.transfers.to_read()
    }

    /// The page of the last block waiting to be read.
    pub(in super::super) fn last_to_read(&self) -> Option<HomePage> {
        self.transfers.last_to_read().map(|slot| self.numbering.page_of(self.slots.block(slot)))
    }

    /// Takes the last waiting read for a thread to perform.
    pub(in super::super) fn take_read(&mut self) -> Option<IoOperation> {
        let slot = self.transfers.take_last_to_read()?;
        debug_assert_eq!(self.slots.state(slot), SlotState::Wanted, "slot {slot} waits to be read");
        Some(self.operation(slot, IoDirection::Read))
    }

    fn operation(&self, slot: usize, direction: IoDirection) -> IoOperation {
        operation(&self.slots, self.numbering, slot, direction)
    }

    /// The storage has read or written a block. Returns the copies waiting for it, and for a write its page.
    pub(in super::super) fn on_moved(&mut self, token: u64) -> (Vec<BlockCopies>, Option<HomePage>) {
        let slot = (token - BLOCK_TOKEN) as usize;
        assert!(slot < self.slots.len(), "token {token} is of a slot");
        let block = self.slots.block(slot);
        let page = self.numbering.page_of(block);
        if self.slots.state(slot) == SlotState::Writing {
            let waiting = self.slots.change(slot, SlotState::Writing, SlotState::Clean);
            stats::add(Row::DiskWriteBytes, BLOCK_BYTES as u64);
            stats::count(Row::BlockWrites);
            if !page.is_of_segment() {
                count_of_file(IoDirection::Write, BLOCK_BYTES);
            }
            self.transfers.on_written();
            self.dirty.on_written(block, self.slots.mark(slot));
            self.cleaning.on_written();
            self.note_idle(slot);
            let mut ready = self.served(waiting);
            ready.extend(self.go_on());
            return (ready, Some(page));
        }
        stats::add(Row::DiskReadBytes, BLOCK_BYTES as u64);
        stats::count(Row::BlockReads);
        if !page.is_of_segment() {
            count_of_file(IoDirection::Read, BLOCK_BYTES);
        }
        self.transfers.on_read();
        let waiting = self.slots.change(slot, SlotState::Wanted, SlotState::Clean);
        (self.served(waiting), None)
    }

    /// The page of the block with a token, and whether it is being read or written.
    pub(in super::super) fn operation_of(&self, token: u64) -> (HomePage, IoDirection) {
        let slot = (token - BLOCK_TOKEN) as usize;
        assert!(slot < self.slots.len(), "token {token} is of a slot");
        let is_written = self.slots.state(slot) == SlotState::Writing;
        debug_assert!(is_written || self.slots.state(slot) == SlotState::Wanted, "slot {slot} is in the storage");
        let direction = if is_written { IoDirection::Write } else { IoDirection::Read };
        (self.numbering.page_of(self.slots.block(slot)), direction)
    }

    /// Whether blocks of the page are being written.
    pub(in super::super) fn is_writing(&self, page: HomePage) -> bool {
        self.slots.among(self.numbering.of_page(page)).any(|(_, slot)| self.slots.state(slot) == SlotState::Writing)
    }
}

fn operation(slots: &Slots, numbering: Numbering, slot: usize, direction: IoDirection) -> IoOperation {
    let block = slots.block(slot);
    debug_assert_eq!(slots.find(block), Some(slot), "a block and its slot lead to each other");
    IoOperation {
        direction,
        file: FileSlot(numbering.page_of(block).slot()),
        offset_bytes: numbering.place_in_file(block) * BLOCK_BYTES as u64,
        memory: slots.memory(slot),
        len_bytes: BLOCK_BYTES,
        token: BLOCK_TOKEN + slot as u64,
        is_urgent: direction == IoDirection::Read,
    }
}

/// Submits blocks to the storage, adjacent ones together. Returns how many it took.
fn submit(storage: &mut dyn Storage, direction: IoDirection, operations: &[IoOperation]) -> usize {
    if operations.is_empty() {
        return 0;
    }
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

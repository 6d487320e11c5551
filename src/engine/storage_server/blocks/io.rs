//! Blocks on their way between the block cache and the file.

use super::super::byte_jobs::BlockCopies;
use super::{Block, Blocks, CLEAN_ENOUGH_PART, Slot, State};
use crate::stats::{self, Row};
use crate::storage::{BLOCK_BYTES, IoDirection, IoOperation, Storage};

/// Tokens of the storage from here on are of blocks.
pub(in super::super) const BLOCK_TOKEN: u64 = 1 << 32;

/// The most blocks that are written at a time.
const WRITES_MAX: usize = 16;

/// While the disk has so many blocks to read, others wait until there are as many: telling it of each takes longer than reading it.
const TOGETHER: usize = 16;

/// Dirty blocks that a search for one to write passes over, because jobs use them.
const LOOKS_MAX: usize = 16;

impl Blocks {
    /// Has the storage read and write what is to be, as far as it has room. Only blocks of pages that `may_be_written` are
    /// written, by their index.
    pub(in super::super) fn advance(&mut self, storage: &mut dyn Storage, may_be_written: impl Fn(u32) -> bool) {
        let at_the_disk = self.reading - self.to_read.len();
        if !self.to_read.is_empty() && (at_the_disk < TOGETHER || self.to_read.len() >= TOGETHER) {
            self.to_read.make_contiguous();
            let begun = self.submit(storage, IoDirection::Read, self.to_read.as_slices().0);
            self.to_read.drain(..begun);
        }
        self.is_emptying &= !self.dirty.is_empty();
        self.is_cleaning &= self.idle < self.here() / CLEAN_ENOUGH_PART || !self.waiting.is_empty();
        self.is_cleaning &= !self.dirty.is_empty();
        while self.writing < WRITES_MAX && self.write_some(storage, &may_be_written) {}
    }

    /// Has the storage write some blocks, if any are to be. Returns whether it took all of them.
    fn write_some(&mut self, storage: &mut dyn Storage, may_be_written: &impl Fn(u32) -> bool) -> bool {
        let mut run = self.leaving_to_write(WRITES_MAX - self.writing, may_be_written);
        let is_in_order = run.is_empty();
        if is_in_order && (self.is_cleaning || self.is_emptying) {
            run = self.next_to_write(may_be_written);
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
            self.slots[*slot].state = State::Writing;
            self.dirty.remove(&self.slots[*slot].block);
        }
        self.writing += begun;
        if let Some(next) = run.get(begun).filter(|_| is_in_order) {
            // They cannot be stored to by now, so they are the next to go.
            self.cursor = self.slots[*next].block;
        }
        begun == run.len()
    }

    /// Dirty blocks side by side that no job uses.
    fn next_to_write(&mut self, may_be_written: &impl Fn(u32) -> bool) -> Vec<usize> {
        let may = |block: &Block| {
            let at = self.of_block[block];
            (self.slots[at].users == 0 && may_be_written(self.index_of(*block))).then_some(at)
        };
        let in_order = self.dirty.range(self.cursor..).chain(self.dirty.range(..self.cursor));
        let Some(first) = in_order.take(LOOKS_MAX).find(|block| may(block).is_some()).copied() else {
            self.cursor = self.dirty.range(self.cursor..).nth(LOOKS_MAX).copied().unwrap_or(0);
            return Vec::new();
        };
        let room = WRITES_MAX - self.writing;
        let run = (first..).take(room).map_while(|block| self.dirty.get(&block).and_then(&may));
        let run: Vec<usize> = run.collect();
        self.cursor = first + run.len() as u64;
        run
    }

    /// How many blocks wait to be read.
    pub(in super::super) fn to_read(&self) -> usize {
        self.to_read.len()
    }

    /// Takes the read of the block that was asked for last, for a thread to do it.
    pub(in super::super) fn take_read(&mut self) -> Option<IoOperation> {
        let slot = self.to_read.pop_back()?;
        Some(self.operation(slot, IoDirection::Read))
    }

    fn operation(&self, slot: usize, direction: IoDirection) -> IoOperation {
        IoOperation {
            direction,
            offset_bytes: self.slots[slot].block * BLOCK_BYTES as u64,
            memory: self.place(slot),
            len_bytes: BLOCK_BYTES,
            token: BLOCK_TOKEN + slot as u64,
            is_urgent: direction == IoDirection::Read,
        }
    }

    /// Hands blocks to the storage, those side by side together. Returns how many of them it took.
    fn submit(&self, storage: &mut dyn Storage, direction: IoDirection, slots: &[usize]) -> usize {
        let operations: Vec<IoOperation> = slots.iter().map(|slot| self.operation(*slot, direction)).collect();
        let is_behind =
            |one: &IoOperation, next: &IoOperation| one.offset_bytes + BLOCK_BYTES as u64 == next.offset_bytes;
        let runs: Vec<&[IoOperation]> = operations.chunk_by(is_behind).collect();
        // SAFETY: the memory of a slot stays mapped until the process ends. No job looks at a block before it has been read, and
        // puts wait for a block that is being written.
        unsafe { storage.start_runs(&runs) }
    }

    /// The storage has read or written the block in a slot. Returns the copies that waited for it, and if it was written the
    /// index of its page.
    pub(in super::super) fn on_moved(&mut self, slot: usize) -> (Vec<BlockCopies>, Option<u32>) {
        let index = self.index_of(self.slots[slot].block);
        if self.slots[slot].state == State::Writing {
            stats::add(Row::DiskWriteBytes, BLOCK_BYTES as u64);
            stats::count(Row::BlockWrites);
            self.writing -= 1;
            self.cleaned += u32::from(self.is_cleaning);
            self.slots[slot].state = State::Clean;
            let writers = std::mem::take(&mut self.slots[slot].readers);
            self.note_idle(slot);
            let mut ready = self.served(writers);
            ready.extend(self.go_on());
            return (ready, Some(index));
        }
        stats::add(Row::DiskReadBytes, BLOCK_BYTES as u64);
        stats::count(Row::BlockReads);
        self.reading -= 1;
        self.slots[slot].state = State::Clean;
        let readers = std::mem::take(&mut self.slots[slot].readers);
        (self.served(readers), None)
    }

    /// The index of the page of the block in a slot, and whether it is being read or written.
    pub(in super::super) fn operation_of(&self, slot: usize) -> (u32, IoDirection) {
        let Slot { block, state, .. } = self.slots[slot];
        (self.index_of(block), if state == State::Writing { IoDirection::Write } else { IoDirection::Read })
    }

    /// Whether blocks of the page are being written.
    pub(in super::super) fn is_writing(&self, index: u32) -> bool {
        self.of_page_blocks(index).any(|slot| self.slots[slot].state == State::Writing)
    }
}

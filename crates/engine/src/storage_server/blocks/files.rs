//! Blocks of files. Unlike blocks of segments they may fail, and a flush writes all blocks of a file.

use super::super::home_page::HomePage;
use super::flushes::Flushes;
use super::{Block, Blocks, Job, Slot, State};
use crate::work::BlockCopies;
use std::ops::Range;
use vgasnet_memory::Piece;
use vgasnet_protocol::coherence::Cause;
use vgasnet_protocol::ordered::OrderedMap;
use vgasnet_storage::BLOCK_BYTES;

/// State of all files, which are named by their slots in the storage.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// Files with failed writes, and the causes. A flush of the file retries them.
    refusals: OrderedMap<u32, Cause>,
    pub(super) flushes: Flushes,
    /// Blocks have become dirty since the last query.
    has_newly_dirty: bool,
    /// Files with a failed block write since the last query.
    failures: OrderedMap<u32, Cause>,
}

impl Blocks {
    /// Whether a put may dirty this many more blocks. Blocks of files may dirty half of the slots, so that other blocks
    /// have room even if no file can be written.
    pub(super) fn may_dirty(&self, page: HomePage, blocks: usize) -> bool {
        page.is_of_segment() || self.dirty_of_files + self.may_become_dirty + blocks <= self.here() / 2
    }

    /// Whether a job on a piece of a page always finds enough slots. One half of the slots may be dirty for good with
    /// blocks of files; a put to a file has to fit into this half.
    pub(in super::super) fn always_fits(&self, page: HomePage, piece: &Piece, is_put: bool) -> bool {
        let half = self.own_slots / 2;
        let most = if is_put && !page.is_of_segment() { self.dirty_max_of(page.slot()) } else { self.own_slots - half };
        self.range(page, piece).1 <= most as u64
    }

    /// Number of blocks of a file that may be dirty while other files cannot be written.
    fn dirty_max_of(&self, file: u32) -> usize {
        let others = self.files.refusals.keys().filter(|other| **other != file);
        let unwritten: usize = others.map(|other| self.dirty.range(self.blocks_of_file(*other)).count()).sum();
        (self.own_slots / 2).saturating_sub(unwritten)
    }

    /// Notes that the block in a slot is dirty.
    pub(super) fn mark_dirty(&mut self, at: usize) {
        let block = self.slots[at].block;
        let page = self.page_of(block);
        self.zeros.on_written(page, self.place_in_page(page, block));
        if self.dirty.insert(block) && !page.is_of_segment() {
            self.slots[at].mark = self.files.flushes.on_dirtied(page.slot());
            self.dirty_of_files += 1;
            self.files.has_newly_dirty = true;
        }
    }

    /// Notes that the block in a slot is clean. Returns whether it was dirty.
    pub(super) fn clean(&mut self, at: usize) -> bool {
        let Slot { block, mark, .. } = self.slots[at];
        let (page, was_dirty) = (self.page_of(block), self.dirty.remove(&block));
        if was_dirty && !page.is_of_segment() {
            self.files.flushes.on_cleaned(page.slot(), mark);
            self.dirty_of_files -= 1;
        }
        was_dirty
    }

    /// Why blocks of the page's file cannot be written, if they cannot.
    pub(in super::super) fn refusal(&self, page: HomePage) -> Option<Cause> {
        self.files.refusals.get(&page.slot()).copied()
    }

    /// Fails jobs that waited for a block. Returns the copies of jobs with no other missing block.
    pub(super) fn fail_all(&mut self, readers: &[usize], cause: Cause) {
        for id in readers {
            self.jobs[*id].failed.get_or_insert(cause);
        }
    }

    /// The storage could not read or write a block of a file. Returns the copies waiting for it, and for a write its
    /// page.
    pub(in super::super) fn on_failed(&mut self, slot: usize, cause: Cause) -> (Vec<BlockCopies>, Option<HomePage>) {
        let block = self.slots[slot].block;
        let (page, waiting) = (self.page_of(block), std::mem::take(&mut self.slots[slot].readers));
        if self.slots[slot].state == State::Writing {
            self.writing -= 1;
            self.files.flushes.on_failed(page.slot());
            self.slots[slot].state = State::Dirty;
            self.dirty.insert(block);
            self.files.refusals.insert(page.slot(), cause);
            self.files.failures.insert(page.slot(), cause);
            let mut ready = self.served(waiting);
            ready.extend(self.fail_waiting_puts(page.slot(), cause));
            return (ready, Some(page));
        }
        self.reading -= 1;
        self.slots[slot].state = State::Failed;
        self.fail_all(&waiting, cause);
        (self.served(waiting), None)
    }

    /// Fails puts that would wait for slots for ever: puts to the unwritable file, and puts left with too few slots by
    /// its blocks.
    fn fail_waiting_puts(&mut self, file: u32, cause: Cause) -> Vec<BlockCopies> {
        let is_it = |id: &usize| {
            let Job { is_put, page, count, .. } = self.jobs[*id];
            let fits = || page.is_of_segment() || count <= self.dirty_max_of(page.slot()) as u64;
            is_put && (page.slot() == file || !fits())
        };
        let (failing, waiting): (Vec<usize>, Vec<usize>) = self.waiting.iter().copied().partition(is_it);
        self.waiting = waiting.into();
        failing.iter().for_each(|id| (self.jobs[*id].failed, self.jobs[*id].count) = (Some(cause), 0));
        failing.into_iter().filter_map(|id| self.ready(id)).collect()
    }

    /// Fails a put to a file if unwritable blocks of other files leave too few slots for it. Returns whether it did.
    pub(super) fn fail_unwritable_put(&mut self, id: usize) -> bool {
        let (is_put, page, count) = (self.jobs[id].is_put, self.jobs[id].page, self.jobs[id].count as usize);
        if !is_put || page.is_of_segment() {
            return false;
        }
        let Some(cause) = self.files.refusals.values().next().copied() else { return false };
        let unwritten = |file: &u32| self.dirty.range(self.blocks_of_file(*file)).count();
        let unwritten: usize = self.files.refusals.keys().map(unwritten).sum();
        let is_unwritable = unwritten + count > self.here() / 2;
        if is_unwritable {
            (self.jobs[id].failed, self.jobs[id].count) = (Some(cause), 0);
        }
        is_unwritable
    }

    /// Whether no job uses blocks of a file, and none is being read or written.
    pub(in super::super) fn is_quiet_about(&self, file: u32) -> bool {
        let is_idle = |slot: &usize| {
            self.slots[*slot].users == 0 && matches!(self.slots[*slot].state, State::Clean | State::Dirty)
        };
        let has_job = self.of_page.keys().any(|page| page.slot() == file);
        !has_job && self.of_block.range(self.blocks_of_file(file)).all(|(_, slot)| is_idle(slot))
    }

    /// Whether blocks of files have become dirty since the last call.
    pub(in super::super) fn take_newly_dirty(&mut self) -> bool {
        std::mem::take(&mut self.files.has_newly_dirty)
    }

    /// Files with a failed block write since the last call, and the causes.
    pub(in super::super) fn take_failures(&mut self) -> OrderedMap<u32, Cause> {
        std::mem::take(&mut self.files.failures)
    }

    /// Starts writing all dirty blocks of a file, unless a write has failed.
    pub(in super::super) fn flush_unless_refused(&mut self, file: u32) {
        if !self.files.refusals.contains_key(&file) {
            self.files.flushes.begin(file);
        }
    }

    /// Starts writing all dirty blocks of a file.
    pub(in super::super) fn flush_file(&mut self, file: u32) {
        self.files.refusals.remove(&file);
        self.files.flushes.begin(file);
    }

    /// The outcome of the last flush of a file's blocks; `None` while it is in progress. Other blocks may have become
    /// dirty since.
    pub(in super::super) fn is_flushed(&self, file: u32) -> Option<Result<(), Cause>> {
        let flushes = &self.files.flushes;
        match self.files.refusals.get(&file) {
            // Other blocks may still be in flight when one fails.
            Some(cause) => (!flushes.is_writing(file)).then_some(Err(*cause)),
            None => (!flushes.is_in_flight(file)).then_some(Ok(())),
        }
    }

    /// Number of resident blocks of files, and of dirty or potentially dirty ones among them.
    pub(in super::super) fn of_files(&self) -> (usize, usize) {
        let first = HomePage::of_file(1, 0).first_block(self.page_shift);
        (self.of_block.range(first..).count(), self.dirty_of_files + self.may_become_dirty)
    }

    /// The bytes of a file's dirty blocks, if they cannot be written.
    pub(in super::super) fn unwritten_bytes(&self, file: u32) -> Vec<Range<u64>> {
        if !self.files.refusals.contains_key(&file) {
            return Vec::new();
        }
        let first = self.blocks_of_file(file).start;
        let bytes = |block: &Block| (block - first) * BLOCK_BYTES as u64..(block - first + 1) * BLOCK_BYTES as u64;
        self.dirty.range(self.blocks_of_file(file)).map(bytes).collect()
    }

    /// Drops all blocks of a file from a page on, dirty or not. No job may use them, and none may be in flight.
    pub(in super::super) fn forget_from(&mut self, first: HomePage) {
        self.zeros.forget_from(first);
        let range = first.first_block(self.page_shift)..self.blocks_of_file(first.slot()).end;
        let known: Vec<(Block, usize)> = self.of_block.range(range).map(|(block, slot)| (*block, *slot)).collect();
        for (block, at) in known {
            assert!(
                self.slots[at].users == 0 && matches!(self.slots[at].state, State::Clean | State::Dirty),
                "a block in use is forgotten"
            );
            self.of_block.remove(&block);
            let was_dirty = self.clean(at);
            self.slots[at].state = State::Free;
            if was_dirty {
                self.note_idle(at);
            }
        }
    }

    /// Removes a file without blocks in memory.
    pub(in super::super) fn forget_file(&mut self, file: u32) {
        self.files.refusals.remove(&file);
    }

    pub(super) fn blocks_of_file(&self, file: u32) -> Range<Block> {
        let first = |file| HomePage::of_file(file, 0).first_block(self.page_shift);
        first(file)..first(file + 1)
    }
}

//! Blocks of files. Unlike blocks of segments they may fail, and a flush writes all blocks of a file. Files are named by
//! their slots in the storage.

use super::super::home_page::HomePage;
use super::dirty_set::DirtySet;
use super::jobs::Needed;
use super::numbering::Block;
use super::refusals::Refusals;
use super::slots::SlotState;
use super::{BLOCK_TOKEN, Blocks};
use crate::work::BlockCopies;
use std::collections::BTreeMap;
use std::ops::Range;
use vgasnet_memory::Piece;
use vgasnet_protocol::coherence::Cause;
use vgasnet_storage::BLOCK_BYTES;

impl Blocks {
    /// Whether a put may dirty this many more blocks. Blocks of files may dirty half of the slots, so that other blocks
    /// have room even if no file can be written.
    pub(super) fn may_dirty(&self, page: HomePage, blocks: usize) -> bool {
        page.is_of_segment() || self.dirty.of_files_soon() + blocks <= self.slots.here() / 2
    }

    /// Whether a job on a piece of a page always finds enough slots. One half of the slots may be dirty for good with
    /// blocks of files; a put to a file has to fit into this half.
    pub(in super::super) fn always_fits(&self, page: HomePage, piece: &Piece, is_put: bool) -> bool {
        let (own, half) = (self.slots.own(), self.slots.own() / 2);
        let dirty_max = || dirty_max_of(page.slot(), own, &self.refusals, &self.dirty);
        let most = if is_put && !page.is_of_segment() { dirty_max() } else { own - half };
        let Range { start, end } = self.numbering.of_piece(page, piece);
        end - start <= most as u64
    }

    /// The block in a slot has been written by a job.
    pub(super) fn mark_dirty(&mut self, at: usize) {
        let block = self.slots.block(at);
        self.zeros.on_written(self.numbering.page_of(block), self.numbering.place_in_page(block));
        self.slots.dirty(at, self.dirty.add(block));
        debug_assert!(
            self.dirty.has(block) && self.slots.find(block) == Some(at),
            "block {block} is dirty in its slot"
        );
    }

    /// Why blocks of the page's file cannot be written, if they cannot.
    pub(in super::super) fn refusal(&self, page: HomePage) -> Option<Cause> {
        self.refusals.of_page(page)
    }

    /// Whether a slot has a block that cannot be written for now. It stays in a leaving frame, so jobs may use it.
    pub(super) fn is_unwritten(&self, slot: usize) -> bool {
        let page = self.numbering.page_of(self.slots.block(slot));
        self.slots.state(slot) == SlotState::Dirty && self.refusal(page).is_some()
    }

    /// The storage could not read or write a block of a file. Returns the copies waiting for it, and for a write its
    /// page.
    pub(in super::super) fn on_failed(&mut self, token: u64, cause: Cause) -> (Vec<BlockCopies>, Option<HomePage>) {
        assert_ne!(cause.0, 0, "a failure has a cause");
        let slot = (token - BLOCK_TOKEN) as usize;
        assert!(slot < self.slots.len(), "token {token} is of a slot");
        let block = self.slots.block(slot);
        let page = self.numbering.page_of(block);
        debug_assert!(!page.is_of_segment(), "the job ends with a block of a segment");
        if self.slots.state(slot) == SlotState::Writing {
            self.transfers.on_written();
            let waiting = self.slots.change(slot, SlotState::Writing, SlotState::Dirty);
            self.dirty.on_write_failed(block);
            self.refusals.on_failed(page.slot(), cause);
            let mut ready = self.served(waiting);
            ready.extend(self.fail_waiting_puts(page.slot(), cause));
            return (ready, Some(page));
        }
        self.transfers.on_read();
        let waiting = self.slots.change(slot, SlotState::Wanted, SlotState::Failed);
        waiting.iter().for_each(|id| self.jobs.fail(*id, cause));
        (self.served(waiting), None)
    }

    /// Fails puts that would wait for slots for ever: puts to the unwritable file, and puts left with too few slots by
    /// its blocks.
    fn fail_waiting_puts(&mut self, file: u32, cause: Cause) -> Vec<BlockCopies> {
        let Blocks { jobs, slots, refusals, dirty, .. } = self;
        let is_refused = |needed: &Needed| {
            let Needed { page, count, is_put, .. } = *needed;
            let most = || dirty_max_of(page.slot(), slots.own(), refusals, dirty) as u64;
            is_put && (page.slot() == file || !page.is_of_segment() && count > most())
        };
        let refused = jobs.refuse_waiting(is_refused, cause);
        refused.into_iter().filter_map(|id| self.ready(id)).collect()
    }

    /// Fails a put to a file if unwritable blocks of other files leave too few slots for it. Returns whether it did.
    pub(super) fn fail_unwritable_put(&mut self, id: usize) -> bool {
        let Needed { page, count, is_put, .. } = self.jobs.needed(id);
        if !is_put || page.is_of_segment() {
            return false;
        }
        let Some(cause) = self.refusals.first() else { return false };
        let unwritten: usize = self.refusals.files().map(|file| self.dirty.count_of(file)).sum();
        let is_unwritable = unwritten + count as usize > self.slots.here() / 2;
        if is_unwritable {
            self.jobs.refuse(id, cause);
        }
        is_unwritable
    }

    /// Whether no job uses blocks of a file, and none is being read or written.
    pub(in super::super) fn is_quiet_about(&self, file: u32) -> bool {
        let is_idle =
            |at| !self.slots.is_used(at) && matches!(self.slots.state(at), SlotState::Clean | SlotState::Dirty);
        !self.jobs.has_any_of(file) && self.slots.among(self.numbering.of_file(file)).all(|(_, at)| is_idle(at))
    }

    /// Whether blocks of files have become dirty since the last call.
    pub(in super::super) fn take_newly_dirty(&mut self) -> bool {
        self.dirty.take_new_of_files()
    }

    /// Files with a failed block write since the last call, and the causes.
    pub(in super::super) fn take_failures(&mut self) -> BTreeMap<u32, Cause> {
        self.refusals.take_failures()
    }

    /// Starts writing all dirty blocks of a file, unless a write has failed.
    pub(in super::super) fn flush_unless_refused(&mut self, file: u32) {
        if self.refusals.of_file(file).is_none() {
            self.dirty.flushes_mut().begin(file);
        }
    }

    /// Starts writing all dirty blocks of a file.
    pub(in super::super) fn flush_file(&mut self, file: u32) {
        self.refusals.forget(file);
        self.dirty.flushes_mut().begin(file);
    }

    /// The outcome of the last flush of a file's blocks; `None` while it is in progress. Other blocks may have become
    /// dirty since.
    pub(in super::super) fn is_flushed(&self, file: u32) -> Option<Result<(), Cause>> {
        let flushes = self.dirty.flushes();
        match self.refusals.of_file(file) {
            // Other blocks may still be in flight when one fails.
            Some(cause) => (!flushes.is_writing(file)).then_some(Err(cause)),
            None => (!flushes.is_in_flight(file)).then_some(Ok(())),
        }
    }

    /// Number of resident blocks of files, and of dirty or potentially dirty ones among them.
    pub(in super::super) fn of_files(&self) -> (usize, usize) {
        let first = self.numbering.of_file(1).start;
        (self.slots.among(first..Block::MAX).count(), self.dirty.of_files_soon())
    }

    /// The bytes of a file's dirty blocks, if they cannot be written.
    pub(in super::super) fn unwritten_bytes(&self, file: u32) -> Vec<Range<u64>> {
        if self.refusals.of_file(file).is_none() {
            return Vec::new();
        }
        let blocks = self.numbering.of_file(file);
        let bytes = |at: u64| at * BLOCK_BYTES as u64..(at + 1) * BLOCK_BYTES as u64;
        self.dirty.among(blocks.clone()).map(|block| bytes(block - blocks.start)).collect()
    }

    /// Drops all blocks of a file from a page on, dirty or not. No job may use them, and none may be in flight.
    pub(in super::super) fn forget_from(&mut self, first: HomePage) {
        self.zeros.forget_from(first);
        self.forget_blocks(self.numbering.rest_of_file(first));
        debug_assert!(self.slots.among(self.numbering.rest_of_file(first)).next().is_none(), "no block is left");
    }

    /// Removes a file without blocks in memory.
    pub(in super::super) fn forget_file(&mut self, file: u32) {
        self.refusals.forget(file);
    }
}

/// Number of blocks of a file that may be dirty while other files cannot be written, of `own` permanent slots.
fn dirty_max_of(file: u32, own: usize, refusals: &Refusals, dirty: &DirtySet) -> usize {
    let others = refusals.files().filter(|other| *other != file);
    let unwritten: usize = others.map(|other| dirty.count_of(other)).sum();
    (own / 2).saturating_sub(unwritten)
}

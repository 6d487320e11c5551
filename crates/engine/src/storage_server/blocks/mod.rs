//! The block cache of a home: 4 KiB blocks of pages that no rank holds. Small reads and writes of such pages need no
//! frame and move a single block.
//!
//! It is part of the storage: the protocol's backing file is the file overlaid with the dirty blocks. While jobs use
//! blocks of a page, the engine holds back all messages about the page, so no rank can obtain it. While a page is in
//! flight between the file and a frame, none of its blocks is written.
//!
//! A job takes all of its blocks at once or none, so jobs never wait for each other's blocks in a cycle. Clean blocks
//! are evicted in clock order. Dirty ones are written behind when clean ones run short or a job lacks room, and
//! adjacent blocks are written together.

mod check;
mod cleaning;
mod copies;
mod dirty_set;
mod file_blocks;
mod flushes;
mod io;
mod jobs;
mod mapped;
mod numbering;
mod of_page;
mod refusals;
mod serving;
mod shown;
mod slots;
#[cfg(test)]
mod tests;
mod transfers;
mod zeros;

pub(super) use io::BLOCK_TOKEN;

use super::home_page::HomePage;
use crate::request::{Copy, Part};
use crate::work::{BlockCopies, BlockPlace};
use cleaning::Cleaning;
use dirty_set::DirtySet;
use jobs::{Jobs, Needed, Ready};
use mapped::{InSlot, MappedBlocks};
use numbering::{Block, Numbering};
use refusals::Refusals;
use slots::{SlotState, Slots, Step};
use std::ops::Range;
use transfers::Transfers;
use vgasnet_memory::Piece;
use vgasnet_protocol::coherence::{Access, Cause, FrameId};
use vgasnet_storage::BLOCK_BYTES;
use zeros::ZeroBlocks;

/// Fewest idle slots with which blocks are read ahead.
const IDLE_MIN: usize = 128;

/// The block cache.
pub(super) struct Blocks {
    numbering: Numbering,
    slots: Slots,
    jobs: Jobs,
    dirty: DirtySet,
    zeros: ZeroBlocks,
    refusals: Refusals,
    transfers: Transfers,
    cleaning: Cleaning,
    /// Blocks reachable by loads and stores; `None` if none may be mapped.
    mapped: Option<MappedBlocks>,
}

impl Blocks {
    /// A cache of `slots` blocks from `first_offset_bytes` of a pool's memory on, at least as many as the largest job
    /// needs.
    pub(super) fn new(pool: *mut u8, first_offset_bytes: usize, slots: usize, page_bytes: usize) -> Blocks {
        let numbering = Numbering::new(page_bytes);
        Blocks {
            numbering,
            slots: Slots::new(pool, first_offset_bytes, slots, page_bytes / BLOCK_BYTES),
            jobs: Jobs::default(),
            dirty: DirtySet::new(numbering),
            zeros: ZeroBlocks::default(),
            refusals: Refusals::default(),
            transfers: Transfers::default(),
            cleaning: Cleaning::default(),
            mapped: None,
        }
    }

    /// Largest part of a job in bytes, at any alignment.
    pub(super) fn part_bytes_max(&self) -> usize {
        self.slots.own().saturating_sub(1).max(1) * BLOCK_BYTES
    }

    /// Whether jobs use blocks of the page.
    pub(super) fn has_jobs(&self, page: HomePage) -> bool {
        self.jobs.has(page)
    }

    /// Blocks written for lack of idle slots since the last call.
    pub(super) fn take_cleaned(&mut self) -> u32 {
        self.cleaning.take_cleaned()
    }

    /// Whether blocks may be read ahead: three quarters of the slots are idle, and some more than a stream reads.
    pub(super) fn has_room_ahead(&self) -> bool {
        let (idle, here) = (self.slots.idle(), self.slots.here());
        idle >= IDLE_MIN && idle >= here / 4 * 3
    }

    /// Number of jobs.
    pub(super) fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Whether the storage has, or is to have, I/O on blocks other than `by_threads` reads by threads.
    pub(super) fn is_busy(&self, by_threads: usize) -> bool {
        self.jobs.len() > by_threads || self.transfers.is_busy(by_threads)
    }

    /// Number of pool frames in use for blocks.
    pub(super) fn serving_frames(&self) -> u32 {
        self.slots.frames()
    }

    /// Takes a frame of the pool for blocks.
    pub(super) fn take_frame(&mut self, frame: FrameId) {
        self.slots.add_frame(frame);
        self.mapped.iter_mut().for_each(|mapped| mapped.grow(self.slots.len()));
    }

    /// Makes one of these frames leave, unless another is leaving. [`Blocks::take_returned`] returns it.
    pub(super) fn release_frame(&mut self) {
        for at in self.slots.begin_leaving() {
            debug_assert!(self.slots.is_leaving(at), "slot {at} is of the leaving frame");
            if self.slots.is_idle(at) {
                self.vacate(at);
            }
        }
    }

    /// Takes a frame that has left.
    pub(super) fn take_returned(&mut self) -> Option<FrameId> {
        self.slots.take_returned()
    }

    /// Whether all blocks of a piece of a page are in memory.
    pub(super) fn has(&self, page: HomePage, piece: &Piece) -> bool {
        let stays = |at: usize| self.slots.has_bytes(at) && !self.slots.is_leaving(at);
        self.numbering.of_piece(page, piece).all(|block| self.slots.find(block).is_some_and(stays))
    }

    /// Starts a job for a part of `page`, which no rank holds. If the page is not `is_written`, it is zeros. Returns
    /// the copies if all blocks are in memory.
    pub(super) fn start(&mut self, part: Part, page: HomePage, is_written: bool) -> Option<BlockCopies> {
        let Range { start: first, end } = self.numbering.of_piece(page, &part.piece);
        debug_assert!(first < end, "a job is about some bytes");
        let (is_put, maps) = (part.copy.access() == Access::Write, part.copy.mapped_access());
        debug_assert!(maps.is_none() || page.is_of_segment(), "blocks of files have no address");
        let is_copied = maps == Some(Access::Read) && self.may_copy(page);
        let needed = Needed { page, first, count: end - first, is_put, maps, is_copied };
        let id = self.jobs.add(part, needed, is_written);
        if is_put {
            self.note_written(page, is_written);
        }
        // A job without need of a slot may overtake jobs waiting for slots.
        let has_all = || needed.blocks().all(|block| self.slots.find(block).is_some());
        let may_go = self.jobs.first_waiting().is_none() || has_all();
        let has_blocks = may_go && self.take_blocks(id);
        if !has_blocks {
            self.jobs.wait(id);
        }
        let ready = if has_blocks { self.ready(id) } else { None };
        if ready.is_none() {
            self.jobs.note_wait(id);
        }
        ready
    }

    /// A job writes to a page: waiting jobs may find its bytes in the file.
    fn note_written(&mut self, page: HomePage, was_written: bool) {
        if !was_written {
            self.zeros.begin(page, self.numbering.per_page());
        }
        self.jobs.on_written(page);
    }

    fn in_slot(&self, slot: usize) -> InSlot {
        let block = self.slots.block(slot);
        let (page, offset_bytes) = (self.numbering.page_of(block), self.slots.offset_bytes(slot));
        InSlot { slot, offset_bytes, page, block: self.numbering.place_in_page(block) as u32 }
    }

    /// Gives a job all of its blocks, or none. Returns whether it has them.
    fn take_blocks(&mut self, id: usize) -> bool {
        let needed = self.jobs.needed(id);
        let Needed { page, count, is_put, .. } = needed;
        if is_put && !self.may_dirty(page, count as usize) {
            self.cleaning.start_if(true);
            return false;
        }
        let here: Vec<usize> = needed.blocks().filter_map(|block| self.slots.find(block)).collect();
        debug_assert!(here.len() as u64 <= count, "each block has one slot");
        let is_going = |slot: usize| self.slots.is_leaving(slot) && !self.is_unwritten(slot);
        if here.iter().any(|slot| is_going(*slot) || self.slots.state(*slot) == SlotState::Failed) {
            return false;
        }
        self.slots.renew_chances();
        here.iter().for_each(|slot| self.slots.begin_use(*slot));
        if self.slots.idle() < count as usize - here.len() {
            here.iter().for_each(|slot| self.release_slot(*slot));
            self.cleaning.start_if(true);
            return false;
        }
        if is_put {
            self.dirty.promise(page, count);
            self.close_copies(&needed);
        }
        for block in needed.blocks() {
            let found = self.slots.find(block);
            let slot = found.unwrap_or_else(|| self.fill_slot(block, id));
            let is_missing = match self.slots.state(slot) {
                SlotState::Wanted => true,
                SlotState::Filling => found.is_some(),
                SlotState::Writing => is_put,
                _ => false,
            };
            if is_missing {
                self.slots.wait_for(slot, id);
                self.jobs.on_missing(id);
            }
        }
        debug_assert!(needed.blocks().all(|block| self.slots.find(block).is_some()), "a job has all of its blocks");
        true
    }

    /// A job has ended with a slot.
    fn release_slot(&mut self, slot: usize) {
        self.slots.end_use(slot);
        self.note_idle(slot);
    }

    /// Called when the slot may have become idle.
    fn note_idle(&mut self, slot: usize) {
        if self.slots.note_idle(slot) {
            self.vacate(slot);
        }
    }

    /// Vacates an idle slot of the leaving frame.
    fn vacate(&mut self, slot: usize) {
        debug_assert!(
            self.slots.is_idle(slot) && self.slots.is_leaving(slot),
            "slot {slot} is idle in a leaving frame"
        );
        if self.slots.state(slot) == SlotState::Clean {
            self.unmap(slot);
        }
        self.slots.vacate(slot);
    }

    /// Gives a block an idle slot for a job. There must be one.
    fn fill_slot(&mut self, block: Block, id: usize) -> usize {
        debug_assert!(self.slots.find(block).is_none(), "block {block} has one slot");
        let at = self.idle_slot();
        if self.slots.state(at) == SlotState::Clean {
            self.unmap(at);
        }
        let Needed { page, is_put, .. } = self.jobs.needed(id);
        let is_filled = self.jobs.part(id).is_some_and(|part| is_put && self.is_whole(part, block));
        let is_zeros = || !self.jobs.is_written(id) || self.zeros.has(page, self.numbering.place_in_page(block));
        let state = match is_filled {
            true => SlotState::Filling,
            false if is_zeros() => SlotState::Clean,
            false => SlotState::Wanted,
        };
        self.slots.give(at, block, state);
        match state {
            // SAFETY: the slot was idle, so nothing else uses its memory, which is one block long.
            SlotState::Clean => unsafe {
                self.slots.memory(at).write_bytes(0, BLOCK_BYTES);
                self.slots.show(at);
            },
            SlotState::Wanted => self.transfers.want(at),
            _ => {}
        }
        at
    }

    /// The first idle slot behind the hand not used since the hand's last pass. A used block is unmapped, so that its
    /// next use faults.
    fn idle_slot(&mut self) -> usize {
        loop {
            match self.slots.step() {
                Step::Takes(at) => return at,
                Step::Spares(at) => self.unmap(at),
            }
        }
    }

    /// Whether a put overwrites a whole block. Atomic operations read first, and so may a thread with a mapped block.
    fn is_whole(&self, part: &Part, block: Block) -> bool {
        self.bytes_in(part, block).len() == BLOCK_BYTES && !matches!(part.copy, Copy::Atomic(_) | Copy::MakeResident(_))
    }

    /// The range of a block that a part covers.
    fn bytes_in(&self, part: &Part, block: Block) -> Range<usize> {
        let start = self.numbering.place_in_page(block) as usize * BLOCK_BYTES;
        let (from, to) = (part.piece.offset_bytes, part.piece.offset_bytes + part.piece.len_bytes);
        debug_assert!(from < start + BLOCK_BYTES && to > start, "the part has bytes in block {block}");
        from.max(start) - start..to.min(start + BLOCK_BYTES) - start
    }

    /// The copies of a job, once it waits for nothing.
    fn ready(&mut self, id: usize) -> Option<BlockCopies> {
        let Ready { part, needed, failed } = self.jobs.take_ready(id)?;
        if failed.is_some() {
            return Some(BlockCopies { job: id, places: Vec::new(), copier: None, part, failed });
        }
        let mut start_bytes = 0;
        let places: Vec<BlockPlace> = needed
            .blocks()
            .map(|block| {
                let bytes = self.bytes_in(&part, block);
                let slot = self.slots.find(block).expect("the job has its blocks");
                debug_assert!(self.slots.is_used(slot), "slot {slot} stays while the job uses it");
                let memory = self.slots.memory(slot).wrapping_add(bytes.start);
                let place = BlockPlace { memory, start_bytes, len_bytes: bytes.len() };
                start_bytes += bytes.len();
                place
            })
            .collect();
        debug_assert_eq!(start_bytes, part.piece.len_bytes, "the blocks have all bytes of the part");
        let copier = if needed.is_copied { self.mapped.as_ref().and_then(MappedBlocks::copier) } else { None };
        Some(BlockCopies { job: id, places, copier, part, failed })
    }

    /// The copies of a job are done, and its block is in the segment if `is_copied`. Returns the copies waiting for them,
    /// and the job's page if the page has no other job.
    pub(super) fn end(&mut self, id: usize, is_copied: bool) -> (Vec<BlockCopies>, Option<HomePage>) {
        let jobs::Ended { needed, failed, is_last } = self.jobs.end(id);
        debug_assert!(needed.count > 0 || failed.is_some(), "a job without blocks was refused");
        debug_assert_eq!(is_last, !self.jobs.has(needed.page), "the last job of a page ends");
        if needed.is_put {
            self.dirty.end_promise(needed.page, needed.count);
            self.reopen_copies(&needed);
        }
        let mut ready = Vec::new();
        for block in needed.blocks() {
            let at = self.slots.find(block).expect("the job has its blocks");
            self.slots.note_use(at);
            // Puts keep waiting for the block to be written: this job has only read it.
            let readers = self.end_on_slot(at, needed.is_put, failed);
            needed.maps.into_iter().filter(|_| !is_copied).for_each(|access| self.map(at, access));
            self.release_slot(at);
            ready.extend(self.served(readers));
        }
        self.cleaning.start_if(self.lacks_clean());
        (ready, is_last.then_some(needed.page))
    }

    /// A job has written a block, or only read it, or has failed. Returns the jobs that waited until it is filled.
    fn end_on_slot(&mut self, at: usize, is_put: bool, failed: Option<Cause>) -> Vec<usize> {
        let state = self.slots.state(at);
        debug_assert!(self.slots.is_used(at), "slot {at} stays while the job uses it");
        let readers = match (state, failed) {
            (SlotState::Filling, None) => self.slots.change(at, state, SlotState::Dirty),
            (SlotState::Filling, Some(_)) => self.slots.change(at, state, SlotState::Failed),
            _ => Vec::new(),
        };
        if let Some(cause) = failed {
            readers.iter().for_each(|id| self.jobs.fail(*id, cause));
        } else if is_put && matches!(state, SlotState::Clean | SlotState::Filling) {
            self.mark_dirty(at);
        }
        readers
    }

    /// The block that these jobs waited for has arrived. Returns the copies of jobs with no other missing block.
    fn served(&mut self, readers: Vec<usize>) -> Vec<BlockCopies> {
        readers.iter().for_each(|id| self.jobs.on_arrived(*id));
        readers.into_iter().filter_map(|id| self.ready(id)).collect()
    }

    /// Gives waiting jobs their blocks, in order, as far as there are slots. Returns the copies that need no storage.
    pub(super) fn go_on(&mut self) -> Vec<BlockCopies> {
        let mut ready = Vec::new();
        while let Some(id) = self.jobs.first_waiting() {
            if !self.take_blocks(id) && !self.fail_unwritable_put(id) {
                break;
            }
            self.jobs.end_first_wait();
            ready.extend(self.ready(id));
        }
        ready
    }
}

//! The block cache of a home: blocks of 4 KiB of pages that no rank holds. Small reads and writes of such pages need no frame, and
//! move a block.
//!
//! It is a part of the storage: what the protocol calls the backing file is the file with the dirty blocks laid over it. While
//! jobs use blocks of a page, the engine keeps back all messages about the page, so nobody gets to hold it. While a page is
//! on its way between the file and a frame, none of its blocks is written.
//!
//! ```text
//!            job              read             put             write            written
//!   (none) ──────▶ Wanted ──────────▶ Clean ────────▶ Dirty ──────────▶ Writing ────────▶ Clean
//!            put of all of it ──▶ Filling ──▶ Dirty        nothing was ever written there ──▶ Clean
//! ```
//!
//! A job takes all blocks that it needs at once, or none, so jobs do not wait for each other's blocks in a circle. Clean blocks give
//! way in the order of a clock. Dirty ones are written behind, when few others are left or a job lacks room, and blocks side by side
//! go together.

mod files;
mod flushes;
mod frames;
mod io;
mod mapped;
mod of_page;
mod zeros;

pub(super) use io::BLOCK_TOKEN;

use super::byte_jobs::{BlockCopies, BlockPlace};
use super::home_page::HomePage;
use crate::memory::Piece;
use crate::request::{Copy, Part};
use crate::stats::{self, Row};
use crate::storage::BLOCK_BYTES;
use files::Files;
use frames::Serving;
use mapped::{InSlot, MappedBlocks};
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::time::Instant;
use vgasnet_protocol::coherence::{Access, Cause};
use zeros::ZeroBlocks;

/// Blocks that were used since the hand came to them last, and that it passes over for a job.
const SECOND_CHANCES: usize = 16;

/// A block: [`HomePage::first_block`] numbers them.
type Block = u64;

/// What is in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its frame does not serve for blocks, or is about to stop.
    Away,
    Free,
    /// The block is to be read, or is being read.
    Wanted,
    /// A job writes all of it: what is there until that has ended is of no block.
    Filling,
    Clean,
    Dirty,
    Writing,
    /// It could not be read, or filled. Who wants it waits until those have gone that did before.
    Failed,
}

#[derive(Debug)]
struct Slot {
    block: Block,
    state: State,
    /// Jobs that have it.
    users: u32,
    was_used: bool,
    /// Of a dirty block of a file: since which flush of the file.
    mark: u32,
    /// Jobs that wait until it has been read or filled, or written.
    readers: Vec<usize>,
}

impl Slot {
    fn new(state: State) -> Slot {
        Slot { block: 0, state, users: 0, was_used: false, mark: 0, readers: Vec::new() }
    }

    fn is_idle(&self) -> bool {
        self.users == 0 && matches!(self.state, State::Free | State::Clean)
    }
}

/// A small operation on blocks.
#[derive(Debug)]
struct Job {
    /// `None` once it is work.
    part: Option<Part>,
    page: HomePage,
    first: Block,
    count: u64,
    /// Blocks that have not been read, or filled by other jobs, yet; of a put also those that are being written.
    missing: usize,
    is_put: bool,
    /// Somebody has written to the page.
    is_written: bool,
    /// The blocks are to be mapped for this.
    maps: Option<Access>,
    /// Why it cannot be done: a block could not be read.
    failed: Option<Cause>,
    /// Since when it waits, if statistics count that.
    since: Option<Instant>,
}

/// The block cache.
pub(super) struct Blocks {
    /// The address of the pool's memory.
    pool: usize,
    /// Where the slots that are always here begin in it.
    first_offset_bytes: usize,
    /// How many those are. The others are of frames of the pool.
    own_slots: usize,
    serving: Serving,
    slots: Vec<Slot>,
    of_block: BTreeMap<Block, usize>,
    dirty: BTreeSet<Block>,
    /// How many of those are of files, with those that are being written: they are dirty again if that fails.
    dirty_of_files: usize,
    /// The blocks of puts to files that have them, and may make them dirty.
    soiling: usize,
    files: Files,
    zeros: ZeroBlocks,
    jobs: Slab<Job>,
    /// How many jobs each page has.
    of_page: HashMap<HomePage, usize>,
    /// Jobs that wait for slots, in order.
    waiting: VecDeque<usize>,
    /// Slots that the storage has no room to read yet.
    to_read: VecDeque<usize>,
    /// How many slots are idle.
    idle: usize,
    reading: usize,
    writing: usize,
    is_cleaning: bool,
    /// Blocks that were written because few slots were idle, since somebody asked last.
    cleaned: u32,
    /// All dirty blocks are to be written.
    is_emptying: bool,
    hand: usize,
    /// Used blocks that the hand may pass over until the present job has its slots.
    chances: usize,
    /// Dirty blocks are written in order from here on.
    cursor: Block,
    /// Blocks of a page, as a power of two.
    page_shift: u32,
    /// Those that loads and stores reach; `None` if none may be mapped.
    mapped: Option<MappedBlocks>,
}

impl Blocks {
    /// A cache of so many blocks, at least as many as the largest job needs, which begin at `first_offset_bytes` of a pool's
    /// memory.
    pub(super) fn new(pool: *mut u8, first_offset_bytes: usize, slots: usize, page_bytes: usize) -> Blocks {
        Blocks {
            pool: pool.expose_provenance(),
            first_offset_bytes,
            own_slots: slots,
            serving: Serving::new(page_bytes / BLOCK_BYTES),
            slots: std::iter::repeat_with(|| Slot::new(State::Free)).take(slots).collect(),
            of_block: BTreeMap::new(),
            dirty: BTreeSet::new(),
            dirty_of_files: 0,
            soiling: 0,
            files: Files::default(),
            zeros: ZeroBlocks::default(),
            jobs: Slab::new(),
            of_page: HashMap::new(),
            waiting: VecDeque::new(),
            to_read: VecDeque::new(),
            idle: slots,
            reading: 0,
            writing: 0,
            is_cleaning: false,
            cleaned: 0,
            is_emptying: false,
            hand: 0,
            chances: 0,
            cursor: 0,
            page_shift: (page_bytes / BLOCK_BYTES).trailing_zeros(),
            mapped: None,
        }
    }

    /// The most bytes of a part that jobs take, wherever it begins.
    pub(super) fn part_bytes_max(&self) -> usize {
        self.own_slots.saturating_sub(1).max(1) * BLOCK_BYTES
    }

    /// Whether jobs use blocks of the page.
    pub(super) fn has_jobs(&self, page: HomePage) -> bool {
        self.of_page.contains_key(&page)
    }

    /// Blocks that were written because few slots were idle, since this was asked last.
    pub(super) fn take_cleaned(&mut self) -> u32 {
        std::mem::take(&mut self.cleaned)
    }

    /// How many jobs there are.
    pub(super) fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Whether the storage has something of these blocks, or is to have it, besides so many that threads read themselves.
    pub(super) fn is_busy(&self, by_threads: usize) -> bool {
        self.jobs.len() > by_threads || self.reading + self.writing > by_threads
    }

    /// Whether all blocks of a piece of a page are here.
    pub(super) fn has(&self, page: HomePage, piece: &Piece) -> bool {
        let (first, count) = self.range(page, piece);
        let has_bytes = |slot: &usize| {
            !matches!(self.slots[*slot].state, State::Wanted | State::Filling | State::Failed)
                && !self.is_leaving(*slot)
        };
        let is_here = |block| self.of_block.get(&block).is_some_and(has_bytes);
        (first..first + count).all(is_here)
    }

    /// Takes a part in whose page, `page`, no rank holds. `is_written`: the file has bytes of the page, which is zeros else. Returns
    /// the copies if all blocks are here.
    pub(super) fn start(&mut self, part: Part, page: HomePage, is_written: bool) -> Option<BlockCopies> {
        let ((first, count), maps) = (self.range(page, &part.piece), part.copy.mapped_access());
        let is_put = part.copy.access() == Access::Write;
        let id = self.jobs.insert(Job {
            part: Some(part),
            page,
            first,
            count,
            missing: 0,
            is_put,
            is_written,
            maps,
            failed: None,
            since: None,
        });
        *self.of_page.entry(page).or_default() += 1;
        if is_put {
            self.note_written(page, is_written);
        }
        // One that needs no slot need not wait for those that do.
        let may_go = self.waiting.is_empty() || (first..first + count).all(|block| self.of_block.contains_key(&block));
        let has_blocks = may_go && self.take_blocks(id);
        if !has_blocks {
            self.waiting.push_back(id);
        }
        let ready = if has_blocks { self.ready(id) } else { None };
        if ready.is_none() && stats::is_on() {
            self.jobs[id].since = Some(Instant::now());
        }
        ready
    }

    /// A job writes to a page: those that wait may find its bytes in the file.
    fn note_written(&mut self, page: HomePage, was_written: bool) {
        if !was_written {
            self.zeros.begin(page, 1 << self.page_shift);
        }
        for id in &self.waiting {
            let job = &mut self.jobs[*id];
            job.is_written |= job.page == page;
        }
    }

    /// The blocks of a piece of a page: the first, and how many.
    fn range(&self, page: HomePage, piece: &Piece) -> (Block, u64) {
        let (first, end) =
            (piece.offset_bytes / BLOCK_BYTES, (piece.offset_bytes + piece.len_bytes).div_ceil(BLOCK_BYTES));
        (page.first_block(self.page_shift) + first as u64, (end - first) as u64)
    }

    fn page_of(&self, block: Block) -> HomePage {
        HomePage::of_block(block, self.page_shift)
    }

    fn in_slot(&self, slot: usize) -> InSlot {
        let block = self.slots[slot].block;
        let offset_bytes = self.offset_bytes(slot);
        InSlot { slot, offset_bytes, page: self.page_of(block), block: (block & ((1 << self.page_shift) - 1)) as u32 }
    }

    /// Gives a job all its blocks, or none. Returns whether it has them.
    fn take_blocks(&mut self, id: usize) -> bool {
        let Job { page, first, count, is_put, .. } = self.jobs[id];
        if is_put && !self.may_soil(page, count as usize) {
            self.is_cleaning = true;
            return false;
        }
        let blocks = first..first + count;
        let here: Vec<usize> = blocks.clone().filter_map(|block| self.of_block.get(&block).copied()).collect();
        let is_going = |slot: usize| self.is_leaving(slot) && !self.is_unwritten(slot);
        if here.iter().any(|slot| is_going(*slot) || self.slots[*slot].state == State::Failed) {
            return false;
        }
        self.chances = SECOND_CHANCES;
        here.iter().for_each(|slot| self.use_slot(*slot));
        if self.idle < count as usize - here.len() {
            here.iter().for_each(|slot| self.release_slot(*slot));
            self.is_cleaning = true;
            return false;
        }
        self.soiling += if is_put && !page.is_of_segment() { count as usize } else { 0 };
        for block in blocks {
            let found = self.of_block.get(&block).copied();
            let slot = found.unwrap_or_else(|| self.fill_slot(block, id));
            let state = self.slots[slot].state;
            let is_missing = match state {
                State::Wanted => true,
                State::Filling => found.is_some(),
                State::Writing => is_put,
                _ => false,
            };
            if is_missing {
                self.slots[slot].readers.push(id);
                self.jobs[id].missing += 1;
            }
        }
        true
    }

    fn use_slot(&mut self, slot: usize) {
        self.idle -= usize::from(self.slots[slot].is_idle());
        self.slots[slot].users += 1;
    }

    fn release_slot(&mut self, slot: usize) {
        self.slots[slot].users -= 1;
        if self.slots[slot].users == 0 && self.slots[slot].state == State::Failed {
            self.of_block.remove(&self.slots[slot].block);
            self.slots[slot].state = State::Free;
        }
        self.note_idle(slot);
    }

    /// The slot may have become idle.
    fn note_idle(&mut self, slot: usize) {
        if self.slots[slot].is_idle() {
            self.idle += 1;
            self.let_go(slot);
        }
    }

    /// Gives a block a slot for a job: an idle one, of which there is one.
    fn fill_slot(&mut self, block: Block, id: usize) -> usize {
        let at = self.idle_slot();
        if self.slots[at].state == State::Clean {
            self.unmap(at);
            self.of_block.remove(&self.slots[at].block);
        }
        self.of_block.insert(block, at);
        let job = &self.jobs[id];
        let state = match &job.part {
            Some(part) if job.is_put && self.is_whole(part, job.page, block) => State::Filling,
            _ if !job.is_written || self.zeros.has(job.page, self.place_in_page(job.page, block)) => {
                // SAFETY: the slot is idle, so nothing else uses its memory, which is a block.
                unsafe { self.place(at).write_bytes(0, BLOCK_BYTES) };
                State::Clean
            }
            _ => {
                self.to_read.push_back(at);
                self.reading += 1;
                State::Wanted
            }
        };
        let slot = &mut self.slots[at];
        (slot.block, slot.state, slot.users, slot.was_used) = (block, state, 1, true);
        self.idle -= 1;
        at
    }

    /// An idle slot: the first that the hand comes to which was not used since it came there last. A block that was used is unmapped,
    /// so that its next use is seen.
    fn idle_slot(&mut self) -> usize {
        loop {
            let at = self.hand;
            self.hand = (at + 1) % self.slots.len();
            let slot = &mut self.slots[at];
            if !slot.is_idle() {
                self.hand = self.serving.next_behind(at, self.own_slots) % self.slots.len();
                continue;
            }
            let was_used = std::mem::take(&mut slot.was_used) && slot.state != State::Free;
            if !was_used || self.chances == 0 {
                return at;
            }
            self.chances -= 1;
            self.unmap(at);
        }
    }

    /// Whether a put writes all of a block. An atomic operation reads first, and so may who stores to it.
    fn is_whole(&self, part: &Part, page: HomePage, block: Block) -> bool {
        self.bytes_in(part, page, block).len() == BLOCK_BYTES
            && !matches!(part.copy, Copy::Atomic(_) | Copy::MakeResident(_))
    }

    /// The bytes of a part in one of its blocks, of which they are those of a range.
    fn bytes_in(&self, part: &Part, page: HomePage, block: Block) -> Range<usize> {
        let start = self.place_in_page(page, block) as usize * BLOCK_BYTES;
        let (from, to) = (part.piece.offset_bytes, part.piece.offset_bytes + part.piece.len_bytes);
        from.max(start) - start..to.min(start + BLOCK_BYTES) - start
    }

    fn place(&self, slot: usize) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.pool + self.offset_bytes(slot))
    }

    /// Where a slot lies in the pool's memory.
    fn offset_bytes(&self, slot: usize) -> usize {
        match slot.checked_sub(self.own_slots) {
            None => self.first_offset_bytes + slot * BLOCK_BYTES,
            Some(slot) => self.serving.offset_bytes(slot),
        }
    }

    /// The copies of a job that waits for nothing any more.
    fn ready(&mut self, id: usize) -> Option<BlockCopies> {
        if self.jobs[id].missing > 0 {
            return None;
        }
        let Job { page, first, count, since, failed, .. } = self.jobs[id];
        since.into_iter().for_each(|since| stats::time(Row::BlockWait, since));
        let part = self.jobs[id].part.take().expect("a job is ready once");
        if failed.is_some() {
            return Some(BlockCopies { job: id, places: Vec::new(), part, failed });
        }
        let mut start_bytes = 0;
        let places = (first..first + count).map(|block| {
            let bytes = self.bytes_in(&part, page, block);
            let memory = self.place(self.of_block[&block]).wrapping_add(bytes.start);
            let place = BlockPlace { memory, start_bytes, len_bytes: bytes.len() };
            start_bytes += bytes.len();
            place
        });
        Some(BlockCopies { job: id, places: places.collect(), part, failed })
    }

    /// The copies of a job are done. Returns the copies that waited for that, and its page if the page has no other job.
    pub(super) fn end(&mut self, id: usize) -> (Vec<BlockCopies>, Option<HomePage>) {
        let Job { page, first, count, is_put, maps, failed, .. } = self.jobs.remove(id);
        self.soiling -= if is_put && !page.is_of_segment() { count as usize } else { 0 };
        let mut ready = Vec::new();
        for block in first..first + count {
            let at = self.of_block[&block];
            let slot = &mut self.slots[at];
            slot.was_used = true;
            // Puts that wait until the block has been written go on waiting: this job has only read it.
            let is_filled = slot.state == State::Filling;
            let readers = if is_filled { std::mem::take(&mut slot.readers) } else { Vec::new() };
            if let Some(cause) = failed {
                if is_filled {
                    self.slots[at].state = State::Failed;
                    self.fail_all(&readers, cause);
                }
            } else if is_put && matches!(slot.state, State::Clean | State::Filling) {
                slot.state = State::Dirty;
                self.soil(at);
            }
            maps.into_iter().for_each(|access| self.map(at, access));
            self.release_slot(at);
            ready.extend(self.served(readers));
        }
        self.is_cleaning |= self.lacks_clean();
        let jobs = self.of_page.get_mut(&page).expect("the page has this job");
        *jobs -= 1;
        let is_last = *jobs == 0;
        if is_last {
            self.of_page.remove(&page);
        }
        (ready, is_last.then_some(page))
    }

    /// A block has come for which these jobs have waited. Returns the copies of those that miss no other.
    fn served(&mut self, readers: Vec<usize>) -> Vec<BlockCopies> {
        readers.iter().for_each(|id| self.jobs[*id].missing -= 1);
        readers.into_iter().filter_map(|id| self.ready(id)).collect()
    }

    /// Gives waiting jobs their blocks, in order, as far as there are slots. Returns those that need not wait for the storage.
    pub(super) fn go_on(&mut self) -> Vec<BlockCopies> {
        let mut ready = Vec::new();
        while let Some(id) = self.waiting.front().copied() {
            if !self.take_blocks(id) && !self.fail_hopeless(id) {
                break;
            }
            self.waiting.pop_front();
            ready.extend(self.ready(id));
        }
        ready
    }
}

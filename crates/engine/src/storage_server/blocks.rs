//! The block cache of a home: 4 KiB blocks of pages that no rank holds. Small reads and writes of such pages need no
//! frame and move a single block.
//!
//! It is part of the storage: the protocol's backing file is the file overlaid with the dirty blocks. While jobs use
//! blocks of a page, the engine holds back all messages about the page, so no rank can obtain it. While a page is in
//! flight between the file and a frame, none of its blocks is written.
//!
//! ```text
//!           job              read             put             write            written
//!  (none) ──────▶ Wanted ──────────▶ Clean ────────▶ Dirty ──────────▶ Writing ────────▶ Clean
//!           put of all of it ──▶ Filling ──▶ Dirty        nothing was ever written there ──▶ Clean
//! ```
//!
//! A job takes all of its blocks at once or none, so jobs never wait for each other's blocks in a cycle. Clean blocks
//! are evicted in clock order. Dirty ones are written behind when clean ones run short or a job lacks room, and
//! adjacent blocks are written together.

mod files;
mod flushes;
mod frames;
mod io;
mod mapped;
mod of_page;
mod zeros;

pub(super) use io::BLOCK_TOKEN;

use super::home_page::HomePage;
use crate::request::{Copy, Part};
use crate::work::{BlockCopies, BlockPlace};
use files::Files;
use frames::Serving;
use mapped::{InSlot, MappedBlocks};
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::time::Instant;
use vgasnet_memory::Piece;
use vgasnet_protocol::coherence::{Access, Cause};
use vgasnet_stats::{self as stats, Row};
use vgasnet_storage::BLOCK_BYTES;
use zeros::ZeroBlocks;

/// Maximum recently used blocks that the clock hand skips for a job.
const SECOND_CHANCES: usize = 16;

/// A block number, as [`HomePage::first_block`] counts.
type Block = u64;

/// State of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its frame does not serve for blocks, or is about to stop.
    Away,
    Free,
    /// Waiting to be read, or being read.
    Wanted,
    /// A job overwrites all of it. Until the job ends the contents are undefined.
    Filling,
    Clean,
    Dirty,
    Writing,
    /// The read or the filling job failed. New jobs wait until the present ones have gone.
    Failed,
}

#[derive(Debug)]
struct Slot {
    block: Block,
    state: State,
    /// Number of jobs using it.
    users: u32,
    was_used: bool,
    /// For a dirty block of a file: the file's flush mark at the time of the first write.
    mark: u32,
    /// Jobs waiting until it has been read, filled or written.
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
    /// `None` once it has become work.
    part: Option<Part>,
    page: HomePage,
    first: Block,
    count: u64,
    /// Blocks still to be read, or filled by other jobs; for a put also blocks being written.
    missing: usize,
    is_put: bool,
    /// The page has been written before.
    is_written: bool,
    /// The access for which to map the blocks.
    maps: Option<Access>,
    /// The cause of its failure: a block could not be read.
    failed: Option<Cause>,
    /// Start of its wait, if statistics are on.
    since: Option<Instant>,
}

/// The block cache.
pub(super) struct Blocks {
    /// Address of the pool's memory.
    pool: usize,
    /// Offset of the permanent slots in it.
    first_offset_bytes: usize,
    /// Number of permanent slots. Later slots lie in frames of the pool.
    own_slots: usize,
    serving: Serving,
    slots: Vec<Slot>,
    of_block: BTreeMap<Block, usize>,
    dirty: BTreeSet<Block>,
    /// Dirty blocks of files, including those being written, which are dirty again if the write fails.
    dirty_of_files: usize,
    /// Blocks held by puts to files, which may become dirty.
    may_become_dirty: usize,
    files: Files,
    zeros: ZeroBlocks,
    jobs: Slab<Job>,
    /// Number of jobs per page.
    of_page: HashMap<HomePage, usize>,
    /// Jobs waiting for slots, in order.
    waiting: VecDeque<usize>,
    /// Slots waiting for room in the storage to be read.
    to_read: VecDeque<usize>,
    /// Number of idle slots.
    idle: usize,
    reading: usize,
    writing: usize,
    is_cleaning: bool,
    /// Blocks written for lack of idle slots since the last query.
    cleaned: u32,
    /// All dirty blocks are to be written.
    is_emptying: bool,
    hand: usize,
    /// Used blocks that the hand may still skip for the present job.
    chances: usize,
    /// Dirty blocks are written in order from here on.
    cursor: Block,
    /// Blocks per page, as a power of two.
    page_shift: u32,
    /// Blocks reachable by loads and stores; `None` if none may be mapped.
    mapped: Option<MappedBlocks>,
}

impl Blocks {
    /// A cache of `slots` blocks from `first_offset_bytes` of a pool's memory on, at least as many as the largest job
    /// needs.
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
            may_become_dirty: 0,
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

    /// Largest part of a job in bytes, at any alignment.
    pub(super) fn part_bytes_max(&self) -> usize {
        self.own_slots.saturating_sub(1).max(1) * BLOCK_BYTES
    }

    /// Whether jobs use blocks of the page.
    pub(super) fn has_jobs(&self, page: HomePage) -> bool {
        self.of_page.contains_key(&page)
    }

    /// Blocks written for lack of idle slots since the last call.
    pub(super) fn take_cleaned(&mut self) -> u32 {
        std::mem::take(&mut self.cleaned)
    }

    /// Number of jobs.
    pub(super) fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Whether the storage has, or is to have, I/O on blocks other than `by_threads` reads by threads.
    pub(super) fn is_busy(&self, by_threads: usize) -> bool {
        self.jobs.len() > by_threads || self.reading + self.writing > by_threads
    }

    /// Whether all blocks of a piece of a page are in memory.
    pub(super) fn has(&self, page: HomePage, piece: &Piece) -> bool {
        let (first, count) = self.range(page, piece);
        let has_bytes = |slot: &usize| {
            !matches!(self.slots[*slot].state, State::Wanted | State::Filling | State::Failed)
                && !self.is_leaving(*slot)
        };
        let is_here = |block| self.of_block.get(&block).is_some_and(has_bytes);
        (first..first + count).all(is_here)
    }

    /// Starts a job for a part of `page`, which no rank holds. If the page is not `is_written`, it is zeros. Returns
    /// the copies if all blocks are in memory.
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
        // A job without need of a slot may overtake jobs waiting for slots.
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

    /// A job writes to a page: waiting jobs may find its bytes in the file.
    fn note_written(&mut self, page: HomePage, was_written: bool) {
        if !was_written {
            self.zeros.begin(page, 1 << self.page_shift);
        }
        for id in &self.waiting {
            let job = &mut self.jobs[*id];
            job.is_written |= job.page == page;
        }
    }

    /// The blocks of a piece of a page: the first, and their number.
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

    /// Gives a job all of its blocks, or none. Returns whether it has them.
    fn take_blocks(&mut self, id: usize) -> bool {
        let Job { page, first, count, is_put, .. } = self.jobs[id];
        if is_put && !self.may_dirty(page, count as usize) {
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
        self.may_become_dirty += if is_put && !page.is_of_segment() { count as usize } else { 0 };
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

    /// Called when the slot may have become idle.
    fn note_idle(&mut self, slot: usize) {
        if self.slots[slot].is_idle() {
            self.idle += 1;
            self.let_go(slot);
        }
    }

    /// Gives a block an idle slot for a job. There must be one.
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
                // SAFETY: the slot is idle, so nothing else uses its memory, which is one block long.
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

    /// The first idle slot behind the hand not used since the hand's last pass. A used block is unmapped, so that its
    /// next use faults.
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

    /// Whether a put overwrites a whole block. Atomic operations read first, and so may a thread with a mapped block.
    fn is_whole(&self, part: &Part, page: HomePage, block: Block) -> bool {
        self.bytes_in(part, page, block).len() == BLOCK_BYTES
            && !matches!(part.copy, Copy::Atomic(_) | Copy::MakeResident(_))
    }

    /// The range of a block that a part covers.
    fn bytes_in(&self, part: &Part, page: HomePage, block: Block) -> Range<usize> {
        let start = self.place_in_page(page, block) as usize * BLOCK_BYTES;
        let (from, to) = (part.piece.offset_bytes, part.piece.offset_bytes + part.piece.len_bytes);
        from.max(start) - start..to.min(start + BLOCK_BYTES) - start
    }

    fn place(&self, slot: usize) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.pool + self.offset_bytes(slot))
    }

    /// Offset of a slot in the pool's memory.
    fn offset_bytes(&self, slot: usize) -> usize {
        match slot.checked_sub(self.own_slots) {
            None => self.first_offset_bytes + slot * BLOCK_BYTES,
            Some(slot) => self.serving.offset_bytes(slot),
        }
    }

    /// The copies of a job, once it waits for nothing.
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

    /// The copies of a job are done. Returns the copies waiting for them, and the job's page if the page has no other
    /// job.
    pub(super) fn end(&mut self, id: usize) -> (Vec<BlockCopies>, Option<HomePage>) {
        let Job { page, first, count, is_put, maps, failed, .. } = self.jobs.remove(id);
        self.may_become_dirty -= if is_put && !page.is_of_segment() { count as usize } else { 0 };
        let mut ready = Vec::new();
        for block in first..first + count {
            let at = self.of_block[&block];
            let slot = &mut self.slots[at];
            slot.was_used = true;
            // Puts keep waiting for the block to be written: this job has only read it.
            let is_filled = slot.state == State::Filling;
            let readers = if is_filled { std::mem::take(&mut slot.readers) } else { Vec::new() };
            if let Some(cause) = failed {
                if is_filled {
                    self.slots[at].state = State::Failed;
                    self.fail_all(&readers, cause);
                }
            } else if is_put && matches!(slot.state, State::Clean | State::Filling) {
                slot.state = State::Dirty;
                self.mark_dirty(at);
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

    /// The block that these jobs waited for has arrived. Returns the copies of jobs with no other missing block.
    fn served(&mut self, readers: Vec<usize>) -> Vec<BlockCopies> {
        readers.iter().for_each(|id| self.jobs[*id].missing -= 1);
        readers.into_iter().filter_map(|id| self.ready(id)).collect()
    }

    /// Gives waiting jobs their blocks, in order, as far as there are slots. Returns the copies that need no storage.
    pub(super) fn go_on(&mut self) -> Vec<BlockCopies> {
        let mut ready = Vec::new();
        while let Some(id) = self.waiting.front().copied() {
            if !self.take_blocks(id) && !self.fail_unwritable_put(id) {
                break;
            }
            self.waiting.pop_front();
            ready.extend(self.ready(id));
        }
        ready
    }
}

//! The memory of the block cache in slots of one block, and the state of each.
//!
//! ```text
//!           job              read             put             write            written
//!  (none) ──────▶ Wanted ──────────▶ Clean ────────▶ Dirty ──────────▶ Writing ────────▶ Clean
//!           put of all of it ──▶ Filling ──▶ Dirty        nothing was ever written there ──▶ Clean
//! ```

mod shown;
#[cfg(test)]
mod tests;

use super::numbering::Block;
use super::serving::Serving;
use std::collections::BTreeMap;
use std::ops::Range;
use vgasnet_memory::HomeBlocks;
use vgasnet_protocol::coherence::FrameId;
use vgasnet_storage::BLOCK_BYTES;

/// Maximum recently used blocks that the clock hand skips for a job.
const SECOND_CHANCES: usize = 16;

/// SlotState of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
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
    state: SlotState,
    /// Number of jobs using it.
    users: u32,
    was_used: bool,
    /// For a dirty block of a file: the file's flush mark at the time of the first write.
    mark: u32,
    /// Jobs waiting until it has been read, filled or written.
    readers: Vec<usize>,
}

impl Slot {
    fn new(state: SlotState) -> Slot {
        Slot { block: 0, state, users: 0, was_used: false, mark: 0, readers: Vec::new() }
    }

    fn is_idle(&self) -> bool {
        self.users == 0 && matches!(self.state, SlotState::Free | SlotState::Clean)
    }
}

/// A step of the clock hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Takes this slot.
    Takes(usize),
    /// Spares this slot, which was used since the last pass. It is to be unmapped, so that its next use is noticed.
    Spares(usize),
}

/// The slots.
pub(super) struct Slots {
    /// Address of the pool's memory.
    pool: usize,
    /// Offset of the permanent slots in it.
    first_offset_bytes: usize,
    /// Number of permanent slots. Later slots lie in frames of the pool.
    own: usize,
    serving: Serving,
    slots: Vec<Slot>,
    of_block: BTreeMap<Block, usize>,
    /// Number of idle slots.
    idle: usize,
    hand: usize,
    /// Used blocks that the hand may still skip for the present job.
    chances: usize,
    /// Where neighbours find the blocks.
    shown: HomeBlocks,
}

impl Slots {
    /// `own` slots from `first_offset_bytes` of a pool's memory on. Frames of the pool have `each`.
    pub(super) fn new(pool: *mut u8, first_offset_bytes: usize, own: usize, each: usize) -> Slots {
        assert!(own > 0 && each > 0, "a cache has slots, and so has a frame");
        Slots {
            pool: pool.expose_provenance(),
            first_offset_bytes,
            own,
            serving: Serving::new(each),
            slots: std::iter::repeat_with(|| Slot::new(SlotState::Free)).take(own).collect(),
            of_block: BTreeMap::new(),
            idle: own,
            hand: 0,
            chances: 0,
            shown: HomeBlocks::default(),
        }
    }

    /// Number of permanent slots.
    pub(super) fn own(&self) -> usize {
        self.own
    }

    /// Number of slots, with those that have no memory.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Number of slots with memory.
    pub(super) fn here(&self) -> usize {
        self.slots.len() - self.serving.away()
    }

    /// Number of idle slots.
    pub(super) fn idle(&self) -> usize {
        self.idle
    }

    /// The slot of a block, if it has one.
    pub(super) fn find(&self, block: Block) -> Option<usize> {
        self.of_block.get(&block).copied()
    }

    /// The blocks of a range that have slots, with these.
    pub(super) fn among(&self, blocks: Range<Block>) -> impl Iterator<Item = (Block, usize)> + '_ {
        self.of_block.range(blocks).map(|(block, at)| (*block, *at))
    }

    /// Whether no block has a slot.
    pub(super) fn is_empty(&self) -> bool {
        self.of_block.is_empty()
    }

    /// The block of a slot, now or last.
    pub(super) fn block(&self, at: usize) -> Block {
        self.slots[at].block
    }

    /// The state of a slot.
    pub(super) fn state(&self, at: usize) -> SlotState {
        self.slots[at].state
    }

    /// The mark of the first write to a slot's block.
    pub(super) fn mark(&self, at: usize) -> u32 {
        self.slots[at].mark
    }

    /// Whether jobs use a slot.
    pub(super) fn is_used(&self, at: usize) -> bool {
        self.slots[at].users > 0
    }

    /// Whether a slot can be given to another block.
    pub(super) fn is_idle(&self, at: usize) -> bool {
        self.slots[at].is_idle()
    }

    /// Whether a slot has the bytes of its block.
    pub(super) fn has_bytes(&self, at: usize) -> bool {
        !matches!(self.slots[at].state, SlotState::Wanted | SlotState::Filling | SlotState::Failed)
    }

    /// The memory of a slot.
    pub(super) fn memory(&self, at: usize) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.pool + self.offset_bytes(at))
    }

    /// Offset of a slot in the pool's memory.
    pub(super) fn offset_bytes(&self, at: usize) -> usize {
        match at.checked_sub(self.own) {
            None => self.first_offset_bytes + at * BLOCK_BYTES,
            Some(at) => self.serving.offset_bytes(at),
        }
    }

    /// A job uses a slot.
    pub(super) fn begin_use(&mut self, at: usize) {
        assert!(self.idle > 0 || !self.slots[at].is_idle(), "idle slots are counted");
        self.idle -= usize::from(self.slots[at].is_idle());
        self.slots[at].users += 1;
    }

    /// A job has ended with a slot. The last one removes a failed block. [`Slots::note_idle`] follows.
    pub(super) fn end_use(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        assert!(slot.users > 0, "a job ends its use of slot {at} once");
        slot.users -= 1;
        if slot.users == 0 && slot.state == SlotState::Failed {
            assert!(slot.readers.is_empty(), "no job waits for a block that has failed");
            slot.state = SlotState::Free;
            let known = self.of_block.remove(&slot.block);
            assert_eq!(known, Some(at), "a block and its slot lead to each other");
        }
    }

    /// Called when a slot may have become idle. Returns whether it has and its frame is leaving.
    pub(super) fn note_idle(&mut self, at: usize) -> bool {
        let is_idle = self.slots[at].is_idle();
        self.idle += usize::from(is_idle);
        debug_assert!(self.idle <= self.here(), "an idle slot has memory");
        is_idle && self.is_leaving(at)
    }

    /// Notes a use of a slot, which the clock hand spares once.
    pub(super) fn note_use(&mut self, at: usize) {
        self.slots[at].was_used = true;
    }

    /// The next job needs slots.
    pub(super) fn renew_chances(&mut self) {
        self.chances = SECOND_CHANCES;
    }

    /// Moves the clock hand to the next idle slot, which must exist.
    pub(super) fn step(&mut self) -> Step {
        assert!(self.idle > 0, "some slot is idle");
        loop {
            let at = self.hand;
            self.hand = (at + 1) % self.slots.len();
            if !self.slots[at].is_idle() {
                self.hand = self.next_behind(at) % self.slots.len();
                continue;
            }
            let is_used_by_neighbours = self.shown.index.take_use(self.place(at));
            let slot = &mut self.slots[at];
            let was_used = std::mem::take(&mut slot.was_used) || is_used_by_neighbours;
            let was_used = was_used && slot.state != SlotState::Free;
            if !was_used || self.chances == 0 {
                return Step::Takes(at);
            }
            self.chances -= 1;
            return Step::Spares(at);
        }
    }

    /// The slot behind one, skipping frames that have left.
    fn next_behind(&self, at: usize) -> usize {
        debug_assert!(at < self.slots.len(), "slot {at} is one of them");
        at.checked_sub(self.own).map_or(at + 1, |at| self.own + self.serving.next_behind(at))
    }

    /// Gives an idle slot to a block for a job. Its former block, if any, is gone.
    pub(super) fn give(&mut self, at: usize, block: Block, state: SlotState) {
        let slot = &mut self.slots[at];
        debug_assert!(slot.is_idle(), "only idle slots are given away");
        debug_assert!(
            matches!(state, SlotState::Wanted | SlotState::Filling | SlotState::Clean),
            "slot {at} is about to get its bytes"
        );
        debug_assert!(slot.readers.is_empty(), "no job waits for the block before");
        if slot.state == SlotState::Clean {
            let known = self.of_block.remove(&slot.block);
            assert_eq!(known, Some(at), "a block and its slot lead to each other");
            self.hide(at);
        }
        let slot = &mut self.slots[at];
        (slot.block, slot.state, slot.users, slot.was_used) = (block, state, 1, true);
        let before = self.of_block.insert(block, at);
        assert!(before.is_none(), "block {block} has one slot");
        assert!(self.idle > 0, "idle slots are counted");
        self.idle -= 1;
    }

    /// Makes a job wait until a slot has been read, filled or written.
    pub(super) fn wait_for(&mut self, at: usize, job: usize) {
        debug_assert!(
            !self.has_bytes(at) || self.slots[at].state == SlotState::Writing,
            "slot {at} is there for all to use"
        );
        debug_assert!(!self.slots[at].readers.contains(&job), "a job waits for a block once");
        self.slots[at].readers.push(job);
    }

    /// Changes the state of a slot. Returns the jobs that waited for this.
    pub(super) fn change(&mut self, at: usize, from: SlotState, to: SlotState) -> Vec<usize> {
        let slot = &mut self.slots[at];
        debug_assert_eq!(slot.state, from, "slot {at} of block {} is about to be {to:?}", slot.block);
        let is_step = match from {
            SlotState::Wanted => matches!(to, SlotState::Clean | SlotState::Failed),
            SlotState::Filling => matches!(to, SlotState::Dirty | SlotState::Failed),
            SlotState::Writing => matches!(to, SlotState::Clean | SlotState::Dirty),
            _ => false,
        };
        debug_assert!(is_step, "no I/O turns {from:?} into {to:?}");
        slot.state = to;
        let readers = std::mem::take(&mut slot.readers);
        if from != SlotState::Writing && to != SlotState::Failed {
            self.show(at);
        }
        if from == SlotState::Filling {
            self.on_written(at);
        }
        readers
    }

    /// The block of a slot is being written. Puts begin to wait.
    pub(super) fn begin_write(&mut self, at: usize) {
        assert_eq!(self.slots[at].state, SlotState::Dirty, "slot {at} is written because it is dirty");
        assert!(self.slots[at].users == 0, "no job uses slot {at} when its write begins");
        debug_assert!(self.slots[at].readers.is_empty(), "no job waits for a dirty block");
        self.slots[at].state = SlotState::Writing;
    }

    /// The block of a slot is dirty, with this mark if it is a file's and was clean.
    pub(super) fn dirty(&mut self, at: usize, mark: Option<u32>) {
        let slot = &mut self.slots[at];
        debug_assert!(
            matches!(slot.state, SlotState::Clean | SlotState::Dirty),
            "slot {at} has bytes in {:?}",
            slot.state
        );
        let was_clean = slot.state == SlotState::Clean;
        slot.state = SlotState::Dirty;
        slot.mark = mark.unwrap_or(slot.mark);
        if was_clean {
            self.on_written(at);
        }
    }

    /// Removes the block of a slot that no job uses.
    pub(super) fn forget(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        assert!(
            slot.users == 0 && matches!(slot.state, SlotState::Clean | SlotState::Dirty),
            "a block in use is forgotten"
        );
        slot.state = SlotState::Free;
        let known = self.of_block.remove(&slot.block);
        assert_eq!(known, Some(at), "a block and its slot lead to each other");
        self.hide(at);
    }

    /// Number of pool frames with slots.
    pub(super) fn frames(&self) -> u32 {
        self.serving.count()
    }

    /// Adds a frame of the pool.
    pub(super) fn add_frame(&mut self, frame: FrameId) {
        let (at, each) = (self.serving.add(frame), self.serving.each());
        let first = self.own + at * each;
        if first == self.slots.len() {
            self.slots.extend(std::iter::repeat_with(|| Slot::new(SlotState::Free)).take(each));
        } else {
            let are_away =
                self.slots[first..first + each].iter().all(|slot| slot.state == SlotState::Away && slot.users == 0);
            debug_assert!(are_away, "the slots of the frame that left are not used");
            self.slots[first..first + each].iter_mut().for_each(|slot| slot.state = SlotState::Free);
        }
        self.idle += each;
        debug_assert!(self.idle <= self.here(), "an idle slot has memory");
    }

    /// Makes a frame leave, unless another is leaving or has not been taken. Returns its slots: the idle ones are to be
    /// vacated.
    pub(super) fn begin_leaving(&mut self) -> Range<usize> {
        let leaving = self.serving.begin_leaving();
        leaving.map_or(0..0, |slots| self.own + slots.start..self.own + slots.end)
    }

    /// Takes a frame that has left.
    pub(super) fn take_returned(&mut self) -> Option<FrameId> {
        self.serving.take_returned()
    }

    /// Whether the frame of a slot is leaving.
    pub(super) fn is_leaving(&self, at: usize) -> bool {
        at.checked_sub(self.own).is_some_and(|at| self.serving.is_leaving(at))
    }

    /// Number of slots of the leaving frame, with vacant ones.
    pub(super) fn leaving(&self) -> usize {
        self.serving.leaving()
    }

    /// The next slot of the leaving frame, in turns.
    pub(super) fn next_leaving(&mut self) -> Option<usize> {
        self.serving.next_leaving().map(|at| self.own + at)
    }

    /// Removes an idle slot of a leaving frame.
    pub(super) fn vacate(&mut self, at: usize) {
        assert!(at >= self.own, "the own slots stay");
        let slot = &mut self.slots[at];
        assert!(slot.is_idle() && self.idle > 0, "slot {at} is idle before it goes");
        if slot.state == SlotState::Clean {
            self.of_block.remove(&slot.block);
            self.hide(at);
        }
        let slot = &mut self.slots[at];
        (slot.state, slot.was_used) = (SlotState::Away, false);
        self.idle -= 1;
        self.serving.vacate(at - self.own);
    }
}

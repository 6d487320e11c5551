//! Memory of a home for blocks that its neighbours read from its file. The home copies a posted block into its cache.
//!
//! ```text
//!            neighbour            neighbour             home
//!   FREE ───────────────▶ TAKEN ─────────────▶ POSTED ─────────▶ FREE
//! ```
//!
//! A block has a usual mailbox. Another neighbour that wants the block finds it there, and wakes the home.

use super::{SHOWN_BLOCK_BYTES, long_words, words};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const POSTED: u32 = 2;

/// The state of a mailbox's word. The rest counts how often it was taken.
const STATE: u32 = 3;
const TAKES: u32 = STATE + 1;

/// The mailboxes of one home. By default none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mailboxes {
    /// The number of posted blocks, and whether the home has been woken for them.
    posted: &'static [AtomicU32],
    /// Of each mailbox: its word, the version of its block's page, and the block.
    states: &'static [AtomicU32],
    versions: &'static [AtomicU32],
    blocks: &'static [AtomicU64],
    first_offset_bytes: usize,
}

/// Numbers of 4 bytes before the mailboxes: the count, alone in its cache line.
const HEAD_WORDS: usize = super::ALIGN_BYTES / size_of::<AtomicU32>();

impl Mailboxes {
    pub(super) fn bytes(count: usize) -> usize {
        super::ALIGN_BYTES + count * (size_of::<AtomicU64>() + 2 * size_of::<AtomicU32>())
    }

    /// `count` mailboxes, of which the first is at `first_offset_bytes` of the home's memory.
    pub(super) fn new(address: usize, count: usize, first_offset_bytes: usize) -> Mailboxes {
        let blocks = address + super::ALIGN_BYTES;
        let states = blocks + count * size_of::<AtomicU64>();
        Mailboxes {
            posted: &words(address, HEAD_WORDS)[..2],
            blocks: long_words(blocks, count),
            states: words(states, count),
            versions: words(states + count * size_of::<AtomicU32>(), count),
            first_offset_bytes,
        }
    }

    /// Number of mailboxes.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether there is no mailbox.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Offset of a mailbox in the home's memory.
    pub fn offset_bytes(&self, at: usize) -> usize {
        self.first_offset_bytes + at * SHOWN_BLOCK_BYTES
    }

    /// Takes a free mailbox for a block, the usual one if it is free.
    pub fn take(&self, block: u64) -> Option<usize> {
        let count = self.states.len();
        let is_taken = |at: &usize| {
            let word = self.states[*at].load(Ordering::Relaxed);
            let taken = word.wrapping_add(TAKES) & !STATE | TAKEN;
            word & STATE == FREE
                && self.states[*at].compare_exchange(word, taken, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let found = (0..count).map(|step| (self.usual(block) + step) % count).find(is_taken);
        // The block's bytes change after the word.
        fence(Ordering::Release);
        found
    }

    fn usual(&self, block: u64) -> usize {
        (block % (self.states.len() as u64).max(1)) as usize
    }

    fn state(&self, at: usize) -> u32 {
        self.states[at].load(Ordering::Acquire) & STATE
    }

    fn set(&self, at: usize, state: u32) {
        let word = self.states[at].load(Ordering::Relaxed);
        self.states[at].store(word & !STATE | state, Ordering::Release);
    }

    /// Gives a mailbox back without a block.
    pub fn give_back(&self, at: usize) {
        debug_assert_eq!(self.state(at), TAKEN, "mailbox {at} was taken");
        self.set(at, FREE);
    }

    /// Posts the block read into a taken mailbox, with the version that its page had before. Returns whether the home
    /// is to be woken: half of the mailboxes have blocks.
    pub fn post(&self, at: usize, block: u64, version: u32) -> bool {
        debug_assert_eq!(self.state(at), TAKEN, "mailbox {at} was taken");
        self.blocks[at].store(block, Ordering::Relaxed);
        self.versions[at].store(version, Ordering::Relaxed);
        self.set(at, POSTED);
        let posted = self.posted[0].fetch_add(1, Ordering::Release).wrapping_add(1);
        posted >= (self.states.len() as u32).div_ceil(2) && self.wakes()
    }

    /// Whether nobody has woken the home for the posted blocks.
    fn wakes(&self) -> bool {
        self.posted[1].load(Ordering::Relaxed) == 0 && self.posted[1].swap(1, Ordering::Relaxed) == 0
    }

    /// Passes the mailbox in which a block of this version is posted, if it is the usual one, to `copy`. Returns whether
    /// the block was there all the time, and then whether the home is to be woken.
    pub fn with_posted(&self, block: u64, version: u32, copy: impl FnOnce(usize)) -> Option<bool> {
        let at = self.usual(block);
        let word = self.states.get(at)?.load(Ordering::Acquire);
        let is_it = word & STATE == POSTED
            && self.blocks[at].load(Ordering::Relaxed) == block
            && self.versions[at].load(Ordering::Relaxed) == version;
        if !is_it {
            return None;
        }
        copy(at);
        fence(Ordering::Acquire);
        let taken = self.states[at].load(Ordering::Relaxed) & !STATE;
        // A free mailbox keeps its bytes.
        (taken == word & !STATE).then(|| self.wakes())
    }

    /// Whether blocks are posted.
    pub fn has_posted(&self) -> bool {
        self.posted.first().is_some_and(|posted| posted.load(Ordering::Acquire) > 0)
    }

    /// Passes each posted block to `take`, with its mailbox and its version, and frees the mailbox. For the home only.
    pub fn collect(&self, mut take: impl FnMut(usize, u64, u32)) {
        self.posted[1].store(0, Ordering::Relaxed);
        let mut count = 0;
        for at in 0..self.states.len() {
            if self.state(at) == POSTED {
                take(at, self.blocks[at].load(Ordering::Relaxed), self.versions[at].load(Ordering::Relaxed));
                self.set(at, FREE);
                count += 1;
            }
        }
        // A block may be posted before it is counted, so the count may be below zero for a moment.
        if count > 0 {
            self.posted[0].fetch_sub(count, Ordering::Relaxed);
        }
    }
}

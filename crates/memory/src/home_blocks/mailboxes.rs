//! Memory of a home for blocks that its neighbours read from its file. The home copies a posted block into its cache.
//!
//! ```text
//!            neighbour            neighbour             home
//!   FREE ───────────────▶ TAKEN ─────────────▶ POSTED ─────────▶ FREE
//! ```

use super::{SHOWN_BLOCK_BYTES, long_words, words};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const POSTED: u32 = 2;

/// The mailboxes of one home. By default none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mailboxes {
    /// The number of posted blocks.
    posted: &'static [AtomicU32],
    /// Of each mailbox: its state, the version of its block's page, and the block.
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
            posted: &words(address, HEAD_WORDS)[..1],
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

    /// Takes a free mailbox, the first from `from` on.
    pub fn take(&self, from: usize) -> Option<usize> {
        let count = self.states.len();
        let is_taken = |at: &usize| {
            let state = &self.states[*at];
            state.load(Ordering::Relaxed) == FREE
                && state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        (0..count).map(|step| (from + step) % count).find(is_taken)
    }

    /// Gives a mailbox back without a block.
    pub fn give_back(&self, at: usize) {
        debug_assert_eq!(self.states[at].load(Ordering::Relaxed), TAKEN, "mailbox {at} was taken");
        self.states[at].store(FREE, Ordering::Release);
    }

    /// Posts the block read into a taken mailbox, with the version that its page had before. Returns whether the home
    /// is to be woken: half of the mailboxes have blocks.
    pub fn post(&self, at: usize, block: u64, version: u32) -> bool {
        debug_assert_eq!(self.states[at].load(Ordering::Relaxed), TAKEN, "mailbox {at} was taken");
        self.blocks[at].store(block, Ordering::Relaxed);
        self.versions[at].store(version, Ordering::Relaxed);
        self.states[at].store(POSTED, Ordering::Release);
        self.posted[0].fetch_add(1, Ordering::Release) + 1 == (self.states.len() as u32).div_ceil(2)
    }

    /// Whether blocks are posted.
    pub fn has_posted(&self) -> bool {
        self.posted.first().is_some_and(|posted| posted.load(Ordering::Acquire) > 0)
    }

    /// Passes each posted block to `take`, with its mailbox and its version, and frees the mailbox. For the home only.
    pub fn collect(&self, mut take: impl FnMut(usize, u64, u32)) {
        let mut count = 0;
        for (at, state) in self.states.iter().enumerate() {
            if state.load(Ordering::Acquire) == POSTED {
                take(at, self.blocks[at].load(Ordering::Relaxed), self.versions[at].load(Ordering::Relaxed));
                state.store(FREE, Ordering::Release);
                count += 1;
            }
        }
        // A block may be posted before it is counted, so the count may be below zero for a moment.
        if count > 0 {
            self.posted[0].fetch_sub(count, Ordering::Relaxed);
        }
    }
}

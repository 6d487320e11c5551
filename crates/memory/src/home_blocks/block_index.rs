//! The blocks in a home's memory, for its neighbours: a hash table with chains. The home changes it, one thread at a
//! time; neighbours look blocks up meanwhile, without a lock.
//!
//! An entry's word has its sequence number and the next entry of its chain. The number is odd while the entry is in a
//! chain, and grows with each change, so that a reader notices one. A new entry is the first of its chain. A block that
//! was in a chain before a look-up began and stays is therefore found: whoever stands on an entry that is in its chain
//! sees all entries behind it.

use super::{long_words, words};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Maximum entries that a look-up passes, before it gives up. Chains have one or two.
const STEPS_MAX: usize = 64;

/// Marks a block as used since the home last looked.
const USED: u64 = 1 << 63;

/// The blocks of one home, by the place in its memory. By default none.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockIndex {
    /// The first entry of each chain, with 1 added; 0 without one. A power of two of them.
    heads: &'static [AtomicU32],
    /// Of each place: its word, and its block.
    words: &'static [AtomicU64],
    blocks: &'static [AtomicU64],
}

/// A block that was found in a home's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownBlock {
    /// Its place, in blocks from the start of the home's memory.
    pub place: usize,
    sequence: u32,
}

/// The result of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The block is in memory.
    Here(ShownBlock),
    /// The block is not in memory.
    Nowhere,
    /// The table changed too often.
    Unknown,
}

impl BlockIndex {
    pub(super) fn bytes(places: usize) -> usize {
        places * 2 * size_of::<AtomicU64>() + heads(places) * size_of::<AtomicU32>()
    }

    pub(super) fn new(address: usize, places: usize) -> BlockIndex {
        let each = places * size_of::<AtomicU64>();
        BlockIndex {
            words: long_words(address, places),
            blocks: long_words(address + each, places),
            heads: words(address + 2 * each, heads(places)),
        }
    }

    fn head(&self, block: u64) -> &AtomicU32 {
        let bits = self.heads.len().trailing_zeros();
        // Fibonacci hashing: the upper bits depend on all bits of the number.
        let hash = block.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.heads[hash.checked_shr(64 - bits).unwrap_or(0) as usize]
    }

    /// Shows the block at a place, whose bytes are there. For the home only.
    pub fn show(&self, place: usize, block: u64) {
        let Some(word) = self.words.get(place) else { return };
        let (sequence, _) = parts(word.load(Ordering::Relaxed));
        debug_assert!(sequence % 2 == 0, "place {place} shows no block yet");
        self.blocks[place].store(block, Ordering::Relaxed);
        let head = self.head(block);
        // The block and its bytes are there before the sequence number says so.
        word.store(joined(sequence.wrapping_add(1), head.load(Ordering::Relaxed)), Ordering::Release);
        head.store(place as u32 + 1, Ordering::Release);
    }

    /// Hides the block at a place, if it is shown, before the place gets other bytes. For the home only.
    pub fn hide(&self, place: usize) {
        let Some(word) = self.words.get(place) else { return };
        let (sequence, next) = parts(word.load(Ordering::Relaxed));
        if sequence % 2 == 0 {
            return;
        }
        word.store(joined(sequence.wrapping_add(1), next), Ordering::Relaxed);
        // The bytes change after the sequence number.
        fence(Ordering::Release);
        let head = self.head(self.block(place));
        let mut at = head.load(Ordering::Relaxed);
        if at == place as u32 + 1 {
            return head.store(next, Ordering::Release);
        }
        while at != 0 {
            let before = &self.words[at as usize - 1];
            let (sequence, behind) = parts(before.load(Ordering::Relaxed));
            if behind == place as u32 + 1 {
                return before.store(joined(sequence, next), Ordering::Release);
            }
            at = behind;
        }
        debug_assert!(false, "the block at place {place} is in its chain");
    }

    fn block(&self, place: usize) -> u64 {
        self.blocks[place].load(Ordering::Relaxed) & !USED
    }

    /// Looks for a block.
    pub fn find(&self, block: u64) -> Found {
        if self.heads.is_empty() {
            return Found::Unknown;
        }
        let head = self.head(block);
        let mut at = head.load(Ordering::Acquire);
        for _ in 0..STEPS_MAX {
            let Some(place) = (at as usize).checked_sub(1) else { return Found::Nowhere };
            let (sequence, next) = parts(self.words[place].load(Ordering::Acquire));
            let here = self.block(place);
            fence(Ordering::Acquire);
            let is_same = parts(self.words[place].load(Ordering::Relaxed)).0 == sequence;
            if sequence % 2 == 0 || !is_same || !std::ptr::eq(self.head(here), head) {
                // It has left this chain, so what is behind it may be another one.
                at = head.load(Ordering::Acquire);
            } else if here == block {
                return Found::Here(ShownBlock { place, sequence });
            } else {
                at = next;
            }
        }
        Found::Unknown
    }

    /// Whether a block is still where it was found. Called after its bytes were read, which counts if it is.
    pub fn is_still(&self, shown: ShownBlock) -> bool {
        fence(Ordering::Acquire);
        parts(self.words[shown.place].load(Ordering::Relaxed)).0 == shown.sequence
    }

    /// Notes a use of the block at a place.
    pub fn note_use(&self, shown: ShownBlock) {
        let block = &self.blocks[shown.place];
        if block.load(Ordering::Relaxed) & USED == 0 {
            block.fetch_or(USED, Ordering::Relaxed);
        }
    }

    /// Whether the block at a place was used since the last call. For the home only.
    pub fn take_use(&self, place: usize) -> bool {
        let Some(block) = self.blocks.get(place) else { return false };
        block.load(Ordering::Relaxed) & USED != 0 && block.fetch_and(!USED, Ordering::Relaxed) & USED != 0
    }
}

fn heads(places: usize) -> usize {
    if places == 0 { 0 } else { places.next_power_of_two().div_ceil(2) }
}

/// The sequence number and the next entry of a word.
fn parts(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

fn joined(sequence: u32, next: u32) -> u64 {
    u64::from(sequence) << 32 | u64::from(next)
}

//! What a home shows its neighbours, so that they read its file without asking it: the pages that no rank holds
//! ([`PlainPages`]), the blocks in its memory ([`BlockIndex`]), memory for blocks that they read ([`Mailboxes`]), and the
//! file ([`FileOffer`]).
//!
//! All of it is in shared memory. The home's engine changes it, under its lock; neighbours read, and post blocks.
//!
//! ```text
//! neighbour: version ─▶ is the page plain? ─▶ find the block ─▶ copy it ─▶ is it still there?
//!                                                        └────▶ read the file into a mailbox ─▶ post it with the version
//! home:      take posted blocks of plain pages whose version is the same
//! ```
//!
//! A neighbour's get that begins after a put has returned finds the put's bytes: the put has marked the page as held, or
//! its block is found, or the block has been written to the file.

mod block_index;
mod file_offer;
mod mailboxes;
mod plain_pages;
#[cfg(test)]
mod tests;

pub use block_index::{BlockIndex, Found, ShownBlock};
pub use file_offer::FileOffer;
pub use mailboxes::Mailboxes;
pub use plain_pages::PlainPages;

use super::address_space::{Shape, all_frames, block_frames};
use super::dirty_blocks::DIRTY_BLOCK_BYTES;
use std::sync::atomic::{AtomicU32, AtomicU64};
use vgasnet_conduit::Region;

/// Size of a block in bytes, equal to the storage's.
pub const SHOWN_BLOCK_BYTES: usize = DIRTY_BLOCK_BYTES;

/// Alignment of each part, so that its cache lines contain nothing else.
const ALIGN_BYTES: usize = 64;

/// One of this many of a home's own blocks is a mailbox.
const MAILBOXES_PART: usize = 8;

/// Maximum number of mailboxes. Beyond as many blocks at a time, gets are shipped.
const MAILBOXES_MAX: usize = 128;

/// Number of mailboxes among `blocks` blocks besides the pool; 0 in tiny pools, whose homes show nothing.
pub fn mailboxes(blocks: usize) -> usize {
    (blocks / MAILBOXES_PART).min(MAILBOXES_MAX)
}

/// What one home shows. By default nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct HomeBlocks {
    /// The pages that neighbours may read from the file.
    pub pages: PlainPages,
    /// The blocks in the home's memory.
    pub index: BlockIndex,
    /// Memory for blocks that neighbours read.
    pub mailboxes: Mailboxes,
    /// The file.
    pub file: FileOffer,
}

/// The sizes of the parts, in the order of memory.
fn parts(shape: Shape, page_bytes: usize) -> [usize; 4] {
    let blocks = all_frames(shape.frames, page_bytes) as usize * (page_bytes / SHOWN_BLOCK_BYTES);
    let boxes = mailboxes(own_blocks(shape.frames, page_bytes));
    [PlainPages::bytes(shape.pages), BlockIndex::bytes(blocks), Mailboxes::bytes(boxes), FileOffer::bytes()]
        .map(|bytes| bytes.next_multiple_of(ALIGN_BYTES))
}

/// Number of blocks besides a pool of so many frames, mailboxes included.
fn own_blocks(frames: u32, page_bytes: usize) -> usize {
    block_frames(frames, page_bytes) as usize * (page_bytes / SHOWN_BLOCK_BYTES)
}

impl HomeBlocks {
    /// Bytes of shared memory of a home.
    pub(super) fn bytes(shape: Shape, page_bytes: usize) -> usize {
        parts(shape, page_bytes).iter().sum()
    }

    /// What a rank of this shape shows in `region`, initially zero. The mailboxes are the last blocks of its memory.
    pub(super) fn new(region: Region, shape: Shape, page_bytes: usize) -> HomeBlocks {
        let [pages, index, boxes, _] = parts(shape, page_bytes);
        let at = |start: usize| region.address + start;
        let each = page_bytes / SHOWN_BLOCK_BYTES;
        let blocks = all_frames(shape.frames, page_bytes) as usize * each;
        let count = mailboxes(own_blocks(shape.frames, page_bytes));
        HomeBlocks {
            pages: PlainPages::new(at(0), shape.pages),
            index: BlockIndex::new(at(pages), blocks),
            mailboxes: Mailboxes::new(at(pages + index), count, (blocks - count) * SHOWN_BLOCK_BYTES),
            file: FileOffer::new(at(pages + index + boxes)),
        }
    }
}

/// `count` numbers of 4 bytes at an address in shared memory.
fn words(address: usize, count: usize) -> &'static [AtomicU32] {
    assert!(address % size_of::<AtomicU32>() == 0, "numbers are aligned");
    // SAFETY: the region stays mapped until the process ends, is initially zero, and is only used as these atomics.
    unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(address), count) }
}

/// The same, of 8 bytes.
fn long_words(address: usize, count: usize) -> &'static [AtomicU64] {
    assert!(address % size_of::<AtomicU64>() == 0, "numbers are aligned");
    // SAFETY: as in `words`.
    unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(address), count) }
}

//! Copies of blocks outside the engine's lock: for small operations in blocks, and over pages that were read.

use crate::request::Part;
use vgasnet_protocol::coherence::Cause;
use vgasnet_storage::BLOCK_BYTES;

/// A job with all of its blocks.
#[derive(Debug)]
pub struct BlockCopies {
    /// The job, for [`crate::Engine::end_on_blocks`] after the copies.
    pub job: usize,
    /// The part.
    pub part: Part,
    /// Its bytes, block by block.
    pub places: Vec<BlockPlace>,
    /// Why the whole job fails: a block of a file could not be read.
    pub failed: Option<Cause>,
}

/// Bytes of a part in one block.
#[derive(Clone, Copy, Debug)]
pub struct BlockPlace {
    /// Their address.
    pub memory: *mut u8,
    /// Their offset in the part's piece.
    pub start_bytes: usize,
    /// Their number.
    pub len_bytes: usize,
}

// SAFETY: the block cache's memory is mapped until the process ends and belongs to the copies until their job has
// ended, in any thread.
unsafe impl Send for BlockPlace {}

/// Blocks to copy: source and destination.
#[derive(Debug)]
pub struct OverlaidBlocks(Vec<(*mut u8, *mut u8)>);

// SAFETY: the memory is mapped until the process ends and belongs to the copies until the engine is told of their end,
// in any thread.
unsafe impl Send for OverlaidBlocks {}

impl OverlaidBlocks {
    /// Blocks with their sources and destinations.
    ///
    /// # Safety
    /// All are valid for a block until the engine is told of the end of the copies: the sources for reads, unchanged,
    /// and the destinations for writes. They do not overlap.
    pub(crate) unsafe fn new(blocks: impl Iterator<Item = (*mut u8, *mut u8)>) -> OverlaidBlocks {
        OverlaidBlocks(blocks.collect())
    }

    /// Copies the blocks.
    pub fn run(&self) {
        for (from, to) in &self.0 {
            // SAFETY: both are valid for a block, by the contract of `OverlaidBlocks::new`.
            unsafe { from.copy_to_nonoverlapping(*to, BLOCK_BYTES) };
        }
    }
}

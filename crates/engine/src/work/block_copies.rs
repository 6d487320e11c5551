//! Copies of blocks outside the engine's lock: for small operations in blocks, and over pages that were read.

use crate::request::Part;
use std::fmt;
use std::sync::Arc;
use vgasnet_memory::BlockCopier;
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
    /// Copies the blocks into the segment, for loads.
    pub copier: Option<Copier>,
    /// Why the whole job fails: a block of a file could not be read.
    pub failed: Option<Cause>,
}

impl BlockCopies {
    /// Copies the blocks into the segment, if that is the job's purpose. Returns whether all are there.
    pub fn copy_into_segment(&self) -> bool {
        let Some(Copier(copier)) = &self.copier else { return false };
        let piece = &self.part.piece;
        let first = (piece.offset_bytes / BLOCK_BYTES) as u32;
        debug_assert_eq!((piece.offset_bytes | piece.len_bytes) % BLOCK_BYTES, 0, "{piece:?} is of whole blocks");
        // SAFETY: the blocks belong to the job until the job has ended.
        (first..).zip(&self.places).all(|(block, place)| unsafe { copier.copy(piece.page.index, block, place.memory) })
    }
}

/// The segment's copier of blocks.
#[derive(Clone)]
pub struct Copier(pub(crate) Arc<dyn BlockCopier>);

impl fmt::Debug for Copier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Copier")
    }
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

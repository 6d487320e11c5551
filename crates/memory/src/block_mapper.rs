//! Maps blocks of a home's block cache in the segment: loads and stores reach parts of pages that no rank holds.

use super::Segment;
use super::block_places::{BlockPlaces, Opens};
use super::read_copies::{BlockCopier, ReadCopies};
use super::reservation::cover;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use vgasnet_conduit::map_again;
use vgasnet_protocol::coherence::Access;

/// Size of a mapped block in bytes, equal to a block of the backing file.
pub const MAPPED_BLOCK_BYTES: usize = 4096;

/// Maps blocks of a rank's block cache in its segment. Calls come one at a time.
pub trait BlockMapper: Send {
    /// Maps the block at `offset_bytes` of the pool's memory as block `block` of page `index` with this access,
    /// replacing any present mapping.
    ///
    /// # Errors
    /// The system's errno value, if it has no room for another mapping. Nothing has changed.
    fn map(&self, index: u32, block: u32, offset_bytes: usize, access: Access) -> Result<(), i32>;

    /// Unmaps a block. On return no thread loads from it or stores to it any more.
    ///
    /// # Errors
    /// As [`BlockMapper::map`].
    fn unmap(&self, index: u32, block: u32) -> Result<(), i32>;

    /// Unmaps all blocks of a page.
    ///
    /// # Errors
    /// As [`BlockMapper::map`].
    fn unmap_page(&self, index: u32) -> Result<(), i32>;

    /// Copies blocks instead, for loads that have missed them; `None` if they are always mapped.
    fn copier(&self) -> Option<Arc<dyn BlockCopier>> {
        None
    }
}

/// The block mapper of a real rank: each block is mapped afresh, and populated by one minor fault.
pub struct RemapBlocks {
    segment: Segment,
    page_bytes: usize,
    /// The pool's spare mappings for reads and for writes, outside the segment.
    spare: [usize; 2],
    copies: CopiesIfAny,
    places: RefCell<BlockPlaces>,
}

/// The copies of a segment, shared by its mappers, once there are any.
pub(super) type CopiesIfAny = Arc<OnceLock<Arc<ReadCopies>>>;

impl RemapBlocks {
    /// A mapper for blocks in a pool with these spare mappings. `None` if the system's pages are larger than a block.
    pub(super) fn new(
        segment: Segment,
        page_bytes: usize,
        spare: [usize; 2],
        copies: CopiesIfAny,
    ) -> Option<RemapBlocks> {
        let is_possible = vgasnet_conduit::page_bytes() == MAPPED_BLOCK_BYTES;
        is_possible.then(|| RemapBlocks { segment, page_bytes, spare, copies, places: RefCell::default() })
    }

    /// Copies blocks for loads from now on, at most `most` at a time, if the system offers it. Nothing is mapped yet. At
    /// most `covered_max` pages that are not mapped are without copies and take a mapping each. Returns whether it does.
    pub fn use_copies(&self, most: usize, covered_max: u32) -> bool {
        let copies = ReadCopies::new(self.segment, self.page_bytes, most, covered_max);
        // A rank asks once.
        copies.is_some_and(|copies| self.copies.set(Arc::new(copies)).is_ok())
    }

    /// The copies, if there are any.
    pub fn copies(&self) -> Option<Arc<ReadCopies>> {
        self.copies.get().cloned()
    }

    fn number(&self, index: u32, block: u32) -> u64 {
        self.blocks_of(index).start + u64::from(block)
    }

    fn blocks_of(&self, index: u32) -> Range<u64> {
        let each = (self.page_bytes / MAPPED_BLOCK_BYTES) as u64;
        u64::from(index) * each..u64::from(index + 1) * each
    }

    fn address(&self, index: u32, block: u32) -> usize {
        self.segment.base + index as usize * self.page_bytes + block as usize * MAPPED_BLOCK_BYTES
    }
}

impl BlockMapper for RemapBlocks {
    fn map(&self, index: u32, block: u32, offset_bytes: usize, access: Access) -> Result<(), i32> {
        let from = self.spare[usize::from(access == Access::Write)] + offset_bytes;
        let at = self.address(index, block);
        // SAFETY: the block lies in the segment's range, where only this mapper maps while no rank holds the page; the
        // spare mapping covers the whole pool.
        let mapped = unsafe { map_again(from, MAPPED_BLOCK_BYTES, at) };
        mapped.map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL))?;
        // SAFETY: the block was mapped just now, and calls come one at a time. Any byte will do: the kernel populates
        // the page table entry.
        unsafe { std::ptr::with_exposed_provenance::<u8>(at).read_volatile() };
        if self.copies.get().is_some() {
            self.places.borrow_mut().on_mapped(self.number(index, block));
        }
        Ok(())
    }

    fn unmap(&self, index: u32, block: u32) -> Result<(), i32> {
        cover(self.address(index, block), MAPPED_BLOCK_BYTES)?;
        let Some(copies) = self.copies.get().filter(|copies| !copies.is_covered(index)) else { return Ok(()) };
        match self.places.borrow_mut().on_unmapped(self.number(index, block), self.blocks_of(index)) {
            Opens::Nothing => {}
            // Where the system refuses, the blocks are mapped each time.
            Opens::Blocks(blocks) => drop(copies.open_blocks(blocks)),
            Opens::Page => copies.open_or_leave(index),
        }
        Ok(())
    }

    fn unmap_page(&self, index: u32) -> Result<(), i32> {
        cover(self.address(index, 0), self.page_bytes)?;
        if let Some(copies) = self.copies.get() {
            self.places.borrow_mut().forget(self.blocks_of(index));
            copies.on_blocks_covered(index);
        }
        Ok(())
    }

    fn copier(&self) -> Option<Arc<dyn BlockCopier>> {
        self.copies().map(|copies| copies as Arc<dyn BlockCopier>)
    }
}

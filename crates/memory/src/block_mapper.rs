//! Maps blocks of a home's block cache in the segment: loads and stores reach parts of pages that no rank holds.

use super::Segment;
use super::reservation::cover;
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
}

/// The block mapper of a real rank: each block is mapped afresh, and populated by one minor fault.
pub struct RemapBlocks {
    segment: Segment,
    page_bytes: usize,
    /// The pool's spare mappings for reads and for writes, outside the segment.
    spare: [usize; 2],
}

impl RemapBlocks {
    /// A mapper for blocks in a pool with these spare mappings. `None` if the system's pages are larger than a block.
    pub(super) fn new(segment: Segment, page_bytes: usize, spare: [usize; 2]) -> Option<RemapBlocks> {
        (vgasnet_conduit::page_bytes() == MAPPED_BLOCK_BYTES).then_some(RemapBlocks { segment, page_bytes, spare })
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
        Ok(())
    }

    fn unmap(&self, index: u32, block: u32) -> Result<(), i32> {
        cover(self.address(index, block), MAPPED_BLOCK_BYTES)
    }

    fn unmap_page(&self, index: u32) -> Result<(), i32> {
        cover(self.address(index, 0), self.page_bytes)
    }
}

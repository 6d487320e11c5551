//! Blocks of a home's block cache, mapped where they lie in the segment: loads and stores reach a part of a page that no rank holds.

use super::Segment;
use super::page_mapper::cover;
use vgasnet_conduit::map_again;
use vgasnet_protocol::coherence::Access;

/// What a mapped block has, in bytes: as many as a block of the backing file.
pub const MAPPED_BLOCK_BYTES: usize = 4096;

/// Maps blocks of a rank's block cache in its segment. Calls come one at a time.
pub trait BlockMapper: Send {
    /// Maps the block that lies at `offset_bytes` of the pool's memory as block `block` of page `index` with these rights, in place
    /// of what is there.
    ///
    /// # Errors
    /// The system's error number, if it has no room for another mapping. All is as it was.
    fn map(&self, index: u32, block: u32, offset_bytes: usize, access: Access) -> Result<(), i32>;

    /// Unmaps a block. From now on nobody loads from it or stores to it.
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

/// The block mapper of a real rank: each block is mapped anew, and is filled in by one minor fault.
pub struct RemapBlocks {
    segment: Segment,
    page_bytes: usize,
    /// The pool's mappings to read and to write, outside the segment.
    spare: [usize; 2],
}

impl RemapBlocks {
    /// A mapper for blocks in a pool with these spare mappings. `None`: the system maps larger pieces only.
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
        // SAFETY: the block lies in the segment's range, where this mapper alone maps while no rank holds the page; the spare mapping
        // has the whole pool.
        let mapped = unsafe { map_again(from, MAPPED_BLOCK_BYTES, at) };
        mapped.map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL))?;
        // SAFETY: the block was mapped just now, and calls come one at a time. The byte does not matter: the kernel fills in the
        // page table's entry.
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

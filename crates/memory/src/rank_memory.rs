//! The memory of one rank mapped here, and its parts.

use super::{DirtyBlocks, HomeBlocks, PageTable, Pool};
use std::sync::atomic::AtomicU64;
use vgasnet_conduit::Region;

/// The frames and the page table of a rank with its memory mapped here.
#[derive(Clone, Copy, Debug)]
pub struct RankMemory {
    /// Its page table.
    pub table: PageTable,
    /// Its frames.
    pub pool: Pool,
    /// Its part of the host's directory.
    pub hints: Region,
    /// The blocks of its frames that backing files may lack.
    pub blocks: DirtyBlocks,
    /// Meeting point of ranks that share memory; the first rank's is in use.
    pub meeting: Region,
    /// The shared pointers of files in whose teams it is the first rank: [`FILE_POINTERS`] numbers of 8 bytes.
    pub file_pointers: Region,
    /// What it shows its neighbours of its file.
    pub shown: HomeBlocks,
}

impl RankMemory {
    /// The shared pointer of a file.
    ///
    /// # Panics
    /// If `place` is out of range.
    pub fn file_pointer(&self, place: u32) -> &'static AtomicU64 {
        assert!(place < FILE_POINTERS, "a file has a place below {FILE_POINTERS}");
        let address = self.file_pointers.address + place as usize * size_of::<AtomicU64>();
        // SAFETY: the region is mapped until the process ends, its numbers are aligned, and all ranks use them as
        // atomic ones.
        unsafe { &*std::ptr::with_exposed_provenance(address) }
    }
}

/// Maximum number of open files of a rank.
pub const FILE_POINTERS: u32 = 4096;

pub(super) const FILE_POINTER_BYTES: usize = FILE_POINTERS as usize * size_of::<AtomicU64>();

/// Bytes of [`RankMemory::meeting`], in cache lines of its own.
pub const MEETING_BYTES: usize = 6 * CACHE_LINE_BYTES;

const CACHE_LINE_BYTES: usize = 64;

//! Numbers the pages of a home: those of its backing file, and of the files on which it does I/O.

/// A page of a home: the slot of its file in the storage and its index in the file. Slot 0 is the backing file.
/// Consecutive values are consecutive pages of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct HomePage(u64);

/// Bits of the index in the file.
const INDEX_BITS: u32 = 32;

impl HomePage {
    /// A page in the backing file.
    pub(super) const fn of_segment(index: u32) -> HomePage {
        HomePage(index as u64)
    }

    pub(super) const fn of_file(slot: u32, index: u32) -> HomePage {
        HomePage((slot as u64) << INDEX_BITS | index as u64)
    }

    /// Slot of the file in the storage.
    pub(super) const fn slot(self) -> u32 {
        (self.0 >> INDEX_BITS) as u32
    }

    /// Position in the file, in pages.
    pub(super) const fn index(self) -> u32 {
        self.0 as u32
    }

    pub(super) const fn is_of_segment(self) -> bool {
        self.slot() == 0
    }

    /// The page this many pages further on.
    pub(super) const fn behind(self, pages: u32) -> HomePage {
        debug_assert!(pages <= u32::MAX - self.index(), "the page is of the same file");
        HomePage(self.0 + pages as u64)
    }

    /// The first block of the page, with 2^`shift` blocks per page. Blocks of a file are numbered in file order.
    pub(super) const fn first_block(self, shift: u32) -> u64 {
        self.0 << shift
    }

    /// The page of a block.
    pub(super) const fn of_block(block: u64, shift: u32) -> HomePage {
        HomePage(block >> shift)
    }
}

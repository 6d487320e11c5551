//! The names of spaces, pages and frames.

use crate::{Rank, layout_as_in_memory};
use core::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Identifies a range of pages: without the tag bit the segment of the rank with this number, with it a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable)]
#[repr(transparent)]
pub struct Space(u32);

impl Space {
    /// The bit marking files.
    const FILE: u32 = 1 << 31;

    /// The segment of a rank.
    #[inline]
    pub const fn of_segment(rank: Rank) -> Space {
        Space(rank.0)
    }

    /// The file numbered `number`, below 2^31.
    pub const fn of_file(number: u32) -> Space {
        assert!(number & Space::FILE == 0, "files are numbered up to 2^31");
        Space(number | Space::FILE)
    }

    /// The rank of a segment; `None` for a file.
    #[inline]
    pub const fn segment(self) -> Option<Rank> {
        if self.0 & Space::FILE == 0 { Some(Rank(self.0)) } else { None }
    }

    /// The first and the last page of any space.
    pub const fn all_pages(self) -> core::ops::RangeInclusive<PageId> {
        PageId { space: self, index: 0 }..=PageId { space: self, index: u32::MAX }
    }

    /// The number in messages and tables.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.segment() {
            Some(rank) => write!(f, "{rank}"),
            None => write!(f, "file{}", self.0 & !Space::FILE),
        }
    }
}

/// Identifies a page of the job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct PageId {
    /// The segment or file it belongs to.
    pub space: Space,
    /// Its position there, in pages from the start.
    pub index: u32,
}

impl PageId {
    /// A page of a rank's segment.
    #[inline]
    pub const fn of_segment(rank: Rank, index: u32) -> PageId {
        PageId { space: Space::of_segment(rank), index }
    }
}

layout_as_in_memory!(Space, PageId, FrameId);

impl fmt::Debug for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{:?}.{}", self.space, self.index)
    }
}

/// A frame of some rank's pool, in frames from the pool's start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable)]
#[repr(transparent)]
pub struct FrameId(pub u32);

impl fmt::Debug for FrameId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "f{}", self.0)
    }
}

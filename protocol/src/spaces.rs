//! Spaces: ranges of pages. Each rank's segment is one, and each shared file will be.

use crate::Rank;
use crate::coherence::PageId;
use alloc::sync::Arc;
use core::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Names a range of pages: without the tag bit the segment of the rank of that number, with it a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable)]
#[repr(transparent)]
pub struct Space(u32);

crate::layout_as_in_memory!(Space);

impl Space {
    /// The bit that tells files from segments.
    const FILE: u32 = 1 << 31;

    /// The segment of a rank.
    #[inline]
    pub const fn of_segment(rank: Rank) -> Space {
        Space(rank.0)
    }

    /// The file of this number, which is less than 2^31.
    pub const fn of_file(number: u32) -> Space {
        assert!(number & Space::FILE == 0, "files are numbered up to 2^31");
        Space(number | Space::FILE)
    }

    /// The rank whose segment it is; `None` for a file.
    #[inline]
    pub const fn segment(self) -> Option<Rank> {
        if self.0 & Space::FILE == 0 { Some(Rank(self.0)) } else { None }
    }

    /// The number as it is in messages and tables.
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

/// The job's spaces: how many pages each has, and which rank is the home of each page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spaces {
    /// Pages of each rank's segment.
    segments: Arc<[u32]>,
}

impl Spaces {
    /// The segments of ranks, with so many pages each, and no file.
    pub fn new(pages: impl IntoIterator<Item = u32>) -> Spaces {
        Spaces { segments: pages.into_iter().collect() }
    }

    /// How many pages a space has; 0 if there is no such space.
    pub fn pages(&self, space: Space) -> u32 {
        space.segment().and_then(|rank| self.segments.get(rank.index())).copied().unwrap_or_default()
    }

    /// Whether the page exists.
    pub fn has(&self, page: PageId) -> bool {
        page.index < self.pages(page.space)
    }

    /// The rank that has the page's directory entry and does its I/O.
    ///
    /// # Panics
    /// There is no such space.
    #[inline]
    pub fn home(&self, page: PageId) -> Rank {
        page.space.segment().expect("only segments have pages")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn segments_are_named_by_their_ranks_and_files_by_a_bit() {
        let (segment, file) = (Space::of_segment(Rank(3)), Space::of_file(3));
        assert_eq!((segment.segment(), segment.number()), (Some(Rank(3)), 3));
        assert_eq!((file.segment(), file.number()), (None, 3 | 1 << 31));
        let names = [segment, file].map(|space| format!("{:?}", PageId { space, index: 4 }));
        assert_eq!(names, ["p3.4", "pfile3.4"]);
    }

    #[test]
    fn the_table_knows_sizes_and_homes() {
        let spaces = Spaces::new([2, 0, 5]);
        let page = |rank, index| PageId::of_segment(Rank(rank), index);
        assert!(
            spaces.has(page(0, 1)) && !spaces.has(page(0, 2)) && !spaces.has(page(1, 0)) && !spaces.has(page(3, 0))
        );
        assert_eq!(spaces.home(page(2, 4)), Rank(2));
        assert_eq!(spaces.pages(Space::of_file(0)), 0);
    }
}

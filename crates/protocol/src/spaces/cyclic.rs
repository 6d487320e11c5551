//! Cyclic homes of segments' pages: each rank is the home of some pages of every segment.

use crate::Rank;
use crate::page_id::{PageId, Space};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Segments in stripes assigned round robin to all ranks; a segment continues where the previous rank's ends. A home
/// stores its stripes consecutively in its backing file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Cyclic {
    /// Pages of a stripe, at least one. The last stripe of a segment may be shorter.
    stripe_pages: u32,
    /// The number of each segment's first stripe among all, followed by the total.
    first: Arc<[u64]>,
}

impl Cyclic {
    /// Segments of these numbers of pages.
    pub(super) fn new(pages: &[u32], stripe_pages: u32) -> Cyclic {
        assert!(stripe_pages > 0, "a stripe has pages");
        let mut first = Vec::with_capacity(pages.len() + 1);
        let mut stripes = 0;
        first.push(0);
        for pages in pages {
            stripes += u64::from(pages.div_ceil(stripe_pages));
            first.push(stripes);
        }
        debug_assert!(first.is_sorted(), "a segment continues where the one before ends");
        Cyclic { stripe_pages, first: first.into() }
    }

    fn ranks(&self) -> u64 {
        self.first.len() as u64 - 1
    }

    fn stripe(&self, segment: Rank, index: u32) -> u64 {
        self.first[segment.index()] + u64::from(index / self.stripe_pages)
    }

    /// The home of a page of a segment.
    pub(super) fn home(&self, segment: Rank, index: u32) -> Rank {
        Rank((self.stripe(segment, index) % self.ranks()) as u32)
    }

    /// The position of a page in the backing file of its home, in pages; [`Cyclic::places`] is at most 2^32.
    pub(super) fn place(&self, segment: Rank, index: u32) -> u32 {
        debug_assert!(self.places() <= 1 << 32, "places are numbered in 32 bits");
        (self.stripe(segment, index) / self.ranks()) as u32 * self.stripe_pages + index % self.stripe_pages
    }

    /// The page at a position of a home's backing file.
    pub(super) fn page(&self, home: Rank, place: u32) -> PageId {
        let stripe = u64::from(place / self.stripe_pages) * self.ranks() + u64::from(home.0);
        // Segments without stripes begin where the next one does.
        let segment = self.first.partition_point(|first| *first <= stripe) - 1;
        let index = (stripe - self.first[segment]) as u32 * self.stripe_pages + place % self.stripe_pages;
        let found = Rank(segment as u32);
        debug_assert_eq!(
            (self.home(found, index), self.place(found, index)),
            (home, place),
            "a place leads to its page"
        );
        PageId { space: Space::of_segment(found), index }
    }

    /// The pages of the largest backing file.
    pub(super) fn places(&self) -> u64 {
        let stripes = self.first.last().copied().unwrap_or(0);
        stripes.div_ceil(self.ranks().max(1)) * u64::from(self.stripe_pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn each_page_has_a_place_of_its_own_at_its_home() {
        let pages = [5, 0, 17, 1, 0, 8];
        for stripe_pages in [1, 2, 3, 8, 64] {
            let cyclic = Cyclic::new(&pages, stripe_pages);
            let mut places = BTreeSet::new();
            for (segment, pages) in (0..).map(Rank).zip(pages) {
                for index in 0..pages {
                    let (home, place) = (cyclic.home(segment, index), cyclic.place(segment, index));
                    assert!(home.0 < 6 && u64::from(place) < cyclic.places());
                    assert!(places.insert((home, place)), "page {index} of {segment} shares its place");
                    let page = PageId { space: Space::of_segment(segment), index };
                    assert_eq!(cyclic.page(home, place), page);
                }
            }
        }
    }

    #[test]
    fn segments_may_have_more_stripes_than_a_place_can_name() {
        assert_eq!(Cyclic::new(&[u32::MAX; 3], 1).places(), u64::from(u32::MAX));
    }

    #[test]
    fn stripes_of_one_segment_go_round() {
        let cyclic = Cyclic::new(&[12, 12, 0], 2);
        let homes = |segment| (0..12).map(|index| cyclic.home(Rank(segment), index).0).collect::<Vec<_>>();
        assert_eq!(homes(0), [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]);
        assert_eq!(homes(1), [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]);
        assert_eq!(cyclic.places(), 8);
    }
}

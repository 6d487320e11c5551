//! The places of the ranks' segments.

use std::sync::atomic::{AtomicUsize, Ordering};
use vgasnet_protocol::{Rank, Spaces};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Bytes per stripe of cyclic homes, unless a page is larger or the user sets another size.
pub const STRIPE_BYTES: u64 = 4 << 20;

/// Segments of these numbers of pages. Their homes are their own ranks or, if `cyclic`, all ranks in turn.
pub fn with_homes(pages: impl Iterator<Item = u32>, page_bytes: u64, cyclic: bool) -> Spaces {
    let segments = Spaces::new(pages);
    if cyclic { segments.with_cyclic_homes((STRIPE_BYTES / page_bytes).max(1) as u32) } else { segments }
}

/// A rank's segment: a range of virtual addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Segment {
    /// First address; a multiple of the page size.
    pub base: usize,
    /// Length; a multiple of the page size. Zero if the rank has no segment.
    pub size_bytes: usize,
}

impl Segment {
    /// Whether a segment of `pages` pages fits at this place.
    pub fn is_of(&self, pages: u32, page_bytes: usize) -> bool {
        (pages as usize).checked_mul(page_bytes) == Some(self.size_bytes)
            && self.base % page_bytes == 0
            && self.base.checked_add(self.size_bytes).is_some()
    }

    /// Whether any of `len_bytes` bytes from `address` lies in the segment.
    pub fn overlaps(&self, address: usize, len_bytes: usize) -> bool {
        len_bytes > 0
            && address < self.base.saturating_add(self.size_bytes)
            && self.base < address.saturating_add(len_bytes)
    }
}

/// The place of a rank's segment, which does not move; a rank may get its segment there after its runtime has started.
#[derive(Debug)]
struct SegmentExtent {
    base: usize,
    size_bytes: AtomicUsize,
}

/// Every rank's segment.
#[derive(Debug)]
pub struct Segments(Box<[SegmentExtent]>);

impl SegmentExtent {
    #[inline]
    fn segment(&self) -> Segment {
        Segment { base: self.base, size_bytes: self.size_bytes.load(Ordering::Relaxed) }
    }
}

impl Segments {
    /// Segments of the ranks in order.
    pub fn new(segments: impl IntoIterator<Item = Segment>) -> Segments {
        let place = |Segment { base, size_bytes }| SegmentExtent { base, size_bytes: AtomicUsize::new(size_bytes) };
        Segments(segments.into_iter().map(place).collect())
    }

    /// Number of ranks of the job.
    pub fn ranks(&self) -> u32 {
        self.0.len() as u32
    }

    /// All segments, in order.
    pub fn all(&self) -> impl ExactSizeIterator<Item = Segment> + '_ {
        self.0.iter().map(SegmentExtent::segment)
    }

    /// The segment of a rank of the job.
    #[inline]
    pub fn of(&self, rank: Rank) -> Segment {
        self.0[rank.index()].segment()
    }

    /// The segment of the rank with this number, if there is one.
    #[inline]
    pub fn find(&self, rank: u32) -> Option<Segment> {
        self.0.get(rank as usize).map(SegmentExtent::segment)
    }

    /// Sets the sizes, in order: whole pages, and no more than initially. No thread of this rank may use a segment
    /// meanwhile.
    pub fn set_sizes(&self, sizes: impl IntoIterator<Item = usize>) {
        for (SegmentExtent { size_bytes, .. }, new) in self.0.iter().zip(sizes) {
            size_bytes.store(new, Ordering::Relaxed);
        }
    }
}

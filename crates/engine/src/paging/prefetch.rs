//! Read-ahead of pages.

use super::Paging;
use std::collections::HashSet;
use std::ops::RangeInclusive;
use vgasnet_memory::FRAMES_MIN;
use vgasnet_protocol::Space;
use vgasnet_protocol::coherence::{Cache, PageId};
use vgasnet_protocol::streams::Streams;

/// One frame in this many may hold a stream's unused pages.
const POOL_PART: u32 = 24;

/// Read-ahead of a stream in small pools, in pages, as long as it is at most a quarter of the pool.
const AHEAD_MIN: u32 = 4;

/// The pages being read ahead, and the streams that call for them.
pub(super) struct Prefetch {
    streams: Streams,
    in_flight: HashSet<PageId>,
    /// Maximum number of pages in flight. More would delay pages with waiting threads.
    under_way_max: usize,
}

impl Prefetch {
    /// Unless it `is_on`, pages are fetched on a miss only.
    pub fn new(page_bytes: usize, frames: u32, is_on: bool) -> Prefetch {
        // Read-ahead must not evict the pages of one instruction, which would then miss them in turn for ever, nor
        // pages in repeated use.
        let frames_ahead = (frames / POOL_PART).max(AHEAD_MIN).min(frames / 4).min(frames.saturating_sub(FRAMES_MIN));
        // Half of the pool is left to pages in use, for any number of streams.
        let frames_shared = (frames / 2).min(frames.saturating_sub(FRAMES_MIN));
        debug_assert!(frames_ahead <= frames_shared, "a stream has at most the share of all");
        let streams = Streams::new(page_bytes, frames_ahead, frames_shared);
        let under_way_max = if is_on { (frames as usize / 2).max(1) } else { 0 };
        Prefetch { streams, in_flight: HashSet::new(), under_way_max }
    }

    /// The pages being read ahead.
    pub fn pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.in_flight.iter().copied()
    }

    /// A page's fetch has ended. Returns whether it was read ahead.
    pub fn on_ended(&mut self, page: PageId) -> bool {
        self.in_flight.remove(&page)
    }
}

impl Paging {
    /// Pages by which streams advance: the engine is told of the first use of one page in this many.
    pub fn stream_step(&self) -> u32 {
        self.prefetch.streams.step()
    }

    /// Number of pages being read ahead.
    pub fn pages_ahead(&self) -> usize {
        self.prefetch.in_flight.len()
    }

    /// The pages to read ahead after a page that an access missed. The space's pages end at `end`.
    pub fn ahead_of_miss(&mut self, page: PageId, end: u32) -> Option<RangeInclusive<u32>> {
        self.prefetch.streams.on_miss(page, end)
    }

    /// The pages to read ahead after the first use of a page that was read ahead. The space's pages end at `end`.
    pub fn ahead_of_use(&mut self, page: PageId, end: u32) -> Option<RangeInclusive<u32>> {
        self.prefetch.streams.on_use(page, end)
    }

    /// Expects a stream from this page on.
    pub fn expect_stream(&mut self, first: PageId) {
        self.prefetch.streams.expect(first);
    }

    /// The next page of `range` to read ahead now. Removes it and those before it from the range.
    pub fn next_ahead(&mut self, space: Space, range: &mut RangeInclusive<u32>, cache: &Cache) -> Option<PageId> {
        if self.prefetch.in_flight.len() >= self.prefetch.under_way_max {
            return None;
        }
        let is_absent = |page: &PageId| !self.space.is_on_host(*page) && !cache.contains(*page);
        let page = range.map(|index| PageId { space, index }).find(is_absent)?;
        let is_new = self.prefetch.in_flight.insert(page);
        debug_assert!(is_new, "{page:?} is read ahead once at a time");
        Some(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vgasnet_protocol::Rank;

    /// Maximum read-ahead of a stream in a pool of `frames` frames, in pages.
    fn window(frames: u32) -> u32 {
        let mut prefetch = Prefetch::new(4096, frames, true);
        prefetch.streams.expect(PageId::of_segment(Rank(0), 0));
        let miss = |index| prefetch.streams.on_miss(PageId::of_segment(Rank(0), index), 1 << 20);
        (0..64).filter_map(miss).map(|range| range.end() - range.start() + 1).max().unwrap_or_default()
    }

    #[test]
    fn the_smallest_pools_keep_the_pages_of_an_instruction() {
        assert_eq!([1, FRAMES_MIN, FRAMES_MIN + 1, 16].map(window), [0, 0, 1, 4]);
    }

    #[test]
    fn streams_side_by_side_leave_half_of_a_small_pool_for_pages_in_use() {
        for frames in [8, 12, 16, 32, 64] {
            for streams in 1..8_u32 {
                let mut prefetch = Prefetch::new(64 << 10, frames, true);
                let page = |stream: u32, index: u32| PageId::of_segment(Rank(0), stream * 1000 + index);
                (0..streams).for_each(|stream| prefetch.streams.expect(page(stream, 0)));
                let mut ahead = vec![0; streams as usize];
                for index in 0..64 {
                    for stream in 0..streams {
                        let at = page(stream, index);
                        let range = prefetch.streams.on_miss(at, 1 << 20);
                        ahead[stream as usize] = range.map_or(0, |range| range.end() - at.index);
                    }
                }
                let total: u32 = ahead.iter().sum();
                assert!(total <= frames / 2, "{total} pages of {streams} streams in {frames} frames");
            }
        }
    }
}

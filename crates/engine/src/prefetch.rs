//! Read-ahead of pages.

use super::Engine;
use std::collections::HashSet;
use std::ops::RangeInclusive;
use vgasnet_memory::FRAMES_MIN;
use vgasnet_protocol::Space;
use vgasnet_protocol::coherence::{Event, PageId};
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
    pub(super) fn new(page_bytes: usize, frames: u32, is_on: bool) -> Prefetch {
        // Read-ahead must not evict the pages of one instruction, which would then miss them in turn for ever, nor
        // pages in repeated use.
        let frames_ahead = (frames / POOL_PART).max(AHEAD_MIN).min(frames / 4).min(frames.saturating_sub(FRAMES_MIN));
        // Half of the pool is left to pages in use, for any number of streams.
        let frames_shared = (frames / 2).min(frames.saturating_sub(FRAMES_MIN));
        let streams = Streams::new(page_bytes, frames_ahead, frames_shared);
        let under_way_max = if is_on { (frames as usize / 2).max(1) } else { 0 };
        Prefetch { streams, in_flight: HashSet::new(), under_way_max }
    }

    /// Number of pages in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Pages by which streams advance: the engine is told of the first use of one page in this many.
    pub(super) fn step(&self) -> u32 {
        self.streams.step()
    }

    /// A page was opened. Returns whether it had been read ahead.
    pub(super) fn on_opened(&mut self, page: PageId) -> bool {
        self.in_flight.remove(&page)
    }
}

impl Engine {
    /// Reads ahead after a page that an access missed.
    pub(super) fn prefetch_after_miss(&mut self, page: PageId) {
        let range = self.prefetch.streams.on_miss(page, self.end_of(page.space));
        self.prefetch(page.space, range);
    }

    /// Reads ahead after the first use of a prefetched page.
    pub fn prefetch_after_use(&mut self, page: PageId) {
        let range = self.prefetch.streams.on_use(page, self.end_of(page.space));
        self.prefetch(page.space, range);
    }

    /// Fetches the first of these pages of the own segment or of a file, up to half of the pool, because they will be
    /// needed.
    pub fn fetch(&mut self, space: Space, pages: RangeInclusive<u32>) {
        let most = (self.protocol.cache.frames() / 2).max(1);
        let last = (*pages.end()).min(pages.start().saturating_add(most - 1));
        self.prefetch(space, Some(*pages.start()..=last));
    }

    /// Expects a stream through these pages of the own segment or of a file.
    pub fn expect_in_order(&mut self, space: Space, pages: &RangeInclusive<u32>) {
        self.prefetch.streams.expect(PageId { space, index: *pages.start() });
    }

    fn prefetch(&mut self, space: Space, range: Option<RangeInclusive<u32>>) {
        let Some(range) = range else { return };
        // One waiting page may be the page that triggered this read-ahead. Further demand misses must not wait for
        // evictions on its behalf.
        if self.protocol.cache.starving() > 1 {
            return;
        }
        for index in range {
            if self.prefetch.in_flight.len() >= self.prefetch.under_way_max {
                return;
            }
            let page = PageId { space, index };
            if !self.space.is_on_host(page) && !self.protocol.cache.contains(page) {
                self.prefetch.in_flight.insert(page);
                self.handle(Event::Prefetch(page));
            }
        }
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

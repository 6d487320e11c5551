//! Pages that are fetched ahead of their use.

use super::Engine;
use crate::memory::FRAMES_MIN;
use std::collections::HashSet;
use std::ops::RangeInclusive;
use vgasnet_protocol::Space;
use vgasnet_protocol::coherence::{Event, PageId};
use vgasnet_protocol::streams::Streams;

/// One frame in so many is for pages of a stream that nobody has used yet.
const POOL_PART: u32 = 24;

/// Pages of a stream that come ahead in small pools, where that is no more than a quarter of them.
const AHEAD_MIN: u32 = 4;

/// The pages that are fetched ahead, and the streams that call for them.
pub(super) struct Prefetch {
    /// Else a page comes when an operation misses it.
    pub(super) is_on: bool,
    streams: Streams,
    under_way: HashSet<PageId>,
    /// Pages that may be on their way at a time. More would delay the pages for which threads wait.
    under_way_max: usize,
}

impl Prefetch {
    pub(super) fn new(page_bytes: usize, frames: u32) -> Prefetch {
        // What comes ahead must not drive out what an instruction needs, which would miss its pages for ever in turn, nor
        // what is used again and again.
        let frames_ahead = (frames / POOL_PART).max(AHEAD_MIN).min(frames / 4).min(frames.saturating_sub(FRAMES_MIN));
        // However many streams there are, half of the pool stays for the pages that are in use.
        let frames_shared = (frames / 2).min(frames.saturating_sub(FRAMES_MIN));
        let streams = Streams::new(page_bytes, frames_ahead, frames_shared);
        Prefetch { is_on: true, streams, under_way: HashSet::new(), under_way_max: (frames as usize / 2).max(1) }
    }

    /// How many pages are on their way.
    pub(super) fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Pages by which streams move on: the first use of one page in so many is to be told.
    pub(super) fn step(&self) -> u32 {
        self.streams.step()
    }

    /// A page was opened. Returns whether it had been fetched ahead.
    pub(super) fn on_opened(&mut self, page: PageId) -> bool {
        self.under_way.remove(&page)
    }
}

impl Engine {
    /// Fetches the pages that may be needed after a page that an access missed.
    pub(super) fn prefetch_after_miss(&mut self, page: PageId) {
        let range = self.prefetch.streams.on_miss(page, self.end_of(page.space));
        self.prefetch(page.space, range);
    }

    /// Fetches the pages that may be needed after a page that was fetched ahead and is used for the first time.
    pub fn prefetch_after_use(&mut self, page: PageId) {
        let range = self.prefetch.streams.on_use(page, self.end_of(page.space));
        self.prefetch(page.space, range);
    }

    /// Fetches the first of these pages of the own segment, or of a file, up to half of the pool: they will be needed.
    pub fn fetch(&mut self, space: Space, pages: RangeInclusive<u32>) {
        let most = (self.protocol.cache.frames() / 2).max(1);
        let last = (*pages.end()).min(pages.start().saturating_add(most - 1));
        self.prefetch(space, Some(*pages.start()..=last));
    }

    /// Expects a stream through these pages of the own segment, or of a file.
    pub fn expect_in_order(&mut self, space: Space, pages: &RangeInclusive<u32>) {
        self.prefetch.streams.expect(PageId { space, index: *pages.start() });
    }

    fn prefetch(&mut self, space: Space, range: Option<RangeInclusive<u32>>) {
        let Some(range) = range.filter(|_| self.prefetch.is_on) else { return };
        // One may be the page after which these come. More demands must not wait until frames are evicted for these.
        if self.protocol.cache.starving() > 1 {
            return;
        }
        for index in range {
            if self.prefetch.under_way.len() >= self.prefetch.under_way_max {
                return;
            }
            let page = PageId { space, index };
            if !self.space.is_on_host(page) && !self.protocol.cache.contains(page) {
                self.prefetch.under_way.insert(page);
                self.handle(Event::Prefetch(page));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vgasnet_protocol::Rank;

    /// The most pages of a stream that a pool of so many frames has ahead.
    fn window(frames: u32) -> u32 {
        let mut prefetch = Prefetch::new(4096, frames);
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
                let mut prefetch = Prefetch::new(64 << 10, frames);
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

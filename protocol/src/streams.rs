//! The pages that will be read next.
//!
//! Three misses on consecutive pages make a stream. From then on a window of pages is fetched ahead of it. The window
//! moves on each time a page in it is used for the first time.

use crate::Space;
use crate::coherence::PageId;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// Streams that are told apart; of more, those that moved on last are remembered.
const STREAMS: usize = 8;

/// Consecutive misses that make a stream.
const MISSES_MIN: u32 = 3;

/// Bytes of the window. Of larger pages it has one; where few frames may be used ahead it has fewer pages.
const WINDOW_BYTES: usize = 8 << 20;

/// Pages that are read in order, or a few misses that may become such.
#[derive(Clone, Copy, Debug)]
struct Stream {
    space: Space,
    /// The index of the page that comes next.
    next: u32,
    misses: u32,
    /// The index of the first page that is not fetched ahead yet.
    ahead: u32,
}

/// The streams that one rank reads.
#[derive(Debug)]
pub struct Streams {
    /// In pages; 0 fetches nothing ahead.
    window: u32,
    /// The one that moved on last is at the end.
    streams: Vec<Stream>,
}

impl Streams {
    /// Streams of pages of this size, which may have so many frames of the pool for pages that nobody has used yet.
    pub fn new(page_bytes: usize, frames_ahead: u32) -> Streams {
        let window = (WINDOW_BYTES / page_bytes).max(1).min(frames_ahead as usize) as u32;
        Streams { window, streams: Vec::with_capacity(STREAMS) }
    }

    /// Pages from `page` on will be read in order: a miss on it makes the stream at once.
    pub fn expect(&mut self, page: PageId) {
        self.remember(Stream { space: page.space, next: page.index, misses: MISSES_MIN - 1, ahead: page.index + 1 });
    }

    /// An access missed `page`, in a space of `pages` pages. Returns the indices of the pages to fetch ahead.
    pub fn on_miss(&mut self, page: PageId, pages: u32) -> Option<RangeInclusive<u32>> {
        if self.window == 0 {
            return None;
        }
        // First uses of pages that were fetched ahead may be told late, so the stream may be further on than is known.
        let is_next = |stream: &Stream| {
            stream.space == page.space && (stream.next..=stream.ahead.max(stream.next)).contains(&page.index)
        };
        let known = self.streams.iter().position(is_next);
        let mut stream = match known {
            Some(at) => self.streams.remove(at),
            None => Stream { space: page.space, next: page.index, misses: 0, ahead: page.index + 1 },
        };
        stream.next = page.index + 1;
        stream.misses += 1;
        let range = if stream.misses < MISSES_MIN { None } else { self.extend(&mut stream, page.index, pages) };
        self.remember(stream);
        range
    }

    /// A page that was fetched ahead is used for the first time, in a space of `pages` pages. Returns the indices of
    /// the pages to fetch ahead now.
    pub fn on_use(&mut self, page: PageId, pages: u32) -> Option<RangeInclusive<u32>> {
        let window = self.window;
        let is_in = |stream: &Stream| {
            stream.space == page.space && page.index < stream.ahead && stream.ahead <= page.index + 1 + window
        };
        let at = self.streams.iter().position(is_in)?;
        let mut stream = self.streams.remove(at);
        stream.next = stream.next.max(page.index + 1);
        let range = self.extend(&mut stream, page.index, pages);
        self.remember(stream);
        range
    }

    /// Adds the stream that has moved on last.
    fn remember(&mut self, stream: Stream) {
        if self.streams.len() == STREAMS {
            self.streams.remove(0);
        }
        self.streams.push(stream);
    }

    /// Moves the window to begin behind `index`. Returns the part that is not fetched yet.
    fn extend(&self, stream: &mut Stream, index: u32, pages: u32) -> Option<RangeInclusive<u32>> {
        let first = stream.ahead.max(index + 1);
        let last = index.saturating_add(self.window).min(pages - 1);
        if first > last {
            return None;
        }
        stream.ahead = last + 1;
        Some(first..=last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rank;

    const PAGE_BYTES: usize = 4 << 20;

    fn page(index: u32) -> PageId {
        PageId::of_segment(Rank(1), index)
    }

    #[test]
    fn the_third_miss_in_a_row_starts_a_stream_that_uses_carry_on() {
        let mut ahead = Streams::new(PAGE_BYTES, 4);
        assert_eq!(ahead.on_miss(page(4), 100), None);
        assert_eq!(ahead.on_miss(page(5), 100), None);
        assert_eq!(ahead.on_miss(page(6), 100), Some(7..=8));
        assert_eq!(ahead.on_use(page(7), 100), Some(9..=9));
        assert_eq!(ahead.on_use(page(8), 100), Some(10..=10));
        assert_eq!(ahead.on_use(page(8), 100), None, "nothing twice");
    }

    #[test]
    fn a_miss_behind_the_window_carries_the_stream_on_before_its_uses_are_told() {
        let mut ahead = Streams::new(PAGE_BYTES, 4);
        (4..6).for_each(|index| assert_eq!(ahead.on_miss(page(index), 100), None));
        assert_eq!(ahead.on_miss(page(6), 100), Some(7..=8));
        assert_eq!(ahead.on_miss(page(9), 100), Some(10..=11));
        assert_eq!(ahead.on_use(page(7), 100), None, "it is told late");
        assert_eq!(ahead.on_use(page(10), 100), Some(12..=12));
    }

    #[test]
    fn a_stream_ends_with_its_segment() {
        let mut ahead = Streams::new(PAGE_BYTES, 4);
        let ranges: Vec<_> = (0..4).map(|index| ahead.on_miss(page(index), 4)).collect();
        assert_eq!(ranges, [None, None, Some(3..=3), None]);
        assert_eq!(ahead.on_use(page(3), 4), None);
    }

    #[test]
    fn streams_that_alternate_are_told_apart() {
        let mut ahead = Streams::new(PAGE_BYTES, 16);
        for index in 0..2 {
            for stream in 0..STREAMS as u32 {
                assert_eq!(ahead.on_miss(page(stream * 100 + index), 1000), None);
            }
        }
        for stream in 0..STREAMS as u32 {
            let first = stream * 100 + 3;
            assert_eq!(ahead.on_miss(page(first - 1), 1000), Some(first..=first + 1));
        }
    }

    #[test]
    fn random_reads_and_small_pools_fetch_nothing_ahead() {
        let mut ahead = Streams::new(PAGE_BYTES, 4);
        let mut random = fastrand::Rng::with_seed(1);
        let fetched = (0..1000).filter(|_| ahead.on_miss(page(random.u32(0..1_000_000)), 1_000_000).is_some()).count();
        assert_eq!(fetched, 0);
        let mut none = Streams::new(PAGE_BYTES, 0);
        assert!((0..10).all(|index| none.on_miss(page(index), 100).is_none()));
        let mut small = Streams::new(64 << 10, 16);
        let ranges: Vec<_> = (0..3).map(|index| small.on_miss(page(index), 1000)).collect();
        assert_eq!(ranges[2], Some(3..=18), "16 pages of 64 KiB are less than the window");
    }
}

//! Read-ahead: detection of pages to be read next.
//!
//! Three misses on consecutive pages make a stream, and a window of pages is read ahead of it. The window advances on
//! first uses of its pages, by a MiB of small pages at a time. Concurrent streams share the frames for read-ahead: with
//! limited frames each has a smaller window.

use crate::Space;
use crate::coherence::PageId;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// Number of streams tracked; the least recently advanced is forgotten.
const STREAMS: usize = 8;

/// Consecutive misses that make a stream.
const MISSES_MIN: u32 = 3;

/// Bytes of the window. Larger pages get a window of one; a limit on read-ahead frames shrinks it.
const WINDOW_BYTES: usize = 16 << 20;

/// Bytes by which the window advances over small pages, so that a disk reads them as one request.
const STEP_BYTES: usize = 1 << 20;

/// A stream counts as concurrent if it advanced within this many advances.
const MOVES_SIDE_BY_SIDE: u64 = 2 * STREAMS as u64;

/// Minimum steps in the window: pages are requested long before their use.
const STEPS_MIN: u32 = 4;

/// Pages read in order, or misses that may become a stream.
#[derive(Clone, Copy, Debug)]
struct Stream {
    space: Space,
    /// Index of the next page.
    next: u32,
    misses: u32,
    /// Pages read so far, including read-ahead.
    read: u32,
    /// Index of the first page not read ahead yet.
    ahead: u32,
    /// Value of `moves` at its last advance.
    moved_at: u64,
}

impl Stream {
    /// A stream possibly beginning at a page.
    fn at(page: PageId) -> Stream {
        Stream { space: page.space, next: page.index, misses: 0, read: 0, ahead: page.index + 1, moved_at: 0 }
    }

    /// Page `index` and all pages before it have been read.
    fn come_to(&mut self, index: u32) {
        self.read = self.read.saturating_add((index + 1).saturating_sub(self.next));
        self.next = self.next.max(index + 1);
        debug_assert!(self.read > 0, "page {index} is read");
    }
}

/// The streams that one rank reads.
#[derive(Debug)]
pub struct Streams {
    /// Window in pages, whole steps; 0 disables read-ahead.
    window: u32,
    /// Maximum number of read-ahead pages of all streams together.
    shared: u32,
    /// Pages by which the window advances.
    step: u32,
    /// Number of advances of all streams.
    moves: u64,
    /// In order of their last advance.
    streams: Vec<Stream>,
}

impl Streams {
    /// Streams of pages of `page_bytes`. Each stream may occupy `frames_ahead` frames with unused pages, all concurrent
    /// ones together `frames_shared`.
    pub fn new(page_bytes: usize, frames_ahead: u32, frames_shared: u32) -> Streams {
        assert!(page_bytes > 0, "pages have bytes");
        let window = (WINDOW_BYTES / page_bytes).max(1).min(frames_ahead as usize) as u32;
        let step = (STEP_BYTES / page_bytes).min((window / STEPS_MIN) as usize).max(1) as u32;
        let streams = Vec::with_capacity(STREAMS);
        Streams { window: window - window % step, shared: frames_shared, step, moves: 0, streams }
    }

    /// Pages by which windows advance, at least 1. The first use of a page matters only if [`ends_step`] holds for it.
    pub fn step(&self) -> u32 {
        self.step
    }

    /// Pages from `page` on will be read in order: a miss on it makes a stream at once.
    pub fn expect(&mut self, page: PageId) {
        let (misses, read) = (MISSES_MIN - 1, 2 * self.window);
        self.remember(Stream { misses, read, ..Stream::at(page) });
    }

    /// An access missed `page`, in a space of `pages` pages. Returns the indices of pages to read ahead.
    pub fn on_miss(&mut self, page: PageId, pages: u32) -> Option<RangeInclusive<u32>> {
        if self.window == 0 {
            return None;
        }
        // First uses of read-ahead pages may be reported late, so the stream may be further on than known.
        let is_next = |stream: &Stream| {
            stream.space == page.space && (stream.next..=stream.ahead.max(stream.next)).contains(&page.index)
        };
        let known = self.streams.iter().position(is_next);
        let mut stream = match known {
            Some(at) => self.streams.remove(at),
            None => Stream::at(page),
        };
        debug_assert!(stream.space == page.space && stream.next <= page.index, "the stream comes to {page:?}");
        stream.come_to(page.index);
        stream.misses += 1;
        let range = if stream.misses < MISSES_MIN { None } else { self.extend(&mut stream, page.index, pages) };
        debug_assert!(range.as_ref().is_none_or(|ahead| *ahead.start() > page.index), "{page:?} is here by then");
        self.remember(stream);
        range
    }

    /// A read-ahead page is used for the first time, in a space of `pages` pages. Returns the indices of pages to read
    /// ahead now.
    pub fn on_use(&mut self, page: PageId, pages: u32) -> Option<RangeInclusive<u32>> {
        let window = self.window;
        let is_in = |stream: &Stream| {
            stream.space == page.space && page.index < stream.ahead && stream.ahead <= page.index + 1 + window
        };
        let at = self.streams.iter().position(is_in)?;
        let mut stream = self.streams.remove(at);
        stream.come_to(page.index);
        let range = self.extend(&mut stream, page.index, pages);
        debug_assert!(range.as_ref().is_none_or(|ahead| *ahead.start() > page.index), "{page:?} is here");
        self.remember(stream);
        range
    }

    /// Adds a stream as the last advanced.
    fn remember(&mut self, mut stream: Stream) {
        self.moves += 1;
        stream.moved_at = self.moves;
        if self.streams.len() == STREAMS {
            self.streams.remove(0);
        }
        self.streams.push(stream);
        debug_assert!(self.streams.len() <= STREAMS, "so many streams are followed");
    }

    /// The window of each concurrent stream, counting one not in `streams`.
    fn window_now(&self) -> u32 {
        debug_assert!(self.streams.iter().all(|stream| stream.moved_at <= self.moves), "advances are counted");
        let goes_on =
            |stream: &&Stream| stream.misses >= MISSES_MIN && self.moves - stream.moved_at < MOVES_SIDE_BY_SIDE;
        self.window.min(self.shared / (1 + self.streams.iter().filter(goes_on).count() as u32))
    }

    /// Advances the window to begin after `index`. Returns the part not yet requested. It is at most half as long as
    /// the stream so far, so short streams waste little.
    fn extend(&self, stream: &mut Stream, index: u32, pages: u32) -> Option<RangeInclusive<u32>> {
        let first = stream.ahead.max(index + 1);
        let window = self.window_now().min(stream.read.div_ceil(2));
        let behind = index.saturating_add(1).saturating_add(window);
        let whole_steps = behind - behind % self.step;
        let is_short = window <= self.step && whole_steps <= first;
        let last = if is_short { behind } else { whole_steps }.min(pages).max(1) - 1;
        if first > last {
            return None;
        }
        debug_assert!(last < pages, "the pages to be read ahead exist");
        stream.ahead = last + 1;
        Some(first..=last)
    }
}

/// Whether a stream arriving at page `index` advances its window, with steps of `step` pages.
#[inline]
pub fn ends_step(index: u32, step: u32) -> bool {
    (index + 1) % step == 0
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
        let mut ahead = Streams::new(PAGE_BYTES, 2, u32::MAX);
        assert_eq!(ahead.on_miss(page(4), 100), None);
        assert_eq!(ahead.on_miss(page(5), 100), None);
        assert_eq!(ahead.on_miss(page(6), 100), Some(7..=8));
        assert_eq!(ahead.on_use(page(7), 100), Some(9..=9));
        assert_eq!(ahead.on_use(page(8), 100), Some(10..=10));
        assert_eq!(ahead.on_use(page(8), 100), None, "nothing twice");
    }

    #[test]
    fn a_miss_behind_the_window_carries_the_stream_on_before_its_uses_are_told() {
        let mut ahead = Streams::new(PAGE_BYTES, 2, u32::MAX);
        (4..6).for_each(|index| assert_eq!(ahead.on_miss(page(index), 100), None));
        assert_eq!(ahead.on_miss(page(6), 100), Some(7..=8));
        assert_eq!(ahead.on_miss(page(9), 100), Some(10..=11));
        assert_eq!(ahead.on_use(page(7), 100), None, "it is told late");
        assert_eq!(ahead.on_use(page(10), 100), Some(12..=12));
    }

    #[test]
    fn a_stream_ends_with_its_segment() {
        let mut ahead = Streams::new(PAGE_BYTES, 2, u32::MAX);
        let ranges: Vec<_> = (0..4).map(|index| ahead.on_miss(page(index), 4)).collect();
        assert_eq!(ranges, [None, None, Some(3..=3), None]);
        assert_eq!(ahead.on_use(page(3), 4), None);
    }

    #[test]
    fn streams_that_alternate_are_told_apart() {
        let mut ahead = Streams::new(PAGE_BYTES, 2, u32::MAX);
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
    fn streams_side_by_side_share_the_frames_for_pages_ahead() {
        let mut ahead = Streams::new(64 << 10, 2, 4);
        let mut space = 0;
        // The window of one of `streams` streams after each has read 64 pages.
        let mut window = |streams: u32| {
            space += 1;
            let first = |stream: u32| (space * STREAMS as u32 + stream) * 10_000;
            (0..streams).for_each(|stream| ahead.expect(page(first(stream))));
            let mut window = 0;
            for index in 0..64 {
                for stream in 0..streams {
                    let at = first(stream) + index;
                    window = ahead.on_miss(page(at), 10_000_000).map_or(0, |range| range.end() - at);
                }
            }
            window
        };
        assert_eq!([1, 2, 3, 4, 5, 1].map(&mut window), [2, 2, 1, 1, 0, 2], "the last one goes on alone");
    }

    #[test]
    fn random_reads_and_small_pools_fetch_nothing_ahead() {
        let mut ahead = Streams::new(PAGE_BYTES, 2, u32::MAX);
        let mut random = fastrand::Rng::with_seed(1);
        let fetched = (0..1000).filter(|_| ahead.on_miss(page(random.u32(0..1_000_000)), 1_000_000).is_some()).count();
        assert_eq!(fetched, 0);
        let mut none = Streams::new(PAGE_BYTES, 0, u32::MAX);
        assert!((0..10).all(|index| none.on_miss(page(index), 100).is_none()));
        let mut small = Streams::new(64 << 10, 16, u32::MAX);
        small.expect(page(0));
        assert_eq!(small.on_miss(page(0), 1000), Some(1..=15), "16 pages of 64 KiB are less than the window");
    }

    #[test]
    fn the_window_moves_by_steps_of_small_pages() {
        let mut ahead = Streams::new(64 << 10, 1000, u32::MAX);
        assert_eq!(ahead.step(), 16);
        ahead.expect(page(0));
        assert_eq!(ahead.on_miss(page(0), 10_000), Some(1..=255));
        for index in 1..1000 {
            let range = ahead.on_use(page(index), 10_000);
            let moves_on = ends_step(index, ahead.step());
            assert_eq!(range, moves_on.then_some(index + 241..=index + 256), "at {index}");
        }
        let steps = [(64 << 10, 3), (64 << 10, 9), (4096, 4096), (4 << 20, 64)].map(|(bytes, frames)| {
            let ahead = Streams::new(bytes, frames, u32::MAX);
            assert_eq!(ahead.window % ahead.step(), 0);
            ahead.step()
        });
        assert_eq!(steps, [1, 2, 256, 1]);
    }

    #[test]
    fn little_is_fetched_for_streams_that_end_soon() {
        for pages in [4, 16, 64, 256, 1024] {
            let (mut ahead, mut fetched, mut misses) = (Streams::new(64 << 10, 1000, u32::MAX), 0, 0);
            for index in 0..pages {
                let is_here = index < fetched;
                let range = match is_here {
                    true if ends_step(index, ahead.step()) => ahead.on_use(page(index), 10_000),
                    true => None,
                    false => ahead.on_miss(page(index), 10_000),
                };
                misses += u32::from(!is_here);
                fetched = range.map_or(fetched.max(index + 1), |range| range.end() + 1);
            }
            assert!(fetched - pages <= pages.div_ceil(2), "{fetched} fetched of {pages}");
            assert!(misses <= 8, "{misses} of {pages}");
        }
    }
}

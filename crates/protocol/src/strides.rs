//! Read-ahead within pages: detection of small accesses at equal distances, as of rows of a matrix.
//!
//! A fourth access at the same distance makes a strided stream: places drawn at random are seldom three times as far from
//! each other. The next places of a stream are read ahead of it, more of them the longer it lasts.

use crate::Space;
use alloc::vec::Vec;

/// Number of streams tracked, or of places where one may begin; the least recently used is forgotten.
const STREAMS: usize = 16;

/// Maximum distance in bytes.
const STRIDE_BYTES_MAX: u64 = 64 << 20;

/// Steps of equal length that make a stream.
const STEPS_MIN: u32 = 2;

/// Maximum places ahead of a stream.
const AHEAD_MAX: u32 = 16;

/// A stream may begin at an access, or goes on there.
#[derive(Clone, Copy, Debug)]
struct Stream {
    space: Space,
    /// The first byte of the last access.
    last: u64,
    /// Distance of the next access; 0 if it is not known.
    stride: i64,
    /// Accesses at this distance from the one before, without the first of them.
    steps: u32,
    /// Places behind the last access that are read ahead.
    ahead: u32,
}

/// Places to be read ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    first: u64,
    stride: i64,
    count: u32,
}

impl Places {
    /// Their distance in bytes.
    pub fn stride_bytes(self) -> u64 {
        self.stride.unsigned_abs()
    }

    /// Their first bytes in the space.
    pub fn starts(self) -> impl Iterator<Item = u64> {
        let at = move |step: u32| self.first.checked_add_signed(self.stride.checked_mul(i64::from(step))?);
        (0..self.count).map_while(at)
    }
}

/// The strided streams of one rank's small accesses.
#[derive(Debug, Default)]
pub struct Strides {
    /// In order of their last access.
    streams: Vec<Stream>,
}

impl Strides {
    /// The rank accesses bytes of a space from `start` on. Returns the places to be read ahead.
    pub fn on_access(&mut self, space: Space, start: u64) -> Option<Places> {
        let is_theirs = |stream: &&Stream| stream.space == space;
        let goes_on = |stream: &Stream| stream.last.checked_add_signed(stream.stride) == Some(start);
        let at = |found: &Stream| self.streams.iter().position(|stream| core::ptr::eq(stream, found));
        if let Some(known) = self.streams.iter().filter(is_theirs).find(|stream| goes_on(stream)).and_then(at) {
            let mut stream = self.streams.remove(known);
            let places = stream.step(start);
            self.streams.push(stream);
            return places;
        }
        let distance = |stream: &Stream| stream.last.abs_diff(start);
        let may_begin = |stream: &&Stream| stream.steps == 0 && distance(stream) <= STRIDE_BYTES_MAX;
        let nearest = self.streams.iter().filter(is_theirs).filter(may_begin).min_by_key(|stream| distance(stream));
        let mut stream = Stream { space, last: start, stride: 0, steps: 0, ahead: 0 };
        if let Some(nearest) = nearest.and_then(at) {
            stream.stride = start.wrapping_sub(self.streams.remove(nearest).last) as i64;
        } else if self.streams.len() == STREAMS {
            self.streams.remove(0);
        }
        self.streams.push(stream);
        None
    }
}

impl Stream {
    /// The next access is at the expected place.
    fn step(&mut self, start: u64) -> Option<Places> {
        self.last = start;
        if self.stride == 0 {
            return None;
        }
        self.steps = self.steps.saturating_add(1).min(AHEAD_MAX);
        self.ahead = self.ahead.saturating_sub(1);
        let length = (self.steps + 1).checked_sub(STEPS_MIN).filter(|length| *length > 0)?;
        let window = length.saturating_mul(4).min(AHEAD_MAX);
        if self.ahead > window / 2 {
            return None;
        }
        let first = start.checked_add_signed(self.stride.checked_mul(i64::from(self.ahead + 1))?)?;
        let places = Places { first, stride: self.stride, count: window - self.ahead };
        self.ahead = window;
        Some(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rank;
    use alloc::vec;

    fn ahead(strides: &mut Strides, segment: u32, start: u64) -> Vec<u64> {
        strides.on_access(Space::of_segment(Rank(segment)), start).map_or(vec![], |places| places.starts().collect())
    }

    #[test]
    fn the_fourth_access_at_a_distance_reads_ahead_and_no_place_is_read_twice() {
        for stride in [8000_i64, -8000] {
            let mut strides = Strides::default();
            let place = |step: i64| (10_000_000 + step * stride) as u64;
            assert_eq!([0, 1, 2].map(|step| ahead(&mut strides, 0, place(step))), [vec![], vec![], vec![]]);
            let mut read: Vec<u64> = Vec::new();
            for step in 3..200 {
                read.extend(ahead(&mut strides, 0, place(step)));
                let expected: Vec<u64> = (4..4 + read.len() as i64).map(place).collect();
                assert_eq!(read, expected);
                let left = read.len() as i64 + 4 - (step + 1);
                assert!(left >= 2 && left <= i64::from(AHEAD_MAX), "{left} places ahead of step {step}");
            }
        }
    }

    #[test]
    fn streams_side_by_side_and_of_other_segments_are_apart() {
        let mut strides = Strides::default();
        for step in 0..3 {
            assert!((0..4).all(|by| ahead(&mut strides, by, u64::from(by) * 100 + step * 4096).is_empty()));
        }
        for by in 0..4 {
            assert_eq!(ahead(&mut strides, by, u64::from(by) * 100 + 3 * 4096).len(), 4);
        }
        let mut strides = Strides::default();
        // Three arrays, element by element.
        let place = |array: u64, step: u64| array * (1 << 30) + step * 5000;
        let mut count = 0;
        for step in 0..20 {
            count += (0..3).map(|array| ahead(&mut strides, 7, place(array, step)).len()).sum::<usize>();
        }
        assert!(count >= 3 * 16, "{count}");
    }

    #[test]
    fn random_places_and_the_same_place_read_nothing() {
        let (mut strides, mut place, mut count) = (Strides::default(), 1_u64, 0);
        for _ in 0..10_000 {
            place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            count += ahead(&mut strides, 0, place >> 32).len();
        }
        assert_eq!(count, 0);
        assert!((0..100).all(|_| ahead(&mut strides, 1, 77).is_empty()));
    }

    #[test]
    fn places_end_with_the_numbers() {
        let mut strides = Strides::default();
        let starts = [4 * 4096_u64, 3 * 4096, 2 * 4096, 4096].map(|start| ahead(&mut strides, 0, start));
        assert_eq!(starts[3], [0], "nothing is before the first byte");
    }
}

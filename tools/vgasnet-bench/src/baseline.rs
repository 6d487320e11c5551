//! Copies in memory as a baseline, and statistics of repeated measurements.

use crate::plan::BLOCK_BYTES;
use std::hint::black_box;
use std::time::Instant;
use vgasnet_measuring::memory::Memory;

const BLOCK: usize = BLOCK_BYTES as usize;

/// Sources used round robin, so none stays in the nearest caches.
const SOURCES: usize = 16;

/// Copies in one measurement.
const COPIES: usize = 64;

/// Copies of 4 MiB from several sources, round robin, to one destination.
pub struct Copies {
    sources: Memory,
    count: usize,
}

impl Copies {
    /// Copies from `count` sources.
    pub fn new(count: usize) -> Copies {
        Copies { sources: Memory::shared(count * BLOCK), count }
    }

    /// Seconds for one copy.
    pub fn run(&mut self, to: &mut [u8]) -> f64 {
        let start = Instant::now();
        for copy in 0..COPIES {
            let from = copy % self.count * BLOCK;
            black_box(&mut *to).copy_from_slice(&self.sources.bytes()[from..from + BLOCK]);
        }
        start.elapsed().as_secs_f64() / COPIES as f64
    }
}

/// Seconds for one copy of 4 MiB from a source outside the nearest caches.
pub fn copy_seconds(to: &mut [u8]) -> f64 {
    Copies::new(SOURCES).run(to)
}

/// Copies of a page between places outside all caches. Like the frames of a pool, the places are in large pages if the
/// kernel has them.
pub struct PageCopies {
    from: Memory,
    to: Memory,
    page_bytes: usize,
    next: usize,
}

impl PageCopies {
    /// Memory of either side, larger than the caches.
    const SIDE_BYTES: usize = 64 << 20;

    pub fn new(page_bytes: usize) -> PageCopies {
        let side = || Memory::allocated(PageCopies::SIDE_BYTES.next_multiple_of(page_bytes), true);
        PageCopies { from: side(), to: side(), page_bytes, next: 0 }
    }

    /// Seconds for one copy.
    pub fn run(&mut self) -> f64 {
        let offset = self.next * self.page_bytes;
        self.next = (self.next + 1) % PageCopies::SIDE_BYTES.div_ceil(self.page_bytes);
        let [from, to] = [&self.from, &self.to].map(|side| side.start().wrapping_add(offset));
        let start = Instant::now();
        // SAFETY: both sides have whole pages and belong to this value. `next` stays inside.
        unsafe { black_box(to).copy_from_nonoverlapping(black_box(from), self.page_bytes) };
        start.elapsed().as_secs_f64()
    }
}

/// The time of some work.
pub fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// The middle value; of an even number of values the lower one.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The smallest value not exceeded by the given part of the values.
pub fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (part * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

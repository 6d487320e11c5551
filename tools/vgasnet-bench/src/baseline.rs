//! What is compared with in memory, and what repeated measurements come to.

use crate::memory::{Allocated, Memory};
use crate::plan::BLOCK_BYTES;
use std::hint::black_box;
use std::time::Instant;

const BLOCK: usize = BLOCK_BYTES as usize;

/// As many sources take turns, so that none stays in the nearest caches.
const SOURCES: usize = 16;

/// How many copies one measurement makes.
const COPIES: usize = 64;

/// Copies of 4 MiB from as many sources in turn as [`Copies::new`] was told, always to the same destination.
pub struct Copies {
    sources: Memory,
    count: usize,
}

impl Copies {
    pub fn new(count: usize) -> Copies {
        Copies { sources: Memory::new(count * BLOCK), count }
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

/// Seconds for one copy of 4 MiB with the source not in the nearest caches.
pub fn copy_seconds(to: &mut [u8]) -> f64 {
    Copies::new(SOURCES).run(to)
}

/// Copies of a page between places that are in no cache, in large pages, as a pool's frames are where the kernel has such.
pub struct PageCopies {
    from: Allocated,
    to: Allocated,
    page_bytes: usize,
    next: usize,
}

impl PageCopies {
    /// What the places take on either side: more than caches do.
    const SIDE_BYTES: usize = 64 << 20;

    pub fn new(page_bytes: usize) -> PageCopies {
        let side = || Allocated::new(PageCopies::SIDE_BYTES.next_multiple_of(page_bytes), true);
        PageCopies { from: side(), to: side(), page_bytes, next: 0 }
    }

    /// Seconds for one copy.
    pub fn run(&mut self) -> f64 {
        let offset = self.next * self.page_bytes;
        self.next = (self.next + 1) % PageCopies::SIDE_BYTES.div_ceil(self.page_bytes);
        let [from, to] = [&self.from, &self.to].map(|side| side.start().wrapping_add(offset));
        let start = Instant::now();
        // SAFETY: both sides are whole pages long and this value's own, and `next` stays inside.
        unsafe { black_box(to).copy_from_nonoverlapping(black_box(from), self.page_bytes) };
        start.elapsed().as_secs_f64()
    }
}

/// The middle one; of an even number the lower.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The least value that the given part of the values does not exceed.
pub fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (part * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

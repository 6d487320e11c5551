//! Pages read by one rank, by location: in their home's pool, in a third rank's pool, or on the home's disk.

use crate::baseline::median;
use crate::plan::Spec;
use crate::rank::{Rank, fail};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::Instant;
use vgasnet_measuring::memory::Memory;
use vgasnet_measuring::progress;
use vgasnet_protocol::coherence::PageId;
use vgasnet_settings::{PAGE_BYTES_MAX, page_bytes_min};

/// The home, the reader, and a third rank.
pub const RANKS: u32 = 3;

const HOME: u32 = 0;

const READER: u32 = 1;

const THIRD: u32 = 2;

/// Alternating passes of gets and copies of pages that stay in a neighbour's pool, a few milliseconds each.
const PASSES: usize = 9;

/// The smallest page in the paper's figure.
const PAPER_BYTES_MIN: u64 = 8 << 10;

/// Measurements of the reader by round.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Found {
    pub home_pool_seconds_each: Vec<f64>,
    pub third_pool_seconds_each: Vec<f64>,
    pub home_disk_seconds_each: Vec<f64>,
    /// Copies from the same pools, alternating with the gets, without page tables and protocol.
    pub home_raw_seconds_each: Vec<f64>,
    pub third_raw_seconds_each: Vec<f64>,
}

/// The page sizes to measure: the sizes in the paper's figure allowed by this system.
pub fn pages_bytes() -> impl Iterator<Item = u64> {
    let first = PAPER_BYTES_MIN.max(page_bytes_min());
    std::iter::successors(Some(first), |bytes| Some(bytes * 2)).take_while(|bytes| *bytes <= PAGE_BYTES_MAX)
}

pub fn run(rank: &Rank, spec: &Spec) -> Found {
    let mut buffer = Memory::shared(rank.page_bytes);
    if rank.is_first() {
        offsets(rank, spec).for_each(|offset| rank.put(HOME, offset, buffer.bytes()));
    }
    let mut found = Found::default();
    // The system has to find memory for unused frames.
    measure(rank, spec, &mut buffer, None);
    let bar = progress::bar(rank.is_first(), "pages", u64::from(spec.repeat));
    for _ in 0..spec.repeat {
        let home = measure(rank, spec, &mut buffer, Some(HOME));
        let third = measure(rank, spec, &mut buffer, Some(THIRD));
        let disk = measure(rank, spec, &mut buffer, None);
        found.home_pool_seconds_each.push(home.get);
        found.home_raw_seconds_each.push(home.copy);
        found.third_pool_seconds_each.push(third.get);
        found.third_raw_seconds_each.push(third.copy);
        found.home_disk_seconds_each.push(disk.get);
        bar.inc(1);
    }
    found
}

fn offsets(rank: &Rank, spec: &Spec) -> impl Iterator<Item = u64> + use<> {
    (0..spec.data_bytes).step_by(rank.page_bytes)
}

/// Times of the reader for all pages.
struct Times {
    get: f64,
    copy: f64,
}

/// Times for the reader to get all pages, and to copy them from the pool of `holder`. The pages are only in this pool,
/// or in none. Collective.
fn measure(rank: &Rank, spec: &Spec, buffer: &mut Memory, holder: Option<u32>) -> Times {
    rank.barrier();
    rank.empty_pool();
    rank.barrier();
    if holder == Some(rank.me) {
        get(rank, spec, buffer);
    }
    rank.barrier();
    let mut each: [Vec<f64>; 2] = Default::default();
    if rank.me == READER {
        let is_elsewhere = |offset| holder.is_some_and(|holder| rank.is_open_at(holder, offset) == Some(false));
        if offsets(rank, spec).any(is_elsewhere) {
            fail("a page is not in the pool that is to be measured; give a larger --pool");
        }
        // Pages from the disk are in the reader's pool afterwards.
        for _ in 0..if holder.is_some() { PASSES } else { 1 } {
            each[0].push(seconds(|| get(rank, spec, buffer)));
            each[1].extend(holder.map(|holder| seconds(|| copy(rank, spec, buffer, holder))));
        }
    }
    rank.barrier();
    let median = |each: &Vec<f64>| if each.is_empty() { 0.0 } else { median(each) };
    let all = rank.gather([median(&each[0]).to_bits(), median(&each[1]).to_bits(), 0, 0]);
    let [get, copy, ..] = all[READER as usize].map(f64::from_bits);
    Times { get, copy }
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn get(rank: &Rank, spec: &Spec, buffer: &mut Memory) {
    offsets(rank, spec).for_each(|offset| rank.get(HOME, offset, black_box(buffer.bytes())));
}

/// Copies the pages from the pool of `holder`.
fn copy(rank: &Rank, spec: &Spec, buffer: &mut Memory, holder: u32) {
    let Some(memory) = rank.runtime.space().memories.get(holder as usize) else {
        fail("a neighbour's memory is not mapped")
    };
    for index in 0..(spec.data_bytes / rank.page_bytes as u64) as u32 {
        let frame = memory.table.find(PageId::of_segment(vgasnet_conduit::Rank(HOME), index));
        let Some(frame) = frame else {
            fail("a page is not in the pool that is to be measured any more; give a larger --pool")
        };
        let from = memory.pool.frame(frame);
        // SAFETY: frame and buffer both have the size of a page. The frame stays mapped. All other ranks wait for this
        // one, so the frame is not written.
        unsafe { from.copy_to_nonoverlapping(black_box(buffer.bytes()).as_mut_ptr(), rank.page_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_of_the_papers_figure_is_measured_that_is_allowed() {
        let all: Vec<u64> = pages_bytes().collect();
        assert_eq!((all[0], all.last()), (PAPER_BYTES_MIN.max(page_bytes_min()), Some(&PAGE_BYTES_MAX)));
        assert!(all.windows(2).all(|pair| pair[1] == 2 * pair[0]));
    }
}

//! Pages that one rank reads, by where they are: in the pool of their home, in that of a third rank, or on the home's disk.

use crate::memory::Memory;
use crate::plan::Spec;
use crate::progress;
use crate::rank::{Rank, fail};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::Instant;
use vgasnet::settings::{PAGE_BYTES_MAX, PAGE_BYTES_MIN};
use vgasnet_protocol::coherence::PageId;

/// The home, the reader, and a third rank.
pub const RANKS: u32 = 3;

const HOME: u32 = 0;

const READER: u32 = 1;

const THIRD: u32 = 2;

/// The least page of the paper's figure.
const PAPER_BYTES_MIN: u64 = 8 << 10;

/// Measurements of the reader, round by round.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Found {
    pub home_pool_seconds_each: Vec<f64>,
    pub third_pool_seconds_each: Vec<f64>,
    pub home_disk_seconds_each: Vec<f64>,
    /// Copies out of the home's pool, past page tables and protocol.
    pub raw_seconds_each: Vec<f64>,
}

/// The sizes of pages that are measured.
pub fn pages_bytes() -> impl Iterator<Item = u64> {
    let first = PAPER_BYTES_MIN.max(PAGE_BYTES_MIN);
    std::iter::successors(Some(first), |bytes| Some(bytes * 2)).take_while(|bytes| *bytes <= PAGE_BYTES_MAX)
}

pub fn run(rank: &Rank, spec: &Spec) -> Found {
    let mut buffer = Memory::shared(rank.page_bytes);
    if rank.is_first() {
        offsets(rank, spec).for_each(|offset| rank.put(HOME, offset, buffer.bytes()));
    }
    let mut found = Found::default();
    // The system has to find memory for frames that were never used.
    measure(rank, spec, &mut buffer, None);
    let bar = progress::bar(rank.is_first(), "pages", u64::from(spec.repeat));
    for _ in 0..spec.repeat {
        let home_pool = measure(rank, spec, &mut buffer, Some(HOME));
        let raw = if rank.me == READER { seconds(|| copy(rank, spec, &mut buffer)) } else { 0.0 };
        let third_pool = measure(rank, spec, &mut buffer, Some(THIRD));
        let home_disk = measure(rank, spec, &mut buffer, None);
        let all = rank.gather([home_pool, raw, third_pool, home_disk].map(f64::to_bits));
        let [home_pool, raw, third_pool, home_disk] = all[READER as usize].map(f64::from_bits);
        found.home_pool_seconds_each.push(home_pool);
        found.raw_seconds_each.push(raw);
        found.third_pool_seconds_each.push(third_pool);
        found.home_disk_seconds_each.push(home_disk);
        bar.inc(1);
    }
    found
}

fn offsets(rank: &Rank, spec: &Spec) -> impl Iterator<Item = u64> + use<> {
    (0..spec.data_bytes).step_by(rank.page_bytes)
}

/// The time in which the reader gets all pages, which are in the pool of `holder` only, or in none. Collective.
fn measure(rank: &Rank, spec: &Spec, buffer: &mut Memory, holder: Option<u32>) -> f64 {
    rank.barrier();
    rank.empty_pool();
    rank.barrier();
    if holder == Some(rank.me) {
        get(rank, spec, buffer);
    }
    rank.barrier();
    let mut time = 0.0;
    if rank.me == READER {
        let is_elsewhere = |offset| holder.is_some_and(|holder| rank.is_open_at(holder, offset) == Some(false));
        if offsets(rank, spec).any(is_elsewhere) {
            fail("a page is not in the pool that is to be measured; give a larger --pool");
        }
        time = seconds(|| get(rank, spec, buffer));
    }
    rank.barrier();
    time
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn get(rank: &Rank, spec: &Spec, buffer: &mut Memory) {
    offsets(rank, spec).for_each(|offset| rank.get(HOME, offset, black_box(buffer.bytes())));
}

/// Copies the pages out of the home's memory.
fn copy(rank: &Rank, spec: &Spec, buffer: &mut Memory) {
    let Some(memory) = &rank.runtime.space().memories[HOME as usize] else { fail("the home's memory is not mapped") };
    for index in 0..(spec.data_bytes / rank.page_bytes as u64) as u32 {
        let frame = memory.table.find(PageId::of_segment(vgasnet_conduit::Rank(HOME), index));
        let Some(frame) = frame else { fail("a page is not in the home's pool; give a larger --pool") };
        let from = memory.pool.frame(frame);
        // SAFETY: a frame has the size of a page, as the buffer has, and stays mapped. All other ranks wait for this one, so
        // nobody writes to it now.
        unsafe { from.copy_to_nonoverlapping(black_box(buffer.bytes()).as_mut_ptr(), rank.page_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_of_the_papers_figure_is_measured_that_is_allowed() {
        let all: Vec<u64> = pages_bytes().collect();
        assert_eq!((all[0], all.last()), (PAPER_BYTES_MIN.max(PAGE_BYTES_MIN), Some(&PAGE_BYTES_MAX)));
        assert!(all.windows(2).all(|pair| pair[1] == 2 * pair[0]));
    }
}

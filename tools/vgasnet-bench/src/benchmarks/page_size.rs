//! Pages read by one rank, by location: in their home's pool, in a third rank's pool, or on the home's disk.

use crate::Stop;
use crate::baseline::median;
use crate::benchmark::Benchmark;
use crate::options::{Judging, Setup};
use crate::plan::{Job, Spec};
use crate::plot::Chart;
use crate::rank::{Rank, fail};
use crate::report::{Bound, Figures};
use crate::rows::Row;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::Instant;
use vgasnet_measuring::memory::Memory;
use vgasnet_measuring::progress;
use vgasnet_protocol::coherence::PageId;
use vgasnet_settings::{PAGE_BYTES_MAX, page_bytes_min, parse_size};

/// The home, the reader, and a third rank.
const RANKS: u32 = 3;

const HOME: u32 = 0;

const READER: u32 = 1;

const THIRD: u32 = 2;

/// Alternating passes of gets and copies of pages that stay in a neighbour's pool, a few milliseconds each.
const PASSES: usize = 9;

/// The smallest page in the paper's figure.
const PAPER_BYTES_MIN: u64 = 8 << 10;

/// Pages of this size and more are to arrive as fast as a copy.
const LARGE_PAGE_BYTES: usize = 1 << 20;

/// The page sizes to measure: the sizes in the paper's figure allowed by this system.
fn pages_bytes() -> impl Iterator<Item = u64> {
    let first = PAPER_BYTES_MIN.max(page_bytes_min());
    std::iter::successors(Some(first), |bytes| Some(bytes * 2)).take_while(|bytes| *bytes <= PAGE_BYTES_MAX)
}

/// Throughput of one of three ranks reading pages, by their size and location, compared with a copy from the same
/// memory
#[derive(Args, Serialize, Deserialize)]
pub struct PageSize {
    #[command(flatten)]
    setup: Setup,

    /// Data read in each measurement, in whole pages, at least two
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = parse_size)]
    size: u64,

    #[command(flatten)]
    judging: Judging,
}

impl Benchmark for PageSize {
    const NAME: &'static str = "page-size";
    const CHARTS: &'static [Chart] = &[
        Chart::bars(
            "Pages in the home's pool, read by one rank; in grey a copy out of a pool",
            "",
            "home_pool_bytes_per_second",
            "home_raw_bytes_per_second",
        ),
        Chart::bars(
            "Pages in the pool of a third rank, read by one rank; in grey a copy out of a pool",
            "",
            "third_pool_bytes_per_second",
            "third_raw_bytes_per_second",
        ),
        Chart::bars(
            "Pages on the home's disk, read by one rank; in grey a copy out of a pool",
            "",
            "home_disk_bytes_per_second",
            "home_raw_bytes_per_second",
        ),
    ];

    fn plan(&self) -> Result<Vec<Job>, Stop> {
        let job = |setup: Setup| {
            let job = Job::new(self, RANKS, &setup)?;
            let page_bytes = job.config.page_bytes;
            let job = job.with_pages(self.size.max(2 * page_bytes), 0)?;
            let pages = job.spec.data_bytes / page_bytes;
            job.with_frames(pages)
        };
        self.setup.in_pages(pages_bytes()).into_iter().map(job).collect()
    }

    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
        let mut buffer = Memory::shared(rank.page_bytes);
        if rank.is_first() {
            offsets(rank, spec).for_each(|offset| rank.put(HOME, offset, buffer.bytes()));
        }
        // The system has to find memory for unused frames.
        measure(rank, spec, &mut buffer, None);
        let bar = progress::bar(rank.is_first(), "pages", u64::from(spec.repeat));
        let mut seconds_each: [Vec<f64>; 5] = Default::default();
        for _ in 0..spec.repeat {
            let home = measure(rank, spec, &mut buffer, Some(HOME));
            let third = measure(rank, spec, &mut buffer, Some(THIRD));
            let disk = measure(rank, spec, &mut buffer, None);
            let round = [home.get, third.get, disk.get, home.copy, third.copy];
            seconds_each.iter_mut().zip(round).for_each(|(each, seconds)| each.push(seconds));
            bar.inc(1);
        }
        figures(rank, spec, &seconds_each)
    }
}

/// Memory of a third rank is never slower than the disk.
fn figures(rank: &Rank, spec: &Spec, seconds_each: &[Vec<f64>; 5]) -> Figures {
    let places = ["home_pool", "third_pool", "home_disk", "home_raw", "third_raw"];
    let mut row = Row::default().keep("size_bytes", spec.data_bytes);
    for (place, each) in places.iter().zip(seconds_each) {
        row = row.show(&format!("{place}_bytes_per_second"), spec.data_bytes as f64 / median(each));
        row = row.keep(&format!("{place}_seconds_each"), each);
    }
    let [home, third, disk, home_raw, third_raw] = places.map(|place| row.number(&format!("{place}_bytes_per_second")));
    let meaning = "pool of a third rank to disk of the home";
    let is_large = |ratio: f64| (rank.page_bytes >= LARGE_PAGE_BYTES).then_some(ratio);
    Figures::of(row)
        .target("third_pool_to_home_disk", meaning, third / disk, Bound::AtLeast, 1.0)
        .target("home_pool_to_raw", "pool of the home to a copy", is_large(home / home_raw), Bound::AtLeast, 0.9)
        .target("third_pool_to_raw", "pool of a third rank to a copy", is_large(third / third_raw), Bound::AtLeast, 0.9)
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

//! Pages read by one rank, by location: in their home's pool, in a third rank's pool, or on the home's disk.

use crate::Stop;
use crate::prelude::*;
use vgasnet_protocol::coherence::PageId;
use vgasnet_settings::{PAGE_BYTES_MAX, page_bytes_min};

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
        let mut row = Row::default().keep("size_bytes", spec.data_bytes);
        for _ in 0..spec.repeat {
            let home = measure(rank, spec, &mut buffer, Some(HOME));
            let third = measure(rank, spec, &mut buffer, Some(THIRD));
            let disk = measure(rank, spec, &mut buffer, None);
            let round = [home.get, third.get, disk.get, home.copy, third.copy];
            PLACES.iter().zip(round).for_each(|(place, seconds)| row.add(&format!("{place}_seconds"), seconds));
            bar.inc(1);
        }
        figures(rank, spec, row)
    }
}

const PLACES: [&str; 5] = ["home_pool", "third_pool", "home_disk", "home_raw", "third_raw"];

/// Memory of a third rank is never slower than the disk.
fn figures(rank: &Rank, spec: &Spec, row: Row) -> Figures {
    let row = PLACES.iter().fold(row, |row, place| {
        let seconds = format!("{place}_seconds");
        let rate = spec.data_bytes as f64 / row.number(&seconds);
        row.hide(&[&seconds]).show(&format!("{place}_bytes_per_second"), rate)
    });
    let row = row
        .ratio("home_pool_to_copy", "home_pool_bytes_per_second", "home_raw_bytes_per_second")
        .ratio("third_pool_to_copy", "third_pool_bytes_per_second", "third_raw_bytes_per_second")
        .ratio("home_disk_to_copy", "home_disk_bytes_per_second", "home_raw_bytes_per_second");
    let [home, third, disk, home_raw, third_raw] = PLACES.map(|place| row.number(&format!("{place}_bytes_per_second")));
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

//! Loads of shuffled blocks of the own segment, and of a file mapped by a process with the same memory.

use super::cyclic::load;
use crate::Stop;
use crate::mapped::{self, NO_MAPPED_FILE, Process, written_file};
use crate::prelude::*;

/// The unit of shuffling. The size of the data is a multiple of it.
const BLOCK_BYTES: usize = 1 << 20;

const PAGE_BYTES_DEFAULT: u64 = 64 << 10;

/// Times of the same work differ by a few percent.
const NOISE: f64 = 1.1;

/// Loads of shuffled blocks of 1 MiB, with several pools, compared with a mapped file with the same memory
#[derive(Args, Serialize, Deserialize)]
#[command(mut_arg("pool", |pool| pool.hide(true)), mut_arg("page", |page| page.help("Page size [default: 64K]")))]
#[command(mut_arg("check", |check| check.help(CHECK_ALL)))]
pub struct Blocks {
    #[command(flatten)]
    setup: Setup,

    /// DRAM cache of the rank; several sizes are measured one after another, in ascending order
    #[arg(long, value_name = "SIZE", default_value = "32M,128M,512M,2G", value_delimiter = ',', value_parser = parse_size)]
    pools: Vec<u64>,

    /// Data, in whole blocks
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_size)]
    size: u64,

    /// Exit with status 1 if a figure is worse than wanted
    #[arg(long)]
    check: bool,
}

impl Benchmark for Blocks {
    const NAME: &'static str = "blocks";

    fn plan(&self) -> Result<Vec<Job>, Stop> {
        let job = |pool: &u64| {
            let page = self.setup.page.or(Some(PAGE_BYTES_DEFAULT));
            let setup = Setup { pool: Some(*pool), page, ..self.setup.clone() };
            let job = Job::new(self, 1, &setup)?.with_frames(FRAMES_MIN)?;
            let unit_bytes = job.config.page_bytes.max(BLOCK_BYTES as u64);
            let data_bytes = self.size.max(1).next_multiple_of(unit_bytes);
            Ok(Job { mapped_processes: 1, ..job.with_data(data_bytes, 1) })
        };
        self.pools.iter().map(job).collect()
    }

    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
        let mapped = Process::<Vec<f64>>::start(spec).step();
        rank.fill(0, spec.data_bytes, |_, page| page.fill(1));
        rank.write_back();
        rank.empty_pool();
        // SAFETY: the segment starts with the data, and the data is no longer written.
        let seconds_each = unsafe { rounds(rank.own_segment(), spec) };
        let row = Row::default().keep("data_bytes", spec.data_bytes).median("seconds", &seconds_each);
        let row = match &mapped {
            Ok(each) => row.median("mapped_seconds", each),
            Err(why) => row.show("mapped_seconds", f64::NAN).keep("mapped_not_run", why),
        };
        let row = row.speedup("mapped_to_segment", "seconds", "mapped_seconds");
        let ratio = mapped.is_ok().then_some(row.number("mapped_to_segment"));
        Figures::of(row).not_run(mapped.err().map(|why| format!("{NO_MAPPED_FILE}: {why}"))).target(
            "blocks_to_mmap",
            "mmap in as much memory to this",
            ratio,
            Bound::AtLeast,
            1.0,
        )
    }

    fn serve(&self, spec: &Spec) {
        mapped::serve(spec, |mapping| {
            let memory = written_file(mapping, spec.data_bytes, |_, _| ());
            // SAFETY: the mapping is as long as the data. The file has no other user.
            move || unsafe { rounds(memory.start(), spec) }
        });
    }

    /// A larger pool is not slower than the previous, smaller one.
    fn compare(&self, _job: &Job, mut figures: Figures, before: &[Run], _peak_bytes: Option<u64>) -> Figures {
        let smaller = before.last().map(|run| run.figures.row.number("seconds"));
        let ratio = smaller.map(|smaller| figures.row.number("seconds") / smaller);
        figures.row = figures.row.keep("smaller_pool_seconds", smaller);
        figures.target("to_smaller_pool", "time to that with the smaller pool", ratio, Bound::AtMost, NOISE)
    }
}

/// Loads all blocks in a new random order each round.
///
/// # Safety
/// The data lies at `start` and is not written.
unsafe fn rounds(start: *const u8, spec: &Spec) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(spec.seed);
    let mut order: Vec<usize> = (0..spec.data_bytes as usize / BLOCK_BYTES).collect();
    let round = |_| {
        random.shuffle(&mut order);
        let begun = Instant::now();
        for block in &order {
            // SAFETY: the block is part of the data.
            unsafe { load(start.add(block * BLOCK_BYTES), BLOCK_BYTES) };
        }
        begun.elapsed().as_secs_f64()
    };
    (0..spec.repeat).map(round).collect()
}

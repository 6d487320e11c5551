//! Repeated random gets of many sizes, with and without the cache of gets: the micro-benchmark of Di Girolamo, Vella
//! and Hoefler, "Transparent Caching for RMA Systems", IPDPS 2017, Figures 7 to 11.
//!
//! Rank 0 reads. The other ranks have the bytes in their pools, and appear to be on other hosts. Together they have
//! five times rank 0's pool, so a small number of pages move there.

mod by_mpi;
mod keys;
mod measure;

use crate::Stop;
use crate::launch::run_job;
use crate::prelude::*;
use keys::fill_page;
use measure::Measuring;

/// Rank 0, and the ranks it reads from.
const RANKS: u32 = 8;

/// The part of a home's pool filled by its data.
const PART_OF_POOL: (u64, u64) = (3, 4);

/// The sizes of disjoint gets are powers of two up to this one.
const SIZE_POWERS: u32 = 17;

const POOL_BYTES_DEFAULT: u64 = 32 << 20;
const PAGE_BYTES_DEFAULT: u64 = 1 << 20;

/// Cache memory for all successive gets of the size measurement, and the minimum.
const CACHE_BYTES_OF_SIZES: u64 = 1 << 30;
const CACHE_BYTES_MIN: u64 = 64 << 10;

/// Minimum number of draws to judge the used fraction of the cache memory.
const DRAWS_OF_OCCUPANCY: u32 = 100_000;

const POOL: &str = "DRAM cache of each rank [default: VGASNET_POOL_SIZE, else 32M]";
const PAGE: &str = "Page size [default: VGASNET_PAGE_SIZE, else 1M]";

/// Repeated random gets of many sizes, with and without the cache of gets, by size and by memory of the cache
#[derive(Args, Clone, Serialize, Deserialize)]
#[command(mut_arg("pool", |pool| pool.help(POOL)), mut_arg("page", |page| page.help(PAGE)))]
#[command(mut_arg("check", |check| check.help(CHECK_ALL)))]
pub struct Gets {
    #[command(flatten)]
    setup: Setup,

    /// Number of distinct gets
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = within(17..=1_000_000))]
    distinct: u32,

    /// Number of draws among them
    #[arg(long, visible_alias = "size", value_name = "N", default_value_t = 20_000, value_parser = within(1..=100_000_000))]
    draws: u32,

    /// Whether the gets share bytes
    #[arg(long, value_enum, default_value_t = Ranges::Disjoint)]
    ranges: Ranges,

    /// Distribution of the draws
    #[arg(long, value_enum, default_value_t = Sampling::Normal)]
    sampling: Sampling,

    /// For normal draws: the standard deviation is the number of distinct gets divided by this
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = within(1..=1000))]
    sigma: u32,

    /// Memory of the cache; several sizes are measured one after another [default: 1/8, 1/4, 1/2, 1 and 2 times the
    /// bytes of all distinct gets]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = parse_size)]
    cache: Vec<u64>,

    /// Do not measure `MPI_Get`, with and without a library that caches it
    #[arg(long)]
    no_mpi: bool,

    #[command(flatten)]
    mpi: MpiOptions,

    #[command(flatten)]
    judging: Judging,

    /// Memory for cached copies in a job. `None`: gets of each size are measured instead
    #[arg(skip)]
    cache_bytes: Option<u64>,
}

/// Starts and lengths of the distinct gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Ranges {
    /// Powers of two from 1 to 64K, adjacent
    Disjoint,
    /// 4 bytes to 64K, each starting 4 bytes after the previous one in its page
    Overlapping,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Sampling {
    /// Around the middle one
    Normal,
    /// All equally likely
    Uniform,
}

impl Benchmark for Gets {
    const NAME: &'static str = "gets";
    const DATA: Data = Data::Each;
    const IS_SMALL: bool = true;

    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
        rank.fill(rank.me, spec.data_bytes, |offset, page| fill_page(rank.me, offset, page));
        rank.barrier();
        let figures = rank.is_first().then(|| {
            fill_pool(rank, spec);
            Measuring::new(rank, spec, self).run()
        });
        rank.barrier();
        figures.unwrap_or_default()
    }

    /// The first job measures sizes. The sizes of the caches depend on it.
    fn run(&self) -> Result<Report, Stop> {
        if let Some(bytes) = self.cache.iter().find(|bytes| **bytes < CACHE_BYTES_MIN) {
            return Err(Stop::usage(format!("--cache {bytes}: give at least {}", format_size(CACHE_BYTES_MIN))));
        }
        let sizes = self.job(None)?;
        let mut report = Report::of_jobs(self, std::slice::from_ref(&sizes));
        let mut figures = run_job(&sizes)?;
        let distinct_bytes = figures.row.number("distinct_bytes") as u64;
        let parts = [(1, 8), (1, 4), (1, 2), (1, 1), (2, 1)];
        let parts = parts.map(|(of, part)| (distinct_bytes * of / part).max(CACHE_BYTES_MIN));
        let caches = if self.cache.is_empty() { parts.to_vec() } else { self.cache.clone() };
        figures = by_mpi::add(figures, self);
        report.runs.push(Run { setting: sizes.setting(Self::NAME), figures });
        for cache_bytes in caches {
            let job = self.job(Some(cache_bytes))?;
            report.runs.push(Run { figures: run_job(&job)?, setting: job.setting(Self::NAME) });
        }
        Ok(report)
    }
}

impl Gets {
    fn job(&self, cache_bytes: Option<u64>) -> Result<Job, Stop> {
        let setup = self.setup.with_pool(POOL_BYTES_DEFAULT).with_page(PAGE_BYTES_DEFAULT);
        let options = Gets { cache_bytes, ..self.clone() };
        // Two pages of each home are in rank 0's pool, and two are not.
        let mut job = Job::in_modes(&options, RANKS, true, false, &setup)?.with_frames(FRAMES_MIN)?;
        let bytes = cache_bytes.unwrap_or(CACHE_BYTES_OF_SIZES);
        job.vars.push(("VGASNET_GET_CACHE_SIZE", bytes.to_string()));
        let (pool_bytes, page_bytes) = (job.config.pool_bytes, job.config.page_bytes);
        let job = job.with_data(pool_bytes * PART_OF_POOL.0 / PART_OF_POOL.1 / page_bytes * page_bytes, 0);
        job.check_space()?;
        Ok(job)
    }
}

/// Leaves no frame of rank 0's pool free. It holds rank 0's own pages, and whole pages of the last home, which are
/// never drawn.
fn fill_pool(rank: &Rank, spec: &Spec) {
    let mut page = vec![0; rank.page_bytes];
    let left_bytes = rank.pool_bytes - spec.data_bytes;
    for offset in (0..left_bytes.min(spec.data_bytes)).step_by(rank.page_bytes) {
        rank.get(RANKS - 1, offset, &mut page);
    }
}

/// The figures of all sizes: rows of the sizes, and the ratios of scans without reuse, each to one without the cache.
fn of_sizes(distinct_bytes: u64, rows: Vec<Row>, scans: &[f64]) -> Figures {
    let row = |size_bytes: u64| rows.iter().find(|row| row.is("size_bytes", size_bytes));
    let [hit, copy] =
        [(8, "hit_ns"), (4 << 10, "copy_to_hit")].map(|(size, name)| row(size).map(|row| row.number(name)));
    let judged = rows.iter().filter(|row| row.number("size_bytes") >= 8.0);
    let misses: Vec<f64> = judged.map(|row| row.number("miss_to_uncached")).collect();
    let scan = median(scans);
    let sizes = Row::default().show("scan_to_uncached", scan).rows("rows", rows);
    let paper = "the paper, on a Cray XC50: a hit 9.3 (4 KiB) and 3.7 (16 KiB) times as fast as an uncached get; this is another \
                 machine";
    Figures::of(Row::default().keep("distinct_bytes", distinct_bytes).row("sizes", sizes))
        .remark(paper)
        .target("hit_8_bytes_ns", "hit of 8 bytes, ns", hit, AtMost, 60.0)
        .target("hit_4_kib_to_memcpy", "hit of 4 KiB to memcpy", copy, AtLeast, 0.8)
        .target("miss_to_uncached", "miss to an uncached get, median of sizes", median(&misses), AtMost, 1.1)
        .target("scan_to_uncached", "scan without reuse to uncached", scan, AtMost, 1.03)
}

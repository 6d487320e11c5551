//! Repeated random gets of many sizes, with and without the cache of gets: the micro-benchmark of Di Girolamo, Vella
//! and Hoefler, "Transparent Caching for RMA Systems", IPDPS 2017, Figures 7 to 11.
//!
//! Rank 0 reads. The other ranks have the bytes in their pools, and appear to be on other hosts. Together they have
//! five times rank 0's pool, so a small number of pages move there.

pub mod by_mpi;
mod keys;
mod measure;

use crate::calls::readonly::Stats;
use crate::options::{Ranges, Sampling};
use crate::plan::Spec;
use crate::rank::{Rank, fail};
use keys::fill_page;
use measure::Measuring;
use serde::{Deserialize, Serialize};

/// Rank 0, and the ranks it reads from.
pub const RANKS: u32 = 8;

/// The part of a home's pool filled by its data.
const PART_OF_POOL: (u64, u64) = (3, 4);

/// The sizes of disjoint gets are powers of two up to this one.
pub const SIZE_POWERS: u32 = 17;

/// Parameters of the draws, for rank 0.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Orders {
    pub ranges: Ranges,
    pub sampling: Sampling,
    pub sigma: u32,
    pub distinct: u32,
    pub draws: u32,
    /// Memory for cached copies. `None`: gets of each size are measured instead.
    pub cache_bytes: Option<u64>,
}

/// Successive gets of one size. Times are medians of rounds.
#[derive(Debug, Serialize, Deserialize)]
pub struct Latency {
    pub size_bytes: usize,
    pub uncached_us_each: Vec<f64>,
    /// The first get of its bytes in a read-only range.
    pub miss_us_each: Vec<f64>,
    pub hit_ns_each: Vec<f64>,
    /// A copy from ordinary memory, over the same number of places.
    pub copy_ns_each: Vec<f64>,
}

/// The outcome of a get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    Hit,
    Partial,
    Direct,
    Conflicting,
    Capacity,
    Failing,
}

impl Class {
    pub const ALL: [Class; 6] =
        [Class::Hit, Class::Partial, Class::Direct, Class::Conflicting, Class::Capacity, Class::Failing];

    /// The number of gets with this outcome.
    fn count(self, stats: &Stats) -> u64 {
        match self {
            Class::Hit => stats.hits,
            Class::Partial => stats.partial,
            Class::Direct => stats.direct,
            Class::Conflicting => stats.conflicting,
            Class::Capacity => stats.capacity,
            Class::Failing => stats.failing,
        }
    }
}

/// Gets of each size.
#[derive(Debug, Serialize, Deserialize)]
pub struct Sizes {
    pub latencies: Vec<Latency>,
    /// Seconds for gets of 512 distinct bytes each, in a read-only range and outside.
    pub scan_seconds_each: Vec<f64>,
    pub uncached_scan_seconds_each: Vec<f64>,
}

/// All draws with this memory for copies.
#[derive(Debug, Serialize, Deserialize)]
pub struct Drawn {
    pub cache_bytes: u64,
    /// For all gets by round, with the cache and without.
    pub seconds_each: Vec<f64>,
    pub uncached_seconds_each: Vec<f64>,
    /// Statistics of the last round.
    pub stats: Stats,
    /// The used fraction of the memory for copies, after each twentieth of the draws in the last round.
    pub occupancy: Vec<f64>,
    /// Median microseconds of a get by outcome, in the last round.
    pub class_us: Vec<(Class, f64)>,
}

/// Measurements of rank 0: one of the two.
#[derive(Debug, Serialize, Deserialize)]
pub struct Found {
    pub distinct_bytes: u64,
    pub sizes: Option<Sizes>,
    pub drawn: Option<Drawn>,
}

/// The bytes of a home.
pub fn data_bytes(pool_bytes: u64, page_bytes: u64) -> u64 {
    pool_bytes * PART_OF_POOL.0 / PART_OF_POOL.1 / page_bytes * page_bytes
}

pub fn run(rank: &Rank, spec: &Spec) -> Option<Found> {
    let Some(orders) = &spec.gets else { fail("there are no orders for gets") };
    let mut page = vec![0; rank.page_bytes];
    for offset in (0..spec.data_bytes).step_by(rank.page_bytes) {
        fill_page(rank.me, offset, &mut page);
        rank.put(rank.me, offset, &page);
    }
    rank.barrier();
    let found = rank.is_first().then(|| {
        fill_pool(rank, spec, &mut page);
        Measuring::new(rank, spec, orders).run()
    });
    rank.barrier();
    found
}

/// Leaves no frame of rank 0's pool free. It holds rank 0's own pages, and whole pages of the last home, which are
/// never drawn.
fn fill_pool(rank: &Rank, spec: &Spec, page: &mut [u8]) {
    let left_bytes = rank.pool_bytes - spec.data_bytes;
    for offset in (0..left_bytes.min(spec.data_bytes)).step_by(rank.page_bytes) {
        rank.get(RANKS - 1, offset, page);
    }
}

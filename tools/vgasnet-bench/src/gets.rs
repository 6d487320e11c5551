//! Gets of many sizes that are drawn again and again, with and without the cache of gets: the micro-benchmark of Di Girolamo,
//! Vella and Hoefler, "Transparent Caching for RMA Systems", IPDPS 2017, Figures 7 to 11.
//!
//! Rank 0 reads, and the others have the bytes in their pools. They are as on other hosts. There are so many of them that what they
//! have is five times the pool of rank 0: pages that move there are few.

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

/// Rank 0, and those that it reads from.
pub const RANKS: u32 = 8;

/// The part of a home's pool that its data take.
const PART_OF_POOL: (u64, u64) = (3, 4);

/// The sizes of disjoint gets: powers of two up to this one.
pub const SIZE_POWERS: u32 = 17;

/// What is drawn, in the order of rank 0.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Orders {
    pub ranges: Ranges,
    pub sampling: Sampling,
    pub sigma: u32,
    pub distinct: u32,
    pub draws: u32,
    /// Memory for copies of what is drawn; none: gets of each size are measured instead.
    pub cache_bytes: Option<u64>,
}

/// Gets of one size, one after the other. Times are medians of rounds.
#[derive(Debug, Serialize, Deserialize)]
pub struct Latency {
    pub size_bytes: usize,
    pub uncached_us_each: Vec<f64>,
    /// The first get of its bytes in a read-only range.
    pub miss_us_each: Vec<f64>,
    pub hit_ns_each: Vec<f64>,
    /// A copy out of ordinary memory, of as many places.
    pub copy_ns_each: Vec<f64>,
}

/// What became of a get.
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

    /// How often this was counted.
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
    /// Seconds of gets of 512 bytes of which none is got twice, in a read-only range and not.
    pub scan_seconds_each: Vec<f64>,
    pub uncached_scan_seconds_each: Vec<f64>,
}

/// All draws with so much memory for copies.
#[derive(Debug, Serialize, Deserialize)]
pub struct Drawn {
    pub cache_bytes: u64,
    /// Of all gets, round by round; of the same without copies.
    pub seconds_each: Vec<f64>,
    pub uncached_seconds_each: Vec<f64>,
    /// Of the last round.
    pub stats: Stats,
    /// The part of the memory that copies take, after each twentieth of the draws of the last round.
    pub occupancy: Vec<f64>,
    /// Microseconds of a get by what became of it, the median of the last round.
    pub class_us: Vec<(Class, f64)>,
}

/// Measurements of rank 0: one of the two.
#[derive(Debug, Serialize, Deserialize)]
pub struct Found {
    pub distinct_bytes: u64,
    pub sizes: Option<Sizes>,
    pub drawn: Option<Drawn>,
}

/// What a home has.
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

/// Has no frame of rank 0's pool free: its own pages are there, and whole pages of the last home, of which nothing is got.
fn fill_pool(rank: &Rank, spec: &Spec, page: &mut [u8]) {
    let left_bytes = rank.pool_bytes - spec.data_bytes;
    for offset in (0..left_bytes.min(spec.data_bytes)).step_by(rank.page_bytes) {
        rank.get(RANKS - 1, offset, page);
    }
}

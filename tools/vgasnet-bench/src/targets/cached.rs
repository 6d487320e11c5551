//! Targets of the benchmarks of cached gets.

use super::Bound::{AtLeast, AtMost};
use super::{Target, target};
use crate::baseline::median;
use crate::gets::by_mpi::ByMpi;
use crate::plan::Job;
use crate::programs::mpi::Network;
use crate::report::{GetsFigures, Way, WayRow};

/// Minimum number of draws to judge the used fraction of the cache memory.
const DRAWS_OF_OCCUPANCY: u32 = 100_000;

/// The targets of `gets`: for each size, or for draws with less cache memory than distinct bytes.
pub fn judge_gets(job: &Job, figures: &GetsFigures) -> Vec<Target> {
    let mut targets = Vec::new();
    if let Some(sizes) = &figures.sizes {
        targets
            .extend(sizes.row(8).map(|row| target("hit_8_bytes_ns", "hit of 8 bytes, ns", row.hit_ns, AtMost, 60.0)));
        let at_4_kib = sizes.row(4 << 10).map(|row| row.copy_to_hit);
        targets
            .extend(at_4_kib.map(|ratio| target("hit_4_kib_to_memcpy", "hit of 4 KiB to memcpy", ratio, AtLeast, 0.8)));
        let misses = sizes.rows.iter().filter(|row| row.latency.size_bytes >= 8).map(|row| row.miss_to_uncached);
        let misses = median(&misses.collect::<Vec<_>>());
        targets.push(target("miss_to_uncached", "miss to an uncached get, median of sizes", misses, AtMost, 1.1));
        targets.push(target(
            "scan_to_uncached",
            "scan without reuse to uncached",
            sizes.scan_to_uncached,
            AtMost,
            1.03,
        ));
        targets.extend(sizes.by_mpi.iter().flat_map(judge_mpi));
    }
    let drawn = figures.drawn.as_ref().filter(|drawn| drawn.drawn.stats.evicted > 0);
    let draws = job.spec.gets.as_ref().map_or(0, |orders| orders.draws);
    if let Some(drawn) = drawn.filter(|_| draws >= DRAWS_OF_OCCUPANCY) {
        targets.push(target("occupancy", "memory that copies take", drawn.occupancy_last, AtLeast, 0.9));
    }
    targets
}

/// Targets for the MPI library that caches gets.
fn judge_mpi(by_mpi: &ByMpi) -> Vec<Target> {
    let names = [
        (Network::Tcp, 4 << 10, "mpi_tcp_4_kib_to_hit", "MPI_Get + flush of 4 KiB, TCP, to a hit", 9.3),
        (Network::Tcp, 16 << 10, "mpi_tcp_16_kib_to_hit", "MPI_Get + flush of 16 KiB, TCP, to a hit", 3.7),
        (Network::SharedMemory, 4 << 10, "mpi_shared_4_kib_to_hit", "the same, 4 KiB, shared memory", 2.0),
    ];
    let judged = names.into_iter().filter_map(|(network, size_bytes, name, meaning, least)| {
        let row = by_mpi.rows.iter().find(|row| row.network == network && row.size_bytes == size_bytes)?;
        let is_cached = !row.cached_us_each.is_empty();
        is_cached
            .then(|| target(name, meaning, median(&row.plain_us_each) / median(&row.cached_us_each), AtLeast, least))
    });
    judged.collect()
}

fn seconds(rows: &[WayRow], way: Way, part: f64) -> Option<f64> {
    let same = |row: &&WayRow| row.way == way && row.part.is_none_or(|its| (its - part).abs() < 1e-9);
    rows.iter().find(same).map(|row| row.seconds)
}

/// The measured fractions of the remote bytes.
fn parts(rows: &[WayRow]) -> Vec<f64> {
    rows.iter().filter(|row| row.way == Way::Cached).filter_map(|row| row.part).collect()
}

/// Compared with uncached if all remote bytes have room, over vgasnet and over MPI with the caching library.
fn judge_full(rows: &[WayRow]) -> Vec<Target> {
    let full = parts(rows).into_iter().find(|part| *part >= 1.0);
    let ratio = |slow: Way, fast: Way| Some(seconds(rows, slow, full?)? / seconds(rows, fast, full?)?);
    let names = [
        (Way::Uncached, Way::Cached, "uncached_to_cached", "uncached to cached, memory for all"),
        (Way::Mpi, Way::MpiCached, "mpi_to_cached", "plain MPI to MPI cached, memory for all"),
    ];
    let judged = names
        .into_iter()
        .filter_map(|(slow, fast, name, meaning)| Some(target(name, meaning, ratio(slow, fast)?, AtLeast, 5.0)));
    judged.collect()
}

/// The targets of `lcc`.
pub fn judge_lcc(rows: &[WayRow]) -> Vec<Target> {
    let names = [
        (0.25, "quarter_to_faster", "time to the faster of both caches, 1/4"),
        (0.5, "half_to_faster", "time to the faster of both caches, 1/2"),
    ];
    let judged = names.into_iter().filter_map(|(part, name, meaning)| {
        let [both, pages, gets] = [Way::Both, Way::PageCache, Way::Cached].map(|way| seconds(rows, way, part));
        Some(target(name, meaning, both? / pages?.min(gets?), AtMost, 1.05))
    });
    judge_full(rows).into_iter().chain(judged).collect()
}

/// The targets of `barnes-hut`: the second at its worst amount of memory.
pub fn judge_barnes_hut(rows: &[WayRow]) -> Vec<Target> {
    let ratio = |part: f64| Some(seconds(rows, Way::DirectMapped, part)? / seconds(rows, Way::Cached, part)?);
    let least = parts(rows).into_iter().filter_map(ratio).min_by(f64::total_cmp);
    let (name, meaning) = ("direct_mapped_to_cached", "direct-mapped to cached, least");
    let least = least.map(|ratio| target(name, meaning, ratio, AtLeast, 1.5));
    judge_full(rows).into_iter().chain(least).collect()
}

//! Targets, and verdicts on runs.

mod cached;
mod files;
mod gasnet_ex;

pub use cached::{judge_barnes_hut, judge_gets, judge_lcc};
pub use files::judge_files;
pub use gasnet_ex::judge_gasnet_ex;

use crate::baseline::median;
use crate::disk::{Buffers, PlainFile};
use crate::options::Access;
use crate::plan::Job;
use crate::replacement::Row;
use crate::report::{
    AheadFigures, Best, BlockFigures, CollectiveThroughput, ListKind, Measured, PageSizeFigures, Rate, Ratio,
    SmallFigures, SmallRow, Throughput,
};
use crate::small::{IN_FLIGHT, Place};
use crate::stream::Way;
use crate::{cycle, faults, hit};
use Bound::{AtLeast, AtMost};
use serde::Serialize;

/// The good side of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    AtMost,
    AtLeast,
}

/// One figure, in the unit at the end of its name, and its bound.
#[derive(Debug, Serialize)]
pub struct Target {
    pub name: &'static str,
    #[serde(skip)]
    pub meaning: &'static str,
    pub measured: f64,
    pub bound: Bound,
    pub target: f64,
    /// The degree of success: 1 reaches the target exactly, more is better.
    pub ratio: f64,
    pub reached: bool,
}

fn target(name: &'static str, meaning: &'static str, measured: f64, bound: Bound, target: f64) -> Target {
    let ratio = if bound == AtMost { target / measured } else { measured / target };
    Target { name, meaning, measured, bound, target, ratio, reached: ratio >= 1.0 }
}

/// The targets of `hit`.
pub fn judge_hit(job: &Job, found: &hit::Found) -> Vec<Target> {
    let mut targets = judge_random_hits(&found.random_hits);
    if !job.spec.only_random {
        targets.extend(judge_one_place(job, found));
    }
    targets
}

/// Random gets, each kind at its worst.
fn judge_random_hits(hits: &[hit::RandomHits]) -> Vec<Target> {
    const OVER_LOAD_NS: f64 = 20.0;
    let kinds = [
        (false, "random_get_8_bytes_over_load_ns", "random 8-byte get over a load, own pool, ns"),
        (true, "random_get_8_bytes_neighbour_over_load_ns", "the same, neighbour's pool, ns"),
    ];
    let judged = kinds.into_iter().filter_map(|(neighbour, name, meaning)| {
        let of_kind = hits.iter().filter(|hits| hits.neighbour == neighbour);
        let worst = of_kind.map(hit::RandomHits::over_load_ns).max_by(f64::total_cmp)?;
        Some(target(name, meaning, worst, AtMost, OVER_LOAD_NS))
    });
    judged.collect()
}

fn judge_one_place(job: &Job, found: &hit::Found) -> Vec<Target> {
    let hit = |copies: &[f64], gets: &[f64]| median(copies) / median(gets);
    let one = hit(&found.copy_4_mib_one_source_seconds_each, &found.get_4_mib_hit_one_source_seconds_each);
    let turns = hit(&found.copy_4_mib_sources_in_turn_seconds_each, &found.get_4_mib_hit_sources_in_turn_seconds_each);
    let cold = median(&found.plain_seconds_each) / median(&found.cold_read_seconds_each);
    let allowed_bytes = u64::from(job.ranks) * job.rank_memory_bytes();
    let memory = found.pss_bytes_all_ranks as f64 / allowed_bytes as f64;
    let busy = median(&found.busy_home_32_mib_seconds_each);
    let small = median(&found.get_8_bytes_hit_ns_each);
    let neighbour = hit(&found.copy_4_mib_sources_in_turn_seconds_each, &found.get_4_mib_neighbour_seconds_each);
    vec![
        target("get_8_bytes_hit_ns", "8-byte get that hits, ns", small, AtMost, 60.0),
        target("get_4_mib_hit_one_source_to_memcpy", "4 MiB get that hits to memcpy, one source", one, AtLeast, 0.9),
        target("get_4_mib_hit_sources_in_turn_to_memcpy", "the same, sources in turn", turns, AtLeast, 0.9),
        target("get_4_mib_neighbour_to_memcpy", "the same, from a neighbour's pool", neighbour, AtLeast, 0.9),
        target("cold_read_to_plain", "cold sequential read to plain reads", cold, AtLeast, 0.7),
        target("busy_home_32_mib_seconds", "32 MiB from a rank that computes, s", busy, AtMost, 0.5),
        target("memory_to_allowed", "memory to ranks x (pool + 64 MiB)", memory, AtMost, 1.0),
    ]
}

/// The targets of `triad`: as fast as memory if the pool holds the arrays, else nearly as fast as the disk and faster
/// than the kernel's own paging. The last is judged only if it was measured.
pub fn judge_triad(measured: &Measured) -> Vec<Target> {
    match measured {
        Measured::InPool(found) => {
            let name = "in_pool_to_malloc";
            vec![target(name, "triad in the pool to malloc", found.segment_to_malloc, AtLeast, 0.98)]
        }
        Measured::OutOfCore(found) => {
            let mut targets = Vec::new();
            // With small pages, chance determines the number of pieces for the disk.
            for plain in found.plain.iter().filter(|plain| plain.found.buffers == Buffers::LargePages) {
                let (name, meaning) = match (plain.found.in_flight, plain.found.reads_what_it_writes) {
                    (1, false) => ("out_of_core_to_plain", "triad out of core to plain I/O"),
                    (1, true) => ("out_of_core_to_plain_reading_a", "the same, reading a too"),
                    (_, false) => ("out_of_core_to_plain_in_flight", "triad to plain I/O, many in flight"),
                    (_, true) => ("out_of_core_to_plain_in_flight_reading_a", "the same, reading a too"),
                };
                targets.push(target(name, meaning, plain.segment_to_plain, AtLeast, 0.8));
            }
            let mapped = found.mapped.as_ref().map(|mapped| {
                let (name, meaning) = ("out_of_core_to_mmap", "triad to mmap in as much memory");
                target(name, meaning, mapped.segment_to_mapped, AtLeast, 1.0)
            });
            targets.extend(mapped);
            targets
        }
    }
}

/// The targets of `fault`: little more than the copy of a page, for faults that copy one.
pub fn judge_fault(found: &faults::Found) -> Vec<Target> {
    const OVERHEAD_US: f64 = 20.0;
    let copy_us = (found.copy_page_us * 10.0).round() / 10.0;
    let names = [
        ("own_pool_load_again", "load, page in the own pool, us", 0.0),
        ("own_pool_store_put", "store, page in the own pool, us", 0.0),
        ("neighbour_load", "load, page of a neighbour, us", 0.0),
        ("neighbour_store", "store, page of a neighbour, us", copy_us),
    ];
    let judged = names.into_iter().filter_map(|(name, meaning, copy_us)| {
        let latency = found.faults.iter().find(|latency| latency.kind == name)?;
        Some(target(name, meaning, latency.median_us, AtMost, OVERHEAD_US + copy_us))
    });
    judged.collect()
}

/// The targets of `page-size`: memory of a third rank is never slower than the disk, and large pages arrive as fast as
/// a copy.
pub fn judge_page_size(page_bytes: u64, figures: &PageSizeFigures) -> Vec<Target> {
    const LARGE_PAGE_BYTES: u64 = 1 << 20;
    let (home, third) = (figures.home_pool_bytes_per_second, figures.third_pool_bytes_per_second);
    let to_disk = third / figures.home_disk_bytes_per_second;
    let mut targets =
        vec![target("third_pool_to_home_disk", "pool of a third rank to disk of the home", to_disk, AtLeast, 1.0)];
    if page_bytes >= LARGE_PAGE_BYTES {
        let (home, third) = (home / figures.home_raw_bytes_per_second, third / figures.third_raw_bytes_per_second);
        targets.push(target("home_pool_to_raw", "pool of the home to a copy", home, AtLeast, 0.9));
        targets.push(target("third_pool_to_raw", "pool of a third rank to a copy", third, AtLeast, 0.9));
    }
    targets
}

/// The target of `sweep`, the same for all sizes: a request, an order to a holder, the answer and its end; twice as
/// many if a holder has given the page up.
pub fn judge_sweep(messages_a_page: f64) -> Vec<Target> {
    vec![target("messages_a_page", "messages a page", messages_a_page, AtMost, 8.0)]
}

/// The target of `false-sharing`.
pub fn judge_sharing(round_to_barrier: f64) -> Vec<Target> {
    let (name, meaning) = ("round_to_barrier", "round of ten puts a rank to a barrier");
    vec![target(name, meaning, round_to_barrier, AtMost, 10.0)]
}

/// The targets of `stream`: nearly as fast as the disk.
pub fn judge_stream(ratios: &[Ratio]) -> Vec<Target> {
    let judged = ratios.iter().map(|ratio| {
        let (name, meaning, bound) = match ratio.way {
            Way::Gets => ("cold_gets_to_plain", "cold sequential gets to plain reads", 0.95),
            Way::Loads => ("cold_loads_to_plain", "cold sequential loads to plain reads", 0.95),
            Way::Puts => ("puts_to_plain", "sequential puts to plain writes", 0.9),
            Way::Stores => ("stores_to_plain", "sequential stores to plain I/O", 0.9),
        };
        target(name, meaning, ratio.to_plain, AtLeast, bound)
    });
    judged.collect()
}

/// The target of `ahead`.
pub fn judge_ahead(figures: &AheadFigures) -> Vec<Target> {
    let (name, meaning) = ("miss_beside_read_ahead_to_idle", "miss beside read-ahead to one on an idle disk");
    vec![target(name, meaning, figures.beside_to_idle, AtMost, 3.0)]
}

/// The target of `fault --threads`: with at least as many threads as plain reads in flight, the largest number of
/// threads comes near plain reads.
pub fn judge_threads(rates: &[Rate]) -> Vec<Target> {
    let most = rates.iter().max_by_key(|rate| rate.threads);
    let most = most.filter(|rate| rate.threads as usize >= PlainFile::IN_FLIGHT_MAX);
    let (name, meaning) = ("threads_to_plain", "loads of most threads to plain reads");
    most.map(|rate| target(name, meaning, rate.to_plain, AtLeast, 0.7)).into_iter().collect()
}

/// The targets of `messages`. The round trip is judged if each of the two ranks has a processor.
pub fn judge_messages(processors: usize, short_round_trip_us: f64, streams: &[Throughput]) -> Vec<Target> {
    let mut targets = Vec::new();
    if processors >= 2 {
        let (name, meaning) = ("short_round_trip_us", "round trip of a short message, us");
        targets.push(target(name, meaning, short_round_trip_us, AtMost, 3.0));
    }
    let largest = streams.iter().max_by_key(|stream| stream.payload_bytes);
    targets.extend(largest.map(|stream| {
        let (name, meaning) = ("medium_to_memcpy", "largest medium messages to memcpy");
        target(name, meaning, stream.to_memcpy, AtLeast, 0.5)
    }));
    targets
}

/// The targets of `lists`: the cost of a hit per piece. At random places each piece is in a different page than the one
/// before, so these are shown but not judged.
pub fn judge_lists(kinds: &[ListKind]) -> Vec<Target> {
    let names = [
        ("list_get_own_to_copies", "get, own pool, in order", "gets from the own pool to copies, times"),
        ("list_put_own_to_copies", "put, own pool, in order", "puts to the own pool to copies, times"),
        ("list_get_neighbour_to_copies", "get, neighbour's pool, in order", "gets from a neighbour's to copies, times"),
        ("list_put_neighbour_to_copies", "put, neighbour's pool, in order", "puts to a neighbour's to copies, times"),
    ];
    let found = |(name, kind, meaning)| {
        let to_copy = kinds.iter().find(|found| found.name == kind)?.to_copy;
        Some(target(name, meaning, to_copy, AtMost, 2.0))
    };
    names.into_iter().filter_map(found).collect()
}

/// The targets of `collectives`.
pub fn judge_collectives(collectives: &[CollectiveThroughput]) -> Vec<Target> {
    let names = [
        ("broadcast", "broadcast_to_memcpy", "broadcast, all ranks, to memcpy"),
        ("exchange", "exchange_to_memcpy", "exchange, all ranks, to memcpy"),
    ];
    let judged = names.into_iter().filter_map(|(kind, name, meaning)| {
        let one = collectives.iter().find(|one| one.name == kind)?;
        Some(target(name, meaning, one.to_memcpy, AtLeast, 0.5))
    });
    judged.collect()
}

/// The targets of `loop`, for every round that counts.
pub fn judge_loop(found: &cycle::Found) -> Vec<Target> {
    const KEPT_MIN: f64 = 0.4;
    let least = |rounds: &cycle::Rounds| rounds.kept_each.iter().copied().fold(1.0, f64::min);
    vec![
        target("gets_kept_min", "pages not read from the disk, by gets", least(&found.gets), AtLeast, KEPT_MIN),
        target("loads_kept_min", "pages not read from the disk, by loads", least(&found.loads), AtLeast, KEPT_MIN),
    ]
}

/// The targets of `blocks`: faster than the kernel's own paging, and not slower than with a smaller pool. Times of the
/// same work differ by a few percent.
pub fn judge_blocks(found: &BlockFigures) -> Vec<Target> {
    const NOISE: f64 = 1.1;
    let mapped = found
        .mapped_seconds
        .map(|mapped| target("blocks_to_mmap", "mmap in as much memory to this", mapped / found.seconds, AtLeast, 1.0));
    let smaller = found.smaller_pool_seconds.map(|smaller| {
        target("to_smaller_pool", "time to that with the smaller pool", found.seconds / smaller, AtMost, NOISE)
    });
    mapped.into_iter().chain(smaller).collect()
}

/// The targets of `small`, each at its worst: 8 bytes or 4 KiB, one block of the disk. A put reads the block, and
/// writes it later. The page size should not matter, so loads are compared with loads at small pages.
pub fn judge_small(figures: &SmallFigures) -> Vec<Target> {
    const JUDGED_BYTES: [usize; 2] = [8, 4 << 10];
    let names = [
        (Access::Get, Place::OwnDisk, 1, "get_own_disk_to_raw_read", "get, own disk, to a raw read"),
        (
            Access::Get,
            Place::NeighbourDisk,
            1,
            "get_neighbour_disk_to_raw_read",
            "get, neighbour's disk, to a raw read",
        ),
        (Access::Put, Place::OwnDisk, 1, "put_own_disk_to_raw_read", "put, own disk, to a raw read"),
        (
            Access::Put,
            Place::NeighbourDisk,
            1,
            "put_neighbour_disk_to_raw_read",
            "put, neighbour's disk, to a raw read",
        ),
        (Access::Get, Place::OwnDisk, IN_FLIGHT, "gets_own_disk_to_raw_rate", "64 gets, own disk, to the raw rate"),
        (Access::Get, Place::NeighbourDisk, IN_FLIGHT, "gets_neighbour_disk_to_raw_rate", "64 gets, neighbour's disk"),
        (Access::Put, Place::OwnDisk, IN_FLIGHT, "puts_own_disk_to_raw_rate", "64 puts, own disk, to the raw rate"),
        (Access::Put, Place::NeighbourDisk, IN_FLIGHT, "puts_neighbour_disk_to_raw_rate", "64 puts, neighbour's disk"),
    ];
    let worst = |access: Access, place: Place, in_flight: u32, ratio: &dyn Fn(&SmallRow) -> Option<f64>| {
        let judged = JUDGED_BYTES.into_iter().filter_map(|bytes| figures.row(access, place, bytes, in_flight));
        judged.filter_map(ratio).max_by(f64::total_cmp)
    };
    let judged = names.into_iter().filter_map(|(access, place, in_flight, name, meaning)| {
        if in_flight > 1 {
            let to_raw = worst(access, place, in_flight, &|row| row.to_reference)?;
            return Some(target(name, meaning, 1.0 / to_raw, AtLeast, 0.7));
        }
        let to_read = worst(access, place, in_flight, &|row| Some(row.us / figures.raw_read_us?))?;
        Some(target(name, meaning, to_read, AtMost, if access == Access::Get { 1.5 } else { 2.0 }))
    });
    let loads = worst(Access::Load, Place::OwnDisk, 1, &|row| row.to_small_page).map(|to_small_page| {
        let (name, meaning) = ("load_to_small_page", "load, own disk, to that at pages of 64K");
        target(name, meaning, to_small_page, AtMost, 2.0)
    });
    let adds = figures.adds_per_second.map(|rate| {
        target("adds_per_second", "million additions of all ranks to a word, a second", rate / 1e6, AtLeast, 1.0)
    });
    judged.chain(loads).chain(adds).collect()
}

/// The targets of `table`, at the best page size.
pub fn judge_table(best: Best) -> Vec<Target> {
    let stores = 1.0 / best.stores_to_mapped;
    vec![
        target("puts_to_mmap", "inserts by puts to mmap, best pages", best.puts_to_mapped, AtLeast, 1.0),
        target("stores_time_to_mmap", "time by stores to mmap, best pages", stores, AtMost, 1.3),
    ]
}

/// The targets of `replacement`, for the default policy.
pub fn judge_replacement(rows: &[Row]) -> Vec<Target> {
    let least = |trace: &str, ratio: &dyn Fn(&Row) -> f64| {
        rows.iter().filter(|row| row.trace == trace).map(ratio).fold(f64::INFINITY, f64::min)
    };
    let to_lru = least("zipf", &|row| row.default_ratio() / row.lru_ratio());
    let to_share = least("loop", &|row| row.default_ratio() * f64::from(row.pages) / row.frames as f64);
    let behind = rows.iter().map(|row| row.best_other() - row.default_ratio()).fold(0.0, f64::max);
    vec![
        target("zipf_to_lru", "zipf: hits to those of LRU, least", to_lru, AtLeast, 1.0),
        target("loop_to_frames", "loop: hits a round to frames, least", to_share, AtLeast, 0.89),
        target("behind_best", "hit ratio behind the best other, most", behind, AtMost, 0.02),
    ]
}

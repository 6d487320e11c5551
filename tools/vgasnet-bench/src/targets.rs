//! Targets, and whether a run reaches them.

use crate::baseline::median;
use crate::disk::Buffers;
use crate::plan::Job;
use crate::report::{Measured, Throughput};
use crate::{faults, hit};
use Bound::{AtLeast, AtMost};
use serde::Serialize;

/// Which side of the target is good.
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
    /// How far it is reached: 1 is exactly, more is better.
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

/// Random gets, each kind where it is worst.
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
    vec![
        target("get_8_bytes_hit_ns", "8-byte get that hits, ns", small, AtMost, 60.0),
        target("get_4_mib_hit_one_source_to_memcpy", "4 MiB get that hits to memcpy, one source", one, AtLeast, 0.9),
        target("get_4_mib_hit_sources_in_turn_to_memcpy", "the same, sources in turn", turns, AtLeast, 0.9),
        target("cold_read_to_plain", "cold sequential read to plain reads", cold, AtLeast, 0.7),
        target("busy_home_32_mib_seconds", "32 MiB from a rank that computes, s", busy, AtMost, 0.5),
        target("memory_to_allowed", "memory to ranks x (pool + 64 MiB)", memory, AtMost, 1.0),
    ]
}

/// The targets of `triad`: as fast as memory if the pool holds the arrays, else nearly as fast as the disk and faster than
/// the kernel's own paging. The last is judged only if it was measured.
pub fn judge_triad(measured: &Measured) -> Vec<Target> {
    match measured {
        Measured::InPool(found) => {
            let name = "in_pool_to_malloc";
            vec![target(name, "triad in the pool to malloc", found.segment_to_malloc, AtLeast, 0.98)]
        }
        Measured::OutOfCore(found) => {
            let mut targets = Vec::new();
            // With small pages it is chance how many pieces the disk gets.
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
        ("neighbour_load", "load, page of a neighbour, us", copy_us),
        ("neighbour_store", "store, page of a neighbour, us", copy_us),
    ];
    let judged = names.into_iter().filter_map(|(name, meaning, copy_us)| {
        let latency = found.faults.iter().find(|latency| latency.kind == name)?;
        Some(target(name, meaning, latency.median_us, AtMost, OVERHEAD_US + copy_us))
    });
    judged.collect()
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

//! Measurements for the targets on hits, misses, progress without calls, and memory.

mod random;

pub use random::{RandomHits, data_bytes};

use crate::baseline::Copies;
use crate::disk::{Buffers, PlainFile};
use crate::plan::{BLOCK_BYTES, Spec};
use crate::rank::{Rank, block_buffer, disk_bytes, fail};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::{Duration, Instant};
use vgasnet_measuring::memory::pss_bytes;
use vgasnet_measuring::progress;

/// The size of the segment touched for the memory target, in pools.
pub const SEGMENT_POOLS: u64 = 16;

/// Bytes read from a computing rank.
pub const BUSY_READ_BYTES: u64 = 32 << 20;

/// The time rank 0 computes. A reader that takes this long has waited for the end of the computation.
const BUSY: Duration = Duration::from_millis(1500);

/// The longest scan compared with plain reads.
const SCAN_BYTES_MAX: u64 = 512 << 20;

/// Gets of eight bytes in one measurement.
const SMALL_GETS: u32 = 1 << 20;

/// Gets of 4 MiB in one measurement.
const LARGE_GETS: usize = 64;

/// Source blocks used round robin, so none stays in the nearest caches; fewer with a small pool.
const SOURCES_MAX: u64 = 16;

/// Measurements of rank 0 by round.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Found {
    pub segment_bytes: u64,
    pub random_hits: Vec<RandomHits>,
    pub get_8_bytes_hit_ns_each: Vec<f64>,
    pub get_4_mib_hit_one_source_seconds_each: Vec<f64>,
    pub copy_4_mib_one_source_seconds_each: Vec<f64>,
    pub sources: u64,
    pub get_4_mib_hit_sources_in_turn_seconds_each: Vec<f64>,
    pub copy_4_mib_sources_in_turn_seconds_each: Vec<f64>,
    /// The same from a neighbour's pool.
    pub get_4_mib_neighbour_seconds_each: Vec<f64>,
    pub cold_read_bytes: u64,
    pub cold_read_seconds_each: Vec<f64>,
    /// Bytes read from the disk in the last of these rounds.
    pub cold_disk_read_bytes: u64,
    pub plain_bytes: u64,
    pub plain_seconds_each: Vec<f64>,
    pub plain_is_direct: bool,
    pub busy_home_32_mib_seconds_each: Vec<f64>,
    pub pss_bytes_all_ranks: u64,
}

pub fn run(rank: &Rank, spec: &Spec) -> Found {
    let random_hits = random::run(rank, spec);
    if spec.only_random {
        return Found { segment_bytes: spec.data_bytes, random_hits, ..Found::default() };
    }
    let pss_bytes_all_ranks = touch_everything(rank, spec);
    let mut found = Found { segment_bytes: spec.data_bytes, random_hits, pss_bytes_all_ranks, ..Found::default() };
    let bar = progress::bar(rank.is_first(), "hits and misses", u64::from(2 * spec.repeat));
    // A neighbour finds the blocks in this pool.
    (0..sources(rank)).for_each(|block| rank.get(rank.me, block * BLOCK_BYTES, &mut block_buffer()));
    rank.barrier();
    if rank.is_first() {
        for _ in 0..spec.repeat {
            measure_hits(rank, &mut found);
            bar.inc(1);
        }
        let scan_bytes = (spec.data_bytes / 2).min(SCAN_BYTES_MAX);
        let mut plain = PlainFile::new(rank.storage_dir(), scan_bytes, Buffers::SmallPages);
        for _ in 0..spec.repeat {
            measure_misses(rank, &mut plain, &mut found);
            bar.inc(1);
        }
        rank.empty_pool();
    }
    drop(bar);
    // Pages stay in the pool of the reading rank, so each round reads different ones.
    let places = (spec.data_bytes - rank.pool_bytes) / BUSY_READ_BYTES;
    for round in 0..places.min(u64::from(spec.repeat)) {
        found.busy_home_32_mib_seconds_each.push(read_from_busy(rank, round * BUSY_READ_BYTES));
    }
    found
}

/// Writes to every page of this rank's segment. Returns the memory used by all ranks together.
fn touch_everything(rank: &Rank, spec: &Spec) -> u64 {
    let bar = progress::bar(rank.is_first(), "touching", spec.data_bytes / rank.page_bytes as u64);
    for page in (0..spec.data_bytes).step_by(rank.page_bytes) {
        rank.put(rank.me, page, &[1]);
        bar.inc(1);
    }
    rank.barrier();
    let pss_bytes = pss_bytes().unwrap_or_else(|error| fail(format!("/proc/self/smaps_rollup: {error}")));
    let all = rank.gather([pss_bytes, 0, 0, 0]);
    all.iter().map(|told| told[0]).sum()
}

fn measure_hits(rank: &Rank, found: &mut Found) {
    found.get_8_bytes_hit_ns_each.push(small_get_ns(rank));
    let mut buffer = block_buffer();
    let mut pair = |sources: u64| {
        let get = large_get_seconds(rank, 0, sources, &mut buffer);
        (get, Copies::new(sources as usize).run(&mut buffer))
    };
    let (get, copy) = pair(1);
    found.get_4_mib_hit_one_source_seconds_each.push(get);
    found.copy_4_mib_one_source_seconds_each.push(copy);
    found.sources = sources(rank);
    let (get, copy) = pair(found.sources);
    found.get_4_mib_hit_sources_in_turn_seconds_each.push(get);
    found.copy_4_mib_sources_in_turn_seconds_each.push(copy);
    found.get_4_mib_neighbour_seconds_each.push(large_get_seconds(rank, 1, found.sources, &mut buffer));
}

/// Number of 4 MiB blocks used round robin, limited to what the pool keeps.
fn sources(rank: &Rank) -> u64 {
    (rank.pool_bytes / 2 / BLOCK_BYTES).clamp(1, SOURCES_MAX)
}

fn small_get_ns(rank: &Rank) -> f64 {
    let mut bytes = [0; 8];
    rank.get(0, 0, &mut bytes);
    let start = Instant::now();
    for get in 0..SMALL_GETS {
        rank.get(0, u64::from(get % 512) * 8, black_box(&mut bytes));
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(SMALL_GETS)
}

fn large_get_seconds(rank: &Rank, from: u32, sources: u64, to: &mut [u8]) -> f64 {
    for source in 0..sources {
        rank.get(from, source * BLOCK_BYTES, to);
    }
    let start = Instant::now();
    for get in 0..LARGE_GETS {
        rank.get(from, get as u64 % sources * BLOCK_BYTES, black_box(&mut *to));
    }
    start.elapsed().as_secs_f64() / LARGE_GETS as f64
}

/// Reads as much of this rank's own segment as the plain file has, starting with an empty pool.
fn measure_misses(rank: &Rank, plain: &mut PlainFile, found: &mut Found) {
    found.plain_seconds_each.push(plain.read());
    (found.plain_bytes, found.plain_is_direct) = (plain.size_bytes(), plain.is_direct);
    rank.empty_pool();
    let mut buffer = block_buffer();
    let [before, _] = disk_bytes();
    let start = Instant::now();
    for offset in (0..plain.size_bytes()).step_by(buffer.len()) {
        let len_bytes = BLOCK_BYTES.min(plain.size_bytes() - offset) as usize;
        rank.get(0, offset, &mut buffer[..len_bytes]);
    }
    found.cold_read_seconds_each.push(start.elapsed().as_secs_f64());
    found.cold_disk_read_bytes = disk_bytes()[0] - before;
    found.cold_read_bytes = plain.size_bytes();
}

/// Rank 1 reads pages that only rank 0's file has, while rank 0 computes.
fn read_from_busy(rank: &Rank, offset: u64) -> f64 {
    let mut buffer = vec![0; if rank.me == 1 { BUSY_READ_BYTES as usize } else { 0 }];
    rank.barrier();
    let start = Instant::now();
    match rank.me {
        0 => while black_box(start.elapsed()) < BUSY {},
        1 => rank.get(0, offset, &mut buffer),
        _ => {}
    }
    let seconds = start.elapsed().as_secs_f64();
    let all = rank.gather([seconds.to_bits(), 0, 0, 0]);
    f64::from_bits(all[1][0])
}

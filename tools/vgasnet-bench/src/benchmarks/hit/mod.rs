//! Measurements for the targets on hits, misses, progress without calls, and memory.

mod random;

use crate::Stop;
use crate::calls;
use crate::disk::{Buffers, PlainFile};
use crate::prelude::*;
use vgasnet_measuring::memory::pss_bytes;

/// The size of the segment touched for the memory target, in pools.
const SEGMENT_POOLS: u64 = 16;

/// Bytes read from a computing rank.
const BUSY_READ_BYTES: u64 = 32 << 20;

/// The time rank 0 computes. A reader that takes this long has waited for the end of the computation.
const BUSY: Duration = Duration::from_millis(1500);

/// The longest scan compared with plain reads.
const SCAN_BYTES_MAX: u64 = 512 << 20;

/// Gets of eight bytes in one measurement.
const SMALL_GETS: u32 = 1 << 20;

/// Gets of 4 MiB in one measurement.
const LARGE_GETS: u64 = 64;

/// Source blocks used round robin, so none stays in the nearest caches; fewer with a small pool.
const SOURCES_MAX: u64 = 16;

/// Measures hits, misses, progress and memory
#[derive(Args, Serialize, Deserialize)]
pub struct Hit {
    #[command(flatten)]
    setup: Setup,

    /// Number of ranks, also as -np
    #[arg(short = 'n', value_name = "RANKS", default_value_t = 2, value_parser = ranks())]
    ranks: u32,

    /// Measure random gets with this number of threads per rank in addition to one thread
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = within(1..=64))]
    threads: u32,

    /// Measure gets at random places only
    #[arg(long)]
    only_random: bool,

    /// Exit with status 1 if a figure is worse than wanted
    #[arg(long)]
    check: bool,
}

impl Benchmark for Hit {
    const NAME: &'static str = "hit";
    const KIND: Kind = Kind::OneJob;
    const DATA: Data = Data::Each;

    fn plan(&self) -> Result<Vec<Job>, Stop> {
        let job = Job::new(self, self.ranks, &self.setup)?;
        let pool_bytes = job.config.pool_bytes;
        if pool_bytes < 4 * job.config.page_bytes.max(BLOCK_BYTES) {
            return Err(Stop::usage("--pool is too small for this benchmark; give it at least 16M, and four pages"));
        }
        if !self.only_random && self.ranks < 2 {
            return Err(Stop::usage("-n 1 is for --only-random; the other measurements need two ranks"));
        }
        let data_bytes = if self.only_random { random::data_bytes(pool_bytes) } else { SEGMENT_POOLS * pool_bytes };
        Ok(vec![job.with_data(data_bytes, 1)])
    }

    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
        let random_hits = random::run(rank, spec, self.threads);
        let worst = [false, true].map(|neighbour| {
            let of_kind = random_hits.iter().filter(|hits| hits.is("neighbour", neighbour));
            of_kind.map(|hits| hits.number("over_load_ns")).max_by(f64::total_cmp)
        });
        let (own, neighbour) = ("random_get_8_bytes_over_load_ns", "random_get_8_bytes_neighbour_over_load_ns");
        let figures =
            Figures::of(Row::default().keep("segment_bytes", spec.data_bytes).rows("random_hits", random_hits))
                .target(own, "random 8-byte get over a load, own pool, ns", worst[0], AtMost, 20.0)
                .target(neighbour, "the same, neighbour's pool, ns", worst[1], AtMost, 20.0);
        if self.only_random { figures } else { one_place(rank, spec, figures) }
    }
}

/// Everything except gets at random places.
fn one_place(rank: &Rank, spec: &Spec, figures: Figures) -> Figures {
    let pss_bytes = touch_everything(rank, spec);
    let bar = progress::bar(rank.is_first(), "hits and misses", u64::from(2 * spec.repeat));
    // A neighbour finds the blocks in this pool.
    (0..sources(rank)).for_each(|block| rank.get(rank.me, block * BLOCK_BYTES, &mut block_buffer()));
    rank.barrier();
    let mut row = figures.row.keep("sources", sources(rank));
    if rank.is_first() {
        for _ in 0..spec.repeat {
            measure_hits(rank, &mut row);
            bar.inc(1);
        }
        let scan_bytes = (spec.data_bytes / 2).min(SCAN_BYTES_MAX);
        let mut plain = PlainFile::new(rank.storage_dir(), scan_bytes, Buffers::SmallPages);
        let mut disk_read_bytes = 0;
        for _ in 0..spec.repeat {
            disk_read_bytes = measure_misses(rank, &mut plain, &mut row);
            bar.inc(1);
        }
        row = row.keep("cold_read_bytes", plain.size_bytes()).keep("cold_disk_read_bytes", disk_read_bytes);
        row = row.keep("plain_bytes", plain.size_bytes()).keep("plain_is_direct", plain.is_direct);
        rank.empty_pool();
    }
    drop(bar);
    // Pages stay in the pool of the reading rank, so each round reads different ones.
    let places = (spec.data_bytes - rank.pool_bytes) / BUSY_READ_BYTES;
    for round in 0..places.min(u64::from(spec.repeat)) {
        row.add("busy_home_32_mib_seconds", read_from_busy(rank, round * BUSY_READ_BYTES));
    }
    let row = row.keep("pss_bytes_all_ranks", pss_bytes);
    let number = |name: &str| row.number(name);
    let [small, busy] = ["get_8_bytes_hit_ns", "busy_home_32_mib_seconds"].map(number);
    let one = number("copy_4_mib_one_source_seconds") / number("get_4_mib_hit_one_source_seconds");
    let copy = number("copy_4_mib_sources_in_turn_seconds");
    let turns = copy / number("get_4_mib_hit_sources_in_turn_seconds");
    let neighbour = copy / number("get_4_mib_neighbour_seconds");
    let cold = number("plain_seconds") / number("cold_read_seconds");
    let allowed_bytes = u64::from(rank.ranks) * (rank.pool_bytes + OUTSIDE_POOL_BYTES);
    let memory = pss_bytes as f64 / allowed_bytes as f64;
    Figures { row, ..figures }
        .target("get_8_bytes_hit_ns", "8-byte get that hits, ns", small, AtMost, 60.0)
        .target("get_4_mib_hit_one_source_to_memcpy", "4 MiB get that hits to memcpy, one source", one, AtLeast, 0.9)
        .target("get_4_mib_hit_sources_in_turn_to_memcpy", "the same, sources in turn", turns, AtLeast, 0.9)
        .target("get_4_mib_neighbour_to_memcpy", "the same, from a neighbour's pool", neighbour, AtLeast, 0.9)
        .target("cold_read_to_plain", "cold sequential read to plain reads", cold, AtLeast, 0.7)
        .target("busy_home_32_mib_seconds", "32 MiB from a rank that computes, s", busy, AtMost, 0.5)
        .target("memory_to_allowed", "memory to ranks x (pool + 64 MiB)", memory, AtMost, 1.0)
}

/// Adds a round of gets that hit, and of copies.
fn measure_hits(rank: &Rank, row: &mut Row) {
    let (mut buffer, sources) = (block_buffer(), sources(rank));
    row.add("get_8_bytes_hit_ns", small_get_ns(rank));
    row.add("get_4_mib_hit_one_source_seconds", large_get_seconds(rank, 0, 1, &mut buffer));
    row.add("copy_4_mib_one_source_seconds", Copies::new(1).run(&mut buffer));
    row.add("get_4_mib_hit_sources_in_turn_seconds", large_get_seconds(rank, 0, sources, &mut buffer));
    row.add("copy_4_mib_sources_in_turn_seconds", Copies::new(sources as usize).run(&mut buffer));
    row.add("get_4_mib_neighbour_seconds", large_get_seconds(rank, 1, sources, &mut buffer));
}

/// Adds a cold read of as much of this rank's own segment as the plain file has, and of the file. Returns the bytes
/// read from the disk.
fn measure_misses(rank: &Rank, plain: &mut PlainFile, row: &mut Row) -> u64 {
    row.add("plain_seconds", plain.read());
    rank.empty_pool();
    let (mut buffer, [before, _], bytes) = (block_buffer(), disk_bytes(), plain.size_bytes());
    let read = seconds(|| {
        for offset in (0..bytes).step_by(buffer.len()) {
            rank.get(0, offset, &mut buffer[..BLOCK_BYTES.min(bytes - offset) as usize]);
        }
    });
    row.add("cold_read_seconds", read);
    disk_bytes()[0] - before
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

/// Number of 4 MiB blocks used round robin, limited to what the pool keeps.
fn sources(rank: &Rank) -> u64 {
    (rank.pool_bytes / 2 / BLOCK_BYTES).clamp(1, SOURCES_MAX)
}

fn small_get_ns(rank: &Rank) -> f64 {
    let (mut bytes, base) = ([0; 8], rank.segment_base(0));
    calls::get(&mut bytes, 0, base);
    let mut get = |at: u32| calls::get(black_box(&mut bytes), 0, base + at as usize % 512 * 8);
    seconds(|| (0..SMALL_GETS).for_each(&mut get)) * 1e9 / f64::from(SMALL_GETS)
}

fn large_get_seconds(rank: &Rank, from: u32, sources: u64, to: &mut [u8]) -> f64 {
    let mut get = |at: u64| rank.get(from, at % sources * BLOCK_BYTES, black_box(&mut *to));
    (0..sources).for_each(&mut get);
    seconds(|| (0..LARGE_GETS).for_each(&mut get)) / LARGE_GETS as f64
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

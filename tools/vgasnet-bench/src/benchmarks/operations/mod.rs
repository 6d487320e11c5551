//! Gets and puts of every kind that hit, at random places, compared with copies of the same size in the same pattern.

mod kinds;
mod timed;

use crate::Stop;
use crate::at_random::{mean_of_ranks, owners_and_threads};
use crate::prelude::*;
use crate::report::Kind as ReportKind;
use kinds::Kind;

/// Bytes of the operations. Places are multiples of 8, so some of the longer operations span two pages.
const SIZES_BYTES: [usize; 5] = [1, 4, 8, 64, 200];

/// Minimum size of the places: many operations of the longest kind.
const SIZE_BYTES_MIN: u64 = 4 << 10;

/// The value of every byte in all segments.
const BYTE: u8 = 0xA7;

/// Gets and puts of every kind that hit, at random places, by size, threads and owner of the pages, compared with
/// copies
#[derive(Args, Serialize, Deserialize)]
pub struct Operations {
    #[command(flatten)]
    setup: Setup,

    /// Number of ranks, also as -np
    #[arg(short = 'n', value_name = "RANKS", default_value_t = 2, value_parser = ranks())]
    ranks: u32,

    /// Measure with this number of threads per rank in addition to one thread
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = within(1..=64))]
    threads: u32,

    /// Size of the places of each rank: a power of two, at most half of the pool
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = parse_size)]
    size: u64,
}

impl Benchmark for Operations {
    const NAME: &'static str = "operations";
    const KIND: ReportKind = ReportKind::JobsWithoutTargets;
    const DATA: Data = Data::Each;

    fn plan(&self) -> Result<Vec<Job>, Stop> {
        let job = Job::new(self, self.ranks, &self.setup)?;
        let most_bytes = job.config.pool_bytes / 2;
        if !self.size.is_power_of_two() || !(SIZE_BYTES_MIN..=most_bytes).contains(&self.size) {
            let [size, most] = [self.size, most_bytes].map(format_size_about);
            return Err(Stop::usage(format!(
                "--size {size}: give a power of two from 4K to {most}, which is half of the pool, or a larger --pool"
            )));
        }
        Ok(vec![job.with_data(self.size, 0)])
    }

    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
        let cells = cells(rank, self.threads);
        // One memory per thread, so no two threads copy in the same memory.
        let memories: Vec<Memory> = (0..self.threads).map(|_| Memory::allocated(self.size as usize, true)).collect();
        let starts: Vec<usize> = memories.iter().map(|memory| memory.start().expose_provenance()).collect();
        // The pages are in the rank's own pool, for itself and its neighbour.
        rank.fill(rank.me, spec.data_bytes, |_, page| page.fill(BYTE));
        rank.barrier();
        let bar = progress::bar(rank.is_first(), "operations", cells.len() as u64);
        let measured = cells.iter().map(|cell| {
            bar.inc(1);
            cell.measure(rank, spec, &starts)
        });
        let rows = measured.collect();
        Figures::of(Row::default().keep("data_bytes", spec.data_bytes).rows("operations", rows))
    }
}

/// Operations of a kind, with this number of threads per rank and all ranks at once.
struct Cell {
    kind: Kind,
    size_bytes: usize,
    threads: u32,
    /// Whether the places are in the next rank's segment.
    neighbour: bool,
}

impl Cell {
    /// Processor time of an operation and of a copy. Each value is the mean over all ranks in a round. Neither operation
    /// sleeps. The slower one would be preempted more often on a busy machine; processor time is not affected.
    fn measure(&self, rank: &Rank, spec: &Spec, starts: &[usize]) -> Row {
        let Cell { kind, size_bytes, threads, neighbour } = self;
        let owner = if *neighbour { (rank.me + 1) % rank.ranks } else { rank.me };
        let whose = if *neighbour { "neighbour" } else { "own" };
        let mut row = Row::cell(format!("{} of {size_bytes} bytes", name(kind)), format!("{whose}, {threads} threads"))
            .keep("kind", name(kind))
            .keep("size_bytes", size_bytes)
            .keep("threads", threads)
            .keep("neighbour", neighbour);
        for round in 0..=spec.repeat {
            let copy = |thread: u32| timed::copies(rank, self, starts[thread as usize], spec.data_bytes, thread);
            let copy_ns = mean_of_ranks(rank, *threads, copy);
            let ns =
                mean_of_ranks(rank, *threads, |thread| timed::operations(rank, self, owner, spec.data_bytes, thread));
            // The first round brings the pages into place.
            if round > 0 {
                row.add("ns", ns);
                row.add("copy_ns", copy_ns);
            }
        }
        row.ratio("to_copy", "ns", "copy_ns")
    }
}

fn cells(rank: &Rank, threads: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &kind in Kind::value_variants() {
        for size_bytes in SIZES_BYTES.into_iter().filter(|size_bytes| *size_bytes <= kind.size_bytes_max()) {
            let cell = |(neighbour, threads)| Cell { kind, size_bytes, threads, neighbour };
            cells.extend(owners_and_threads(rank, threads).into_iter().map(cell));
        }
    }
    cells
}

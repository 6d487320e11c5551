//! Arrays larger than memory, compared with plain reads and writes of a file and with a mapped file.

use super::scalar;
use crate::arrays::Arrays;
use crate::disk::{Buffers, PlainFile, Step, blocks};
use crate::mapped::Process;
use crate::plan::{Spec, Workload};
use crate::rank::{Rank, disk_bytes, fail};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use vgasnet_measuring::progress;

/// Blocks between the read of a block and its write, so neither waits.
const WRITE_LAG_BLOCKS: usize = 16;

/// Alternating measurements: triads in the segment, triads in a mapped file, plain reads and writes.
#[derive(Debug, Serialize, Deserialize)]
pub struct OutOfCore {
    #[serde(flatten)]
    pub own: InSegment,
    /// `Err` has the reason for having none.
    pub mapped: Result<Passes, String>,
    pub plain: Vec<Plain>,
}

/// Triads in the segment.
#[derive(Debug, Serialize, Deserialize)]
pub struct InSegment {
    pub segment: Passes,
    /// Large pages among the mapped pages of the arrays at the end.
    pub segment_large_page_bytes: u64,
    /// Bytes moved by the disk for the last triad, write-back included.
    pub disk_read_bytes: u64,
    pub disk_written_bytes: u64,
    pub plain_is_direct: bool,
}

/// Triads through memory to a disk.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Passes {
    pub initialise_seconds: f64,
    pub loop_seconds_each: Vec<f64>,
    /// From the end of the loop until the disk has all changes.
    pub write_back_seconds_each: Vec<f64>,
}

/// The same bytes by plain reads and writes.
#[derive(Debug, Serialize, Deserialize)]
pub struct Plain {
    pub buffers: Buffers,
    pub in_flight: usize,
    /// Whether blocks are read before they are written, as happens with stores.
    pub reads_what_it_writes: bool,
    pub seconds_each: Vec<f64>,
}

impl Passes {
    /// The total time of each triad.
    pub fn seconds_each(&self) -> Vec<f64> {
        self.loop_seconds_each
            .iter()
            .zip(&self.write_back_seconds_each)
            .map(|(pass, write_back)| pass + write_back)
            .collect()
    }

    /// Writes all arrays once.
    pub fn initialise(&mut self, arrays: &mut Arrays<'_>, write_back: impl FnOnce()) {
        let start = Instant::now();
        arrays.initialise();
        write_back();
        self.initialise_seconds = start.elapsed().as_secs_f64();
    }

    /// Runs a triad until everything is on the disk, and checks it.
    pub fn run(&mut self, arrays: &mut Arrays<'_>, write_back: impl FnOnce()) {
        let scalar = scalar(self.loop_seconds_each.len() as u32);
        let start = Instant::now();
        arrays.triad(scalar);
        self.loop_seconds_each.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        write_back();
        self.write_back_seconds_each.push(start.elapsed().as_secs_f64());
        arrays.check(scalar).unwrap_or_else(|line| fail(line));
    }
}

pub fn run(rank: &Rank, arrays: &mut Arrays<'_>, array_bytes: u64, spec: &Spec) -> OutOfCore {
    let mut plain = plain_kinds();
    let steps = 4 + u64::from(spec.repeat) * (2 + plain.len() as u64);
    let bar = progress::bar(true, "triads out of core", steps);
    let mut segment = Passes::default();
    segment.initialise(arrays, || rank.write_back());
    bar.inc(1);
    let mut large = PlainFile::new(rank.storage_dir(), spec.data_bytes, Buffers::LargePages);
    let mut small = large.again(Buffers::SmallPages);
    bar.inc(1);
    let mut mapped = Process::start(Workload::MappedTriad, spec);
    let mut mapped_found = mapped.step();
    bar.inc(2);
    let [mut disk_read_bytes, mut disk_written_bytes] = [0, 0];
    for _ in 0..spec.repeat {
        let [read_before, written_before] = disk_bytes();
        segment.run(arrays, || {
            rank.write_back();
            let [read, written] = disk_bytes();
            (disk_read_bytes, disk_written_bytes) = (read - read_before, written - written_before);
        });
        bar.inc(1);
        mapped_found = mapped.step();
        bar.inc(1);
        for kind in &mut plain {
            let file = if kind.buffers == Buffers::LargePages { &mut large } else { &mut small };
            kind.measure(file, array_bytes);
            bar.inc(1);
        }
    }
    let own = InSegment {
        segment,
        segment_large_page_bytes: arrays.large_page_bytes(),
        disk_read_bytes,
        disk_written_bytes,
        plain_is_direct: large.is_direct,
    };
    OutOfCore { own, mapped: mapped_found, plain }
}

fn plain_kinds() -> Vec<Plain> {
    let mut kinds = Vec::new();
    for buffers in [Buffers::LargePages, Buffers::SmallPages] {
        for in_flight in [1, PlainFile::IN_FLIGHT_MAX] {
            for reads_what_it_writes in [false, true] {
                kinds.push(Plain { buffers, in_flight, reads_what_it_writes, seconds_each: Vec::new() });
            }
        }
    }
    kinds
}

impl Plain {
    /// Its name in a table.
    pub fn name(&self) -> String {
        let reads = if self.reads_what_it_writes { ", reads a" } else { "" };
        let pages = if self.buffers == Buffers::LargePages { "" } else { ", 4K pages" };
        format!("plain, {} in flight{reads}{pages}", self.in_flight)
    }

    fn measure(&mut self, file: &mut PlainFile, array_bytes: u64) {
        let steps = triad_steps(array_bytes, self.reads_what_it_writes).into_iter();
        let seconds = if self.in_flight == 1 { file.one_at_a_time(steps) } else { file.side_by_side(steps) };
        self.seconds_each.push(seconds.unwrap_or_else(|error| fail(format!("reading and writing plainly: {error}"))));
    }
}

/// The reads and writes of a triad, block by block.
fn triad_steps(array_bytes: u64, reads_what_it_writes: bool) -> Vec<Step> {
    let reads = |array: u64| blocks(false, array * array_bytes, array_bytes);
    let mut steps = Vec::new();
    let mut unwritten = blocks(true, 0, array_bytes);
    for (block, ((a, b), c)) in reads(0).zip(reads(1)).zip(reads(2)).enumerate() {
        steps.extend([b, c]);
        steps.extend(reads_what_it_writes.then_some(a));
        if block >= WRITE_LAG_BLOCKS {
            steps.extend(unwritten.next());
        }
    }
    steps.extend(unwritten);
    steps
}

//! Arrays larger than memory, compared with plain reads and writes of a file and with a mapped file.

use super::arrays::{ARRAYS, Arrays};
use super::scalar;
use crate::disk::{Buffers, PlainFile, Step, blocks};
use crate::mapped::{NO_MAPPED_FILE, Process};
use crate::prelude::*;

/// Blocks between the read of a block and its write, so neither waits.
const WRITE_LAG_BLOCKS: usize = 16;

/// Triads through memory to a disk.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Passes {
    pub initialise_seconds: f64,
    pub loop_seconds_each: Vec<f64>,
    /// From the end of the loop until the disk has all changes.
    pub write_back_seconds_each: Vec<f64>,
}

/// The same bytes by plain reads and writes.
struct Plain {
    buffers: Buffers,
    in_flight: usize,
    /// Whether blocks are read before they are written, as happens with stores.
    reads_what_it_writes: bool,
    seconds_each: Vec<f64>,
}

impl Passes {
    /// The total time of each triad.
    fn seconds_each(&self) -> Vec<f64> {
        let each = self.loop_seconds_each.iter().zip(&self.write_back_seconds_each);
        each.map(|(pass, write_back)| pass + write_back).collect()
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

pub fn run(rank: &Rank, arrays: &mut Arrays<'_>, array_bytes: u64, spec: &Spec) -> Figures {
    let mut plain = plain_kinds();
    let steps = 4 + u64::from(spec.repeat) * (2 + plain.len() as u64);
    let bar = progress::bar(true, "triads out of core", steps);
    let mut segment = Passes::default();
    segment.initialise(arrays, || rank.write_back());
    bar.inc(1);
    let mut large = PlainFile::new(rank.storage_dir(), spec.data_bytes, Buffers::LargePages);
    let mut small = large.again(Buffers::SmallPages);
    bar.inc(1);
    let mut process = Process::start(spec);
    let mut mapped = process.step();
    bar.inc(2);
    let mut moved_bytes = [0; 2];
    for _ in 0..spec.repeat {
        let before = disk_bytes();
        segment.run(arrays, || {
            rank.write_back();
            let now = disk_bytes();
            moved_bytes = [now[0] - before[0], now[1] - before[1]];
        });
        bar.inc(1);
        mapped = process.step();
        bar.inc(1);
        for kind in &mut plain {
            let file = if kind.buffers == Buffers::LargePages { &mut large } else { &mut small };
            kind.measure(file, array_bytes);
            bar.inc(1);
        }
    }
    let large_page_bytes = arrays.large_page_bytes();
    figures(array_bytes, &segment, &plain, mapped, moved_bytes)
        .with("segment_large_page_bytes", large_page_bytes)
        .with_direct(large.is_direct)
}

/// Nearly as fast as the disk, and faster than the kernel's own paging, if that was measured. With small pages, chance
/// determines the number of pieces for the disk.
fn figures(
    array_bytes: u64,
    segment: &Passes,
    plain: &[Plain],
    mapped: Result<Passes, String>,
    moved_bytes: [u64; 2],
) -> Figures {
    let bytes = (ARRAYS * array_bytes) as f64;
    let rate = |each: &[f64]| bytes / median(each);
    let each = segment.seconds_each();
    let segment_rate = rate(&each);
    let compared = |label: String, ratio: &str, rate: f64| {
        let row = Row::labelled(label).show("segment_bytes_per_second", segment_rate).show("bytes_per_second", rate);
        row.ratio(ratio, "segment_bytes_per_second", "bytes_per_second")
    };
    let rows = plain.iter().map(|plain| {
        compared(plain.name(), "segment_to_plain", rate(&plain.seconds_each))
            .keep("buffers", plain.buffers)
            .keep("in_flight", plain.in_flight)
            .keep("reads_what_it_writes", plain.reads_what_it_writes)
            .keep("seconds_each", &plain.seconds_each)
    });
    let rows: Vec<Row> = rows.collect();
    let row = Row::default()
        .keep("arrays", "out_of_core")
        .show("array_bytes", array_bytes)
        .show("time_seconds", median(&each))
        .show("segment_bytes_per_second", segment_rate)
        .show("disk_read_bytes", moved_bytes[0])
        .show("disk_written_bytes", moved_bytes[1])
        .keep("segment", segment)
        .rows("plain", rows.clone());
    let mapped_row = mapped.as_ref().map(|passes| {
        compared("mmap".into(), "segment_to_mapped", rate(&passes.seconds_each())).keep("passes", passes)
    });
    let to_mapped = mapped_row.as_ref().ok().map(|row| row.number("segment_to_mapped"));
    let row = row.keep("mapped_not_run", mapped.as_ref().err());
    let row = match mapped_row {
        Ok(mapped) => row.row("mapped", mapped),
        Err(_) => row.keep("mapped", ()),
    };
    let mut figures = Figures::of(row).not_run(mapped.err().map(|why| format!("{NO_MAPPED_FILE}: {why}")));
    for (plain, row) in plain.iter().zip(&rows).filter(|(plain, _)| plain.buffers == Buffers::LargePages) {
        let (name, meaning) = match (plain.in_flight, plain.reads_what_it_writes) {
            (1, false) => ("out_of_core_to_plain", "triad out of core to plain I/O"),
            (1, true) => ("out_of_core_to_plain_reading_a", "the same, reading a too"),
            (_, false) => ("out_of_core_to_plain_in_flight", "triad to plain I/O, many in flight"),
            (_, true) => ("out_of_core_to_plain_in_flight_reading_a", "the same, reading a too"),
        };
        figures = figures.target(name, meaning, row.number("segment_to_plain"), Bound::AtLeast, 0.8);
    }
    figures.target("out_of_core_to_mmap", "triad to mmap in as much memory", to_mapped, Bound::AtLeast, 1.0)
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
    fn name(&self) -> String {
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

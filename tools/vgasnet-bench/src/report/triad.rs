//! Results of `triad`.

use super::{Judged, Setting, judged_lines};
use crate::arrays::ARRAYS;
use crate::baseline::{median, quantile};
use crate::disk::Buffers;
use crate::plan::Job;
use crate::targets::{Target, judge_triad};
use crate::triad;
use serde::Serialize;
use vgasnet::config::format_size;

/// A job of `triad`. Throughputs count each array once, as if a store did not read first.
#[derive(Serialize)]
pub struct TriadRun {
    #[serde(flatten)]
    pub setting: Setting,
    pub array_bytes: u64,
    #[serde(flatten)]
    pub measured: Measured,
    pub targets: Vec<Target>,
    /// Also false if there is a figure missing.
    pub reached_all: bool,
}

#[derive(Serialize)]
#[serde(tag = "arrays", rename_all = "snake_case")]
pub enum Measured {
    InPool(InPool),
    OutOfCore(OutOfCore),
}

#[derive(Serialize)]
pub struct InPool {
    pub segment_bytes_per_second: f64,
    pub malloc_bytes_per_second: f64,
    pub malloc_large_pages_bytes_per_second: f64,
    pub segment_to_malloc: f64,
    pub segment_to_malloc_large_pages: f64,
    /// The best of each instead of the median.
    pub segment_to_malloc_best: f64,
    #[serde(flatten)]
    found: triad::InPool,
}

#[derive(Serialize)]
pub struct OutOfCore {
    pub time_seconds: f64,
    pub segment_bytes_per_second: f64,
    pub plain: Vec<Plain>,
    pub mapped: Option<Mapped>,
    /// Why there is no `mapped`.
    pub mapped_not_run: Option<String>,
    segment: triad::Passes,
    segment_large_page_bytes: u64,
    disk_read_bytes: u64,
    disk_written_bytes: u64,
    plain_is_direct: bool,
}

/// The same bytes by plain reads and writes.
#[derive(Serialize)]
pub struct Plain {
    pub buffers: Buffers,
    pub in_flight: usize,
    pub reads_what_it_writes: bool,
    pub bytes_per_second: f64,
    pub segment_to_plain: f64,
    seconds_each: Vec<f64>,
}

/// The same loop over a mapped file.
#[derive(Serialize)]
pub struct Mapped {
    pub limit_bytes: u64,
    pub peak_bytes: Option<u64>,
    pub bytes_per_second: f64,
    pub segment_to_mapped: f64,
    passes: triad::Passes,
}

impl TriadRun {
    /// `peak_bytes` is the most memory that the process had which mapped a file.
    pub fn new(job: &Job, found: triad::Found, peak_bytes: Option<u64>) -> TriadRun {
        let bytes = job.spec.data_bytes as f64;
        let measured = match found {
            triad::Found::InPool(found) => Measured::InPool(InPool::new(bytes, found)),
            triad::Found::OutOfCore(found) => {
                Measured::OutOfCore(OutOfCore::new(bytes, found, job.rank_memory_bytes(), peak_bytes))
            }
        };
        let array_bytes = job.spec.data_bytes / ARRAYS;
        let mut run =
            TriadRun { setting: Setting::new(job), array_bytes, measured, targets: vec![], reached_all: false };
        run.targets = judge_triad(&run);
        run.reached_all = run.not_run().is_none() && run.targets.iter().all(|target| target.reached);
        run
    }

    /// Why a figure is missing, if one is.
    fn not_run(&self) -> Option<&str> {
        match &self.measured {
            Measured::InPool(_) => None,
            Measured::OutOfCore(found) => found.mapped_not_run.as_deref(),
        }
    }

    /// What the segment reaches, then each thing that it is compared with: a name, and bytes per second.
    pub fn throughputs(&self) -> (f64, Vec<(String, f64)>) {
        match &self.measured {
            Measured::InPool(found) => (
                found.segment_bytes_per_second,
                vec![
                    ("malloc".into(), found.malloc_bytes_per_second),
                    ("malloc, large pages".into(), found.malloc_large_pages_bytes_per_second),
                ],
            ),
            Measured::OutOfCore(found) => {
                let plain = found.plain.iter().map(|plain| {
                    let reads = if plain.reads_what_it_writes { ", reads a" } else { "" };
                    let pages = if plain.buffers == Buffers::LargePages { "" } else { ", 4K pages" };
                    (format!("plain, {} in flight{reads}{pages}", plain.in_flight), plain.bytes_per_second)
                });
                let mapped = found.mapped.iter().map(|mapped| ("mmap".into(), mapped.bytes_per_second));
                (found.segment_bytes_per_second, plain.chain(mapped).collect())
            }
        }
    }
}

impl InPool {
    fn new(bytes: f64, found: triad::InPool) -> InPool {
        let [segment, malloc, large] =
            [&found.segment_seconds_each, &found.malloc_seconds_each, &found.malloc_large_pages_seconds_each]
                .map(|seconds_each| bytes / median(seconds_each));
        InPool {
            segment_bytes_per_second: segment,
            malloc_bytes_per_second: malloc,
            malloc_large_pages_bytes_per_second: large,
            segment_to_malloc: segment / malloc,
            segment_to_malloc_large_pages: segment / large,
            segment_to_malloc_best: quantile(&found.malloc_seconds_each, 0.0)
                / quantile(&found.segment_seconds_each, 0.0),
            found,
        }
    }
}

impl OutOfCore {
    fn new(bytes: f64, found: triad::OutOfCore, limit_bytes: u64, peak_bytes: Option<u64>) -> OutOfCore {
        let time_seconds = median(&found.segment.seconds_each());
        let segment = bytes / time_seconds;
        let plain = found.plain.into_iter().map(|plain| {
            let bytes_per_second = bytes / median(&plain.seconds_each);
            Plain {
                buffers: plain.buffers,
                in_flight: plain.in_flight,
                reads_what_it_writes: plain.reads_what_it_writes,
                bytes_per_second,
                segment_to_plain: segment / bytes_per_second,
                seconds_each: plain.seconds_each,
            }
        });
        let (mapped, mapped_not_run) = match found.mapped {
            Err(reason) => (None, Some(reason)),
            Ok(passes) => {
                let bytes_per_second = bytes / median(&passes.seconds_each());
                let segment_to_mapped = segment / bytes_per_second;
                (Some(Mapped { limit_bytes, peak_bytes, bytes_per_second, segment_to_mapped, passes }), None)
            }
        };
        OutOfCore {
            time_seconds,
            segment_bytes_per_second: segment,
            plain: plain.collect(),
            mapped,
            mapped_not_run,
            segment: found.segment,
            segment_large_page_bytes: found.segment_large_page_bytes,
            disk_read_bytes: found.disk_read_bytes,
            disk_written_bytes: found.disk_written_bytes,
            plain_is_direct: found.plain_is_direct,
        }
    }
}

impl Judged<'_, TriadRun> {
    pub fn table(&self) -> String {
        let mut text = String::new();
        for run in &self.runs {
            let (segment, others) = run.throughputs();
            let (array, pool) = (format_size(run.array_bytes), format_size(run.setting.pool_bytes));
            text += &format!("three arrays of {array}, pool {pool}, page {}\n", format_size(run.setting.page_bytes));
            text += &format!("  {:<38} {:>8} {:>12}\n", "", "GB/s", "segment to");
            text += &format!("  {:<38} {:>8.2} {:>12}\n", "segment", segment / 1e9, "");
            for (name, bytes_per_second) in others {
                let (throughput, ratio) = (bytes_per_second / 1e9, segment / bytes_per_second);
                text += &format!("  {name:<38} {throughput:>8.2} {ratio:>12.3}\n");
            }
            text += &run.remarks();
            text += &judged_lines(&run.targets);
        }
        text
    }
}

impl TriadRun {
    /// What a reader of the figures has to know.
    fn remarks(&self) -> String {
        match &self.measured {
            Measured::InPool(InPool { found, .. }) => format!(
                "  in large pages: segment {}, malloc {}, malloc with large pages {}, of {} each\n  the kernel makes \
                 large pages: {} for malloc, {} for shared memory\n",
                format_size(found.segment_large_page_bytes),
                format_size(found.malloc_large_page_bytes),
                format_size(found.malloc_large_pages_large_page_bytes),
                format_size(ARRAYS * self.array_bytes),
                found.large_pages_anonymous,
                found.large_pages_shared,
            ),
            Measured::OutOfCore(found) => {
                let mut text = format!(
                    "  a triad moved {:.2} GB from the disk and {:.2} GB to it; the arrays have {:.2} GB each\n  \
                     {} of them were mapped in large pages at the end\n",
                    found.disk_read_bytes as f64 / 1e9,
                    found.disk_written_bytes as f64 / 1e9,
                    self.array_bytes as f64 / 1e9,
                    format_size(found.segment_large_page_bytes),
                );
                if !found.plain_is_direct {
                    text += "  the directory has no O_DIRECT: plain reads and writes went through the page cache\n";
                }
                if let Some(mapped) = &found.mapped {
                    let peak = mapped.peak_bytes.map_or_else(|| "an unknown part".into(), format_size);
                    text += &format!("  mmap had {} of memory and used {peak}\n", format_size(mapped.limit_bytes));
                }
                if let Some(reason) = self.not_run() {
                    text += &format!("  NOT RUN: mmap in as much memory: {reason}\n");
                }
                text
            }
        }
    }
}

//! Results of `triad`.

use super::{Figures, Setting, Verdict, not_direct};
use crate::arrays::ARRAYS;
use crate::baseline::{median, quantile};
use crate::plan::Job;
use crate::targets::judge_triad;
use crate::triad;
use serde::Serialize;
use vgasnet_settings::format_size;

/// Throughputs count each array once, as if a store did not read first.
#[derive(Serialize)]
pub struct TriadFigures {
    pub array_bytes: u64,
    #[serde(flatten)]
    measured: Measured,
}

#[derive(Serialize)]
#[serde(tag = "arrays", rename_all = "snake_case")]
pub enum Measured {
    InPool(InPool),
    OutOfCore(OutOfCore),
}

#[derive(Serialize)]
pub struct InPool {
    segment_bytes_per_second: f64,
    malloc_bytes_per_second: f64,
    malloc_large_pages_bytes_per_second: f64,
    pub segment_to_malloc: f64,
    segment_to_malloc_large_pages: f64,
    /// The best of each instead of the median.
    segment_to_malloc_best: f64,
    #[serde(flatten)]
    found: triad::InPool,
}

#[derive(Serialize)]
pub struct OutOfCore {
    time_seconds: f64,
    segment_bytes_per_second: f64,
    pub plain: Vec<Plain>,
    pub mapped: Option<Mapped>,
    /// The reason for having no `mapped`.
    mapped_not_run: Option<String>,
    #[serde(flatten)]
    found: triad::InSegment,
}

/// The same bytes by plain reads and writes.
#[derive(Serialize)]
pub struct Plain {
    #[serde(flatten)]
    pub found: triad::Plain,
    bytes_per_second: f64,
    pub segment_to_plain: f64,
}

/// The same loop over a mapped file.
#[derive(Serialize)]
pub struct Mapped {
    limit_bytes: u64,
    peak_bytes: Option<u64>,
    bytes_per_second: f64,
    pub segment_to_mapped: f64,
    passes: triad::Passes,
}

impl TriadFigures {
    /// `peak_bytes`: peak memory of the process with the mapped file.
    pub fn new(job: &Job, found: triad::Found, peak_bytes: Option<u64>) -> TriadFigures {
        let bytes = job.spec.data_bytes as f64;
        let measured = match found {
            triad::Found::InPool(found) => Measured::InPool(InPool::new(bytes, found)),
            triad::Found::OutOfCore(found) => {
                Measured::OutOfCore(OutOfCore::new(bytes, found, job.rank_memory_bytes(), peak_bytes))
            }
        };
        TriadFigures { array_bytes: job.spec.data_bytes / ARRAYS, measured }
    }

    /// The segment's throughput, and the name and throughput of each baseline, in bytes per second.
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
                let plain = found.plain.iter().map(|plain| (plain.found.name(), plain.bytes_per_second));
                let mapped = found.mapped.iter().map(|mapped| ("mmap".into(), mapped.bytes_per_second));
                (found.segment_bytes_per_second, plain.chain(mapped).collect())
            }
        }
    }

    /// The reason for a missing figure, if one is missing.
    fn not_run(&self) -> Option<&str> {
        match &self.measured {
            Measured::InPool(_) => None,
            Measured::OutOfCore(found) => found.mapped_not_run.as_deref(),
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
        let time_seconds = median(&found.own.segment.seconds_each());
        let segment = bytes / time_seconds;
        let plain = found.plain.into_iter().map(|found| {
            let bytes_per_second = bytes / median(&found.seconds_each);
            Plain { found, bytes_per_second, segment_to_plain: segment / bytes_per_second }
        });
        let mapped = found.mapped.map(|passes| {
            let bytes_per_second = bytes / median(&passes.seconds_each());
            let segment_to_mapped = segment / bytes_per_second;
            Mapped { limit_bytes, peak_bytes, bytes_per_second, segment_to_mapped, passes }
        });
        OutOfCore {
            time_seconds,
            segment_bytes_per_second: segment,
            plain: plain.collect(),
            mapped_not_run: mapped.as_ref().err().cloned(),
            mapped: mapped.ok(),
            found: found.own,
        }
    }
}

impl Figures for TriadFigures {
    fn judge(&self, _job: &Job) -> Option<Verdict> {
        Some(Verdict::new(judge_triad(&self.measured), self.not_run().is_none()))
    }

    fn rows(&self, setting: &Setting) -> String {
        let (segment, others) = self.throughputs();
        let [array, pool, page] = [self.array_bytes, setting.pool_bytes, setting.page_bytes].map(format_size);
        let mut text = format!("three arrays of {array}, pool {pool}, page {page}\n");
        text += &format!("  {:<38} {:>8} {:>12}\n", "", "GB/s", "segment to");
        text += &format!("  {:<38} {:>8.2} {:>12}\n", "segment", segment / 1e9, "");
        for (name, bytes_per_second) in others {
            let (throughput, ratio) = (bytes_per_second / 1e9, segment / bytes_per_second);
            text += &format!("  {name:<38} {throughput:>8.2} {ratio:>12.3}\n");
        }
        text + &self.remarks()
    }
}

impl TriadFigures {
    /// Circumstances of the figures.
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
            Measured::OutOfCore(OutOfCore { found, mapped, .. }) => {
                let mut text = format!(
                    "  a triad moved {:.2} GB from the disk and {:.2} GB to it; the arrays have {:.2} GB each\n  \
                     {} of them were mapped in large pages at the end\n",
                    found.disk_read_bytes as f64 / 1e9,
                    found.disk_written_bytes as f64 / 1e9,
                    self.array_bytes as f64 / 1e9,
                    format_size(found.segment_large_page_bytes),
                );
                text += &not_direct(found.plain_is_direct, "  ", "reads and writes");
                if let Some(mapped) = mapped {
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

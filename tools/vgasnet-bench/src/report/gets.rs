//! Results of `gets`.

use super::{Figures, SETTING_HEAD, Setting, Verdict};
use crate::baseline::median;
use crate::gets::by_mpi::{ByMpi, MpiRow};
use crate::gets::{Class, Drawn, Found, Latency, Sizes};
use crate::plan::Job;
use crate::programs::mpi::Network;
use crate::targets::judge_gets;
use serde::Serialize;
use vgasnet_settings::format_size_about;

#[derive(Serialize)]
pub struct GetsFigures {
    distinct_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<SizeFigures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drawn: Option<DrawnFigures>,
}

#[derive(Serialize)]
pub struct SizeFigures {
    pub rows: Vec<LatencyRow>,
    /// The time of a scan without reuse, divided by the time without the cache.
    pub scan_to_uncached: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_mpi: Option<ByMpi>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mpi_not_run: Option<String>,
}

/// Medians of rounds for gets of one size.
#[derive(Serialize)]
pub struct LatencyRow {
    pub uncached_us: f64,
    pub miss_us: f64,
    pub hit_ns: f64,
    pub copy_ns: f64,
    pub miss_to_uncached: f64,
    pub uncached_to_hit: f64,
    pub copy_to_hit: f64,
    #[serde(flatten)]
    pub latency: Latency,
}

#[derive(Serialize)]
pub struct DrawnFigures {
    pub seconds: f64,
    pub uncached_seconds: f64,
    pub uncached_to_cached: f64,
    pub hit_ratio: f64,
    /// The used fraction of the cache memory at the end.
    pub occupancy_last: f64,
    #[serde(flatten)]
    pub drawn: Drawn,
}

impl GetsFigures {
    /// `by_mpi` is measured once, with the job for sizes.
    pub fn new(found: Found, by_mpi: Option<Result<ByMpi, String>>) -> GetsFigures {
        let distinct_bytes = found.distinct_bytes;
        let by_mpi = by_mpi.unwrap_or_else(|| Err("it was measured once".into()));
        let sizes = found.sizes.map(|sizes| SizeFigures::new(sizes, by_mpi));
        GetsFigures { distinct_bytes, sizes, drawn: found.drawn.map(DrawnFigures::new) }
    }
}

impl SizeFigures {
    fn new(sizes: Sizes, by_mpi: Result<ByMpi, String>) -> SizeFigures {
        let scans = sizes.scan_seconds_each.iter().zip(&sizes.uncached_scan_seconds_each);
        let ratios: Vec<f64> = scans.map(|(scan, uncached)| scan / uncached).collect();
        let (by_mpi, mpi_not_run) = match by_mpi {
            Ok(by_mpi) => (Some(by_mpi), None),
            Err(why) => (None, Some(why)),
        };
        let measured = sizes.latencies.into_iter().filter(|latency| !latency.hit_ns_each.is_empty());
        let rows = measured.map(LatencyRow::new).collect();
        SizeFigures { rows, scan_to_uncached: median(&ratios), by_mpi, mpi_not_run }
    }

    pub fn row(&self, size_bytes: usize) -> Option<&LatencyRow> {
        self.rows.iter().find(|row| row.latency.size_bytes == size_bytes)
    }

    fn table(&self) -> String {
        let mut text = "  Figures 7 and 8: a get by size, medians\n".to_owned();
        text += &format!(
            "  {:>6} {:>12} {:>9} {:>12} {:>8} {:>9} {:>14} {:>14}\n",
            "bytes", "uncached us", "miss us", "to uncached", "hit ns", "copy ns", "copy to hit", "uncached/hit"
        );
        for row in &self.rows {
            text += &format!(
                "  {:>6} {:>12.2} {:>9.2} {:>12.2} {:>8.1} {:>9.1} {:>14.2} {:>14.0}\n",
                row.latency.size_bytes,
                row.uncached_us,
                row.miss_us,
                row.miss_to_uncached,
                row.hit_ns,
                row.copy_ns,
                row.copy_to_hit,
                row.uncached_to_hit
            );
        }
        text += &format!("  gets of 512 bytes without reuse, to uncached: {:.3}\n", self.scan_to_uncached);
        text += "  the paper, on a Cray XC50: a hit 9.3 (4 KiB) and 3.7 (16 KiB) times as fast as an uncached get; this is another \
                 machine\n";
        text + &self.mpi_table()
    }

    fn mpi_table(&self) -> String {
        let Some(by_mpi) = &self.by_mpi else {
            let why = self.mpi_not_run.as_deref().unwrap_or_default();
            return format!("  NOT RUN: MPI_Get and MPI_Win_flush: {why}\n");
        };
        let mut text = format!("  MPI_Get and MPI_Win_flush, {}, cached in mode {}, us\n", by_mpi.mpi, by_mpi.mode);
        for network in [Network::Tcp, Network::SharedMemory] {
            let rows: Vec<&MpiRow> = by_mpi.rows.iter().filter(|row| row.network == network).collect();
            for row in rows.iter().filter(|row| row.size_bytes.trailing_zeros() % 2 == 0) {
                let plain = median(&row.plain_us_each);
                text += &format!("  {:<14} {:>6} plain {plain:>9.3}", network.name(), row.size_bytes);
                if !row.cached_us_each.is_empty() {
                    let cached = median(&row.cached_us_each);
                    text += &format!(" cached {cached:>9.3}, {:.1} times as fast", plain / cached);
                }
                text += "\n";
            }
        }
        for why in &by_mpi.not_run {
            text += &format!("  NOT RUN: MPI: {why}\n");
        }
        text
    }
}

impl LatencyRow {
    fn new(latency: Latency) -> LatencyRow {
        let uncached_us = median(&latency.uncached_us_each);
        let (miss_us, hit_ns) = (median(&latency.miss_us_each), median(&latency.hit_ns_each));
        let copy_ns = median(&latency.copy_ns_each);
        let misses = latency.miss_us_each.iter().zip(&latency.uncached_us_each);
        let miss_to_uncached = median(&misses.map(|(miss, uncached)| miss / uncached).collect::<Vec<_>>());
        LatencyRow {
            uncached_us,
            miss_us,
            hit_ns,
            copy_ns,
            miss_to_uncached,
            uncached_to_hit: uncached_us * 1e3 / hit_ns,
            copy_to_hit: copy_ns / hit_ns,
            latency,
        }
    }
}

impl DrawnFigures {
    fn new(drawn: Drawn) -> DrawnFigures {
        let (seconds, uncached_seconds) = (median(&drawn.seconds_each), median(&drawn.uncached_seconds_each));
        DrawnFigures {
            seconds,
            uncached_seconds,
            uncached_to_cached: uncached_seconds / seconds,
            hit_ratio: drawn.stats.hits as f64 / drawn.stats.gets as f64,
            occupancy_last: drawn.occupancy.last().copied().unwrap_or(0.0),
            drawn,
        }
    }

    fn line(&self, distinct_bytes: u64) -> String {
        let stats = &self.drawn.stats;
        let part = |count: u64| 100.0 * count as f64 / stats.gets as f64;
        let mut text = format!(
            "  {:>8} for copies of {}: all draws {:.3} s, {:.2} times as fast as uncached; {:.1} % hits, {:.1} % partial, \
             {:.1} % direct, {:.1} % conflicting, {:.1} % capacity, {:.1} % failing; occupancy {:.2}\n",
            format_size_about(self.drawn.cache_bytes),
            format_size_about(distinct_bytes),
            self.seconds,
            self.uncached_to_cached,
            100.0 * self.hit_ratio,
            part(stats.partial),
            part(stats.direct),
            part(stats.conflicting),
            part(stats.capacity),
            part(stats.failing),
            self.occupancy_last,
        );
        let us = |(class, us): &(Class, f64)| format!("{} {us:.2}", format!("{class:?}").to_lowercase());
        text +=
            &format!("           us a get: {}\n", self.drawn.class_us.iter().map(us).collect::<Vec<_>>().join(", "));
        let parts = self.drawn.occupancy.iter().map(|part| format!("{part:.2}")).collect::<Vec<_>>();
        text + &format!("           occupancy over time: {}\n", parts.join(" "))
    }
}

impl Figures for GetsFigures {
    fn judge(&self, job: &Job) -> Option<Verdict> {
        let is_complete = self
            .sizes
            .as_ref()
            .is_none_or(|sizes| sizes.by_mpi.as_ref().is_some_and(|by_mpi| by_mpi.not_run.is_empty()));
        Some(Verdict::new(judge_gets(job, self), is_complete))
    }

    fn rows(&self, setting: &Setting) -> String {
        let head = format!(
            "{SETTING_HEAD}\n{}, {} to read, seed {}\n",
            setting.columns(),
            format_size_about(self.distinct_bytes),
            setting.seed
        );
        let sizes = self.sizes.as_ref().map(|sizes| head + &sizes.table());
        let drawn = self.drawn.as_ref().map(|drawn| drawn.line(self.distinct_bytes));
        sizes.or(drawn).unwrap_or_default()
    }
}

//! Results of `sweep`.

use super::{Figures, SETTING_HEAD, Setting, Verdict};
use crate::baseline::median;
use crate::plan::Job;
use crate::sweep::Found;
use crate::targets::judge_sweep;
use serde::Serialize;
use vgasnet_settings::format_size;

#[derive(Serialize)]
pub struct SweepFigures {
    pub size_bytes: u64,
    size_to_pool: f64,
    is_random: bool,
    time_seconds: f64,
    pub throughput_bytes_per_second: f64,
    /// The maximum over the rounds, per page requested by ranks.
    messages_a_page: f64,
    #[serde(flatten)]
    found: Found,
}

impl SweepFigures {
    pub fn new(job: &Job, found: Found) -> SweepFigures {
        let (size_bytes, time_seconds) = (job.spec.data_bytes, median(&found.time_seconds_each));
        let pages = found.bytes_read_all_ranks as f64 / job.config.page_bytes as f64;
        let messages_max = found.messages_each_all_ranks.iter().copied().max().unwrap_or(0);
        SweepFigures {
            size_bytes,
            size_to_pool: size_bytes as f64 / job.config.pool_bytes as f64,
            is_random: job.spec.only_random,
            time_seconds,
            throughput_bytes_per_second: found.bytes_read_all_ranks as f64 / time_seconds,
            messages_a_page: messages_max as f64 / pages,
            found,
        }
    }

    /// The order of the reads.
    pub fn order(&self) -> &'static str {
        if self.is_random { "random" } else { "sequential" }
    }
}

impl Figures for SweepFigures {
    fn judge(&self, job: &Job) -> Option<Verdict> {
        // A single rank sends no messages.
        let targets = if job.ranks > 1 { judge_sweep(self.messages_a_page) } else { Vec::new() };
        Some(Verdict::new(targets, true))
    }

    fn time_seconds(&self) -> Option<f64> {
        Some(self.time_seconds)
    }

    fn subject(&self) -> String {
        format!(", {}, {}", self.order(), format_size(self.size_bytes))
    }

    fn head() -> String {
        format!(
            "{SETTING_HEAD} {:<10} {:>6} {:>5} {:>8} {:>7} {:>13} {:>7}\n",
            "order", "size", "pools", "time s", "GB/s", "messages/page", "disk GB"
        )
    }

    fn rows(&self, setting: &Setting) -> String {
        format!(
            "{} {:<10} {:>6} {:>5.2} {:>8.3} {:>7.2} {:>13.2} {:>7.2}\n",
            setting.columns(),
            self.order(),
            format_size(self.size_bytes),
            self.size_to_pool,
            self.time_seconds,
            self.throughput_bytes_per_second / 1e9,
            self.messages_a_page,
            self.found.disk_read_bytes_all_ranks as f64 / 1e9,
        )
    }
}

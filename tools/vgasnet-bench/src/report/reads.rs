//! Results of `sequential` and `random`.

use super::{Figures, Run, SETTING_HEAD, Setting, not_direct};
use crate::baseline::median;
use crate::plan::{BLOCK_BYTES, Job};
use crate::reads::Found;
use serde::Serialize;
use std::path::PathBuf;
use vgasnet_settings::format_size;

#[derive(Serialize)]
pub struct ReadFigures {
    size_bytes: u64,
    get_bytes: u64,
    input: Option<PathBuf>,
    time_seconds: f64,
    pub throughput_bytes_per_second: f64,
    pub plain_read_bytes_per_second: f64,
    throughput_to_plain: f64,
    pub memcpy_bytes_per_second: f64,
    throughput_to_memcpy: f64,
    #[serde(flatten)]
    found: Found,
}

impl ReadFigures {
    pub fn new(job: &Job, found: Found) -> ReadFigures {
        let time_seconds = median(&found.time_seconds_each);
        let throughput = found.bytes_read_all_ranks as f64 / time_seconds;
        let plain = found.plain_bytes as f64 / median(&found.plain_seconds_each);
        let memcpy = BLOCK_BYTES as f64 / median(&found.copy_4_mib_seconds_each);
        ReadFigures {
            size_bytes: job.spec.data_bytes,
            get_bytes: BLOCK_BYTES,
            input: job.spec.input.clone(),
            time_seconds,
            throughput_bytes_per_second: throughput,
            plain_read_bytes_per_second: plain,
            throughput_to_plain: throughput / plain,
            memcpy_bytes_per_second: memcpy,
            throughput_to_memcpy: throughput / memcpy,
            found,
        }
    }
}

impl Figures for ReadFigures {
    fn time_seconds(&self) -> Option<f64> {
        Some(self.time_seconds)
    }

    fn head() -> String {
        format!(
            "{SETTING_HEAD} {:>6} {:>8} {:>7} {:>10} {:>9} {:>11} {:>9} {:>7}\n",
            "size", "time s", "GB/s", "plain GB/s", "to plain", "memcpy GB/s", "to memcpy", "disk GB"
        )
    }

    fn rows(&self, setting: &Setting) -> String {
        format!(
            "{} {:>6} {:>8.3} {:>7.2} {:>10.2} {:>9.2} {:>11.2} {:>9.2} {:>7.2}\n",
            setting.columns(),
            format_size(self.size_bytes),
            self.time_seconds,
            self.throughput_bytes_per_second / 1e9,
            self.plain_read_bytes_per_second / 1e9,
            self.throughput_to_plain,
            self.memcpy_bytes_per_second / 1e9,
            self.throughput_to_memcpy,
            self.found.disk_read_bytes_all_ranks as f64 / 1e9,
        )
    }

    fn remarks(runs: &[Run<ReadFigures>]) -> String {
        let mut text = not_direct(runs.iter().all(|run| run.figures.found.plain_is_direct), "", "reads");
        for run in runs.iter().filter(|run| run.figures.input.is_some()) {
            let (ranks, found) = (run.setting.ranks, &run.figures.found);
            text += &format!(
                "-n {ranks}: {} bytes compared with the file, all the same; checksums took {:.3} s of the time\n",
                found.checked_bytes, found.checksum_seconds
            );
        }
        text
    }
}

//! Results of `page-size`.

use super::{Figures, SETTING_HEAD, Setting, Verdict};
use crate::baseline::median;
use crate::page_size::Found;
use crate::plan::Job;
use crate::targets::judge_page_size;
use serde::Serialize;

#[derive(Serialize)]
pub struct PageSizeFigures {
    size_bytes: u64,
    pub home_pool_bytes_per_second: f64,
    pub third_pool_bytes_per_second: f64,
    pub home_disk_bytes_per_second: f64,
    pub home_raw_bytes_per_second: f64,
    pub third_raw_bytes_per_second: f64,
    #[serde(flatten)]
    found: Found,
}

impl PageSizeFigures {
    pub fn new(job: &Job, found: Found) -> PageSizeFigures {
        let size_bytes = job.spec.data_bytes;
        let rate = |seconds_each: &[f64]| size_bytes as f64 / median(seconds_each);
        PageSizeFigures {
            size_bytes,
            home_pool_bytes_per_second: rate(&found.home_pool_seconds_each),
            third_pool_bytes_per_second: rate(&found.third_pool_seconds_each),
            home_disk_bytes_per_second: rate(&found.home_disk_seconds_each),
            home_raw_bytes_per_second: rate(&found.home_raw_seconds_each),
            third_raw_bytes_per_second: rate(&found.third_raw_seconds_each),
            found,
        }
    }
}

impl Figures for PageSizeFigures {
    fn judge(&self, job: &Job) -> Option<Verdict> {
        Some(Verdict::new(judge_page_size(job.config.page_bytes, self), true))
    }

    fn rows(&self, setting: &Setting) -> String {
        let rates = [
            ("home's pool", self.home_pool_bytes_per_second, self.home_raw_bytes_per_second),
            ("third rank's pool", self.third_pool_bytes_per_second, self.third_raw_bytes_per_second),
            ("home's disk", self.home_disk_bytes_per_second, self.home_raw_bytes_per_second),
        ];
        let mut text = format!("{SETTING_HEAD}\n{}\n", setting.columns());
        text += &format!("  {:<18} {:>8} {:>10} {:>8}\n", "from", "MB/s", "copy MB/s", "to copy");
        for (place, rate, copy) in rates {
            text += &format!("  {place:<18} {:>8.0} {:>10.0} {:>8.2}\n", rate / 1e6, copy / 1e6, rate / copy);
        }
        text
    }
}

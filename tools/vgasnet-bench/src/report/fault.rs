//! Results of `fault`.

use super::{Figures, SETTING_HEAD, Setting, Verdict, not_direct};
use crate::faults::Found;
use crate::plan::Job;
use crate::targets::judge_fault;

impl Figures for Found {
    fn judge(&self, _job: &Job) -> Option<Verdict> {
        Some(Verdict::new(judge_fault(self), true))
    }

    fn rows(&self, setting: &Setting) -> String {
        let mut text = format!(
            "{SETTING_HEAD}\n{}\n  {:<24} {:>7} {:>8} {:>8} {:>8} {:>8} {:>12}\n",
            setting.columns(),
            "us",
            "samples",
            "min",
            "median",
            "p99",
            "max",
            "less a copy"
        );
        for latency in &self.faults {
            text += &format!(
                "  {:<24} {:>7} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>12.1}\n",
                latency.kind,
                latency.samples,
                latency.min_us,
                latency.median_us,
                latency.p99_us,
                latency.max_us,
                latency.median_us - self.copy_page_us,
            );
        }
        text += &format!(
            "  memcpy of a page {:.1}; plain read of a page {:.1}, p99 {:.1}; load where mapped {:.3}\n",
            self.copy_page_us,
            self.plain_read_page_us,
            self.plain_read_page_p99_us,
            self.mapped_load_ns / 1e3,
        );
        text + &not_direct(self.plain_is_direct, "  ", "reads")
    }
}

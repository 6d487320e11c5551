//! Results of `fault`.

use super::{Judge, SETTING_HEAD, Setting, Verdict, not_direct};
use crate::faults::Found;
use crate::plan::Job;
use crate::targets::judge_fault;
use serde::Serialize;

/// A job of `fault`.
#[derive(Serialize)]
pub struct FaultRun {
    #[serde(flatten)]
    pub setting: Setting,
    #[serde(flatten)]
    pub found: Found,
    #[serde(flatten)]
    verdict: Verdict,
}

impl FaultRun {
    pub fn new(job: &Job, found: Found) -> FaultRun {
        FaultRun { setting: Setting::new(job), verdict: Verdict::new(judge_fault(&found), true), found }
    }
}

impl Judge for FaultRun {
    fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    fn table(&self) -> String {
        let found = &self.found;
        let mut text = format!(
            "{SETTING_HEAD}\n{}\n  {:<24} {:>7} {:>8} {:>8} {:>8} {:>8} {:>12}\n",
            self.setting.columns(),
            "us",
            "samples",
            "min",
            "median",
            "p99",
            "max",
            "less a copy"
        );
        for latency in &found.faults {
            text += &format!(
                "  {:<24} {:>7} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>12.1}\n",
                latency.kind,
                latency.samples,
                latency.min_us,
                latency.median_us,
                latency.p99_us,
                latency.max_us,
                latency.median_us - found.copy_page_us,
            );
        }
        text += &format!(
            "  memcpy of a page {:.1}; plain read of a page {:.1}, p99 {:.1}; load where mapped {:.3}\n",
            found.copy_page_us,
            found.plain_read_page_us,
            found.plain_read_page_p99_us,
            found.mapped_load_ns / 1e3,
        );
        text + &not_direct(found.plain_is_direct, "  ", "reads")
    }
}

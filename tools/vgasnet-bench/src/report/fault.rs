//! Results of `fault`.

use super::{Judged, SETTING_HEAD, Setting, judged_lines};
use crate::faults;
use crate::plan::Job;
use crate::targets::{Target, judge_fault};
use serde::Serialize;

/// A job of `fault`.
#[derive(Serialize)]
pub struct FaultRun {
    #[serde(flatten)]
    pub setting: Setting,
    #[serde(flatten)]
    pub found: faults::Found,
    pub targets: Vec<Target>,
    pub reached_all: bool,
}

impl FaultRun {
    pub fn new(job: &Job, found: faults::Found) -> FaultRun {
        let mut run = FaultRun { setting: Setting::new(job), found, targets: vec![], reached_all: false };
        run.targets = judge_fault(&run);
        run.reached_all = run.targets.iter().all(|target| target.reached);
        run
    }
}

impl Judged<'_, FaultRun> {
    pub fn table(&self) -> String {
        let mut text = String::new();
        for run in &self.runs {
            let found = &run.found;
            text += &format!("{SETTING_HEAD}\n{}\n", run.setting.columns());
            text += &format!(
                "  {:<24} {:>7} {:>8} {:>8} {:>8} {:>8} {:>12}\n",
                "us", "samples", "min", "median", "p99", "max", "less a copy"
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
            if !found.plain_is_direct {
                text += "  the directory has no O_DIRECT: plain reads went through the page cache\n";
            }
            text += &judged_lines(&run.targets);
        }
        text
    }
}

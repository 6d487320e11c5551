//! Results of `hit`.

use super::{Setting, Verdict, not_direct};
use crate::hit::Found;
use crate::plan::Job;
use crate::targets::judge_hit;
use serde::Serialize;
use std::path::Path;

/// The job of `hit`.
#[derive(Serialize)]
pub struct HitReport<'a> {
    benchmark: &'static str,
    storage_dir: &'a Path,
    #[serde(flatten)]
    setting: Setting,
    segment_bytes: u64,
    #[serde(flatten)]
    verdict: Verdict,
    #[serde(flatten)]
    found: Found,
}

impl HitReport<'_> {
    pub fn new(job: &Job, found: Found) -> HitReport<'_> {
        HitReport {
            benchmark: job.spec.workload.name(),
            storage_dir: &job.config.storage_dir,
            setting: Setting::new(job),
            segment_bytes: job.spec.data_bytes,
            verdict: Verdict::new(judge_hit(job, &found), true),
            found,
        }
    }

    pub fn reached_all(&self) -> bool {
        self.verdict.reached_all
    }

    pub fn table(&self) -> String {
        self.verdict.table() + &not_direct(self.found.plain_is_direct, "", "reads")
    }
}

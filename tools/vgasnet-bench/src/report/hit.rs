//! Results of `hit`.

use super::{Figures, Report, Run, Setting, Verdict, not_direct};
use crate::hit::Found;
use crate::plan::{Job, Workload};
use crate::targets::judge_hit;
use serde::Serialize;
use std::path::Path;

#[derive(Serialize)]
pub struct HitFigures {
    segment_bytes: u64,
    #[serde(flatten)]
    found: Found,
}

/// The one job of the benchmark, without a list of jobs.
#[derive(Serialize)]
pub struct HitReport<'a> {
    benchmark: Workload,
    storage_dir: &'a Path,
    #[serde(flatten)]
    run: &'a Run<HitFigures>,
}

impl HitReport<'_> {
    pub fn new<'a>(report: &'a Report<'a, HitFigures>) -> HitReport<'a> {
        HitReport { benchmark: report.benchmark, storage_dir: report.storage_dir, run: &report.runs[0] }
    }
}

impl HitFigures {
    pub fn new(job: &Job, found: Found) -> HitFigures {
        HitFigures { segment_bytes: job.spec.data_bytes, found }
    }
}

impl Figures for HitFigures {
    fn judge(&self, job: &Job) -> Option<Verdict> {
        Some(Verdict::new(judge_hit(job, &self.found), true))
    }

    fn rows(&self, _setting: &Setting) -> String {
        String::new()
    }

    fn remarks(runs: &[Run<HitFigures>]) -> String {
        not_direct(runs[0].figures.found.plain_is_direct, "", "reads")
    }
}

//! Results of `hit`.

use super::{Figures, Report, Run, Setting, Verdict, not_direct};
use crate::hit::Found;
use crate::plan::{Job, Workload};
use crate::targets::judge_hit;
use serde::Serialize;
use std::path::Path;

/// The one job of the benchmark, without a list of jobs.
#[derive(Serialize)]
pub struct HitReport<'a> {
    benchmark: Workload,
    storage_dir: &'a Path,
    #[serde(flatten)]
    run: &'a Run<Found>,
}

impl HitReport<'_> {
    pub fn of<'a>(report: &'a Report<'a, Found>) -> HitReport<'a> {
        HitReport { benchmark: report.benchmark, storage_dir: report.storage_dir, run: &report.runs[0] }
    }
}

impl Figures for Found {
    fn judge(&self, job: &Job) -> Option<Verdict> {
        Some(Verdict::new(judge_hit(job, self), true))
    }

    fn rows(&self, _setting: &Setting) -> String {
        String::new()
    }

    fn remarks(runs: &[Run<Found>]) -> String {
        not_direct(runs[0].figures.plain_is_direct, "", "reads")
    }
}

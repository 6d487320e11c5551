//! Results of `hit`.

use super::{Figures, Report, Run, Setting, Verdict, not_direct};
use crate::baseline::median;
use crate::hit::Found;
use crate::plan::{Job, Workload};
use crate::targets::judge_hit;
use serde::Serialize;
use std::path::Path;
use vgasnet_settings::format_size;

/// The only job of the benchmark, without a list of jobs.
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
        let mut text = String::new();
        for hits in &self.random_hits {
            text += &format!(
                "random 8-byte gets, {:>4}, {} threads, {:<9} pool: {:6.1} ns, a load {:6.1}, over it {:6.1}\n",
                format_size(hits.working_set_bytes),
                hits.threads,
                if hits.neighbour { "neighbour" } else { "own" },
                median(&hits.get_ns_each),
                median(&hits.load_ns_each),
                hits.over_load_ns(),
            );
        }
        text
    }

    fn remarks(runs: &[Run<Found>]) -> String {
        let found = &runs[0].figures;
        if found.plain_bytes == 0 { String::new() } else { not_direct(found.plain_is_direct, "", "reads") }
    }
}

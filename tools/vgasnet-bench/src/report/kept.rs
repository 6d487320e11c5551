//! Results of `loop` and of `blocks`.

use super::{Figures, SETTING_HEAD, Setting, Verdict};
use crate::baseline::median;
use crate::plan::Job;
use crate::targets::{judge_blocks, judge_loop};
use crate::{blocks, cycle};
use serde::Serialize;

impl Figures for cycle::Found {
    fn judge(&self, _job: &Job) -> Option<Verdict> {
        Some(Verdict::new(judge_loop(self), true))
    }

    fn rows(&self, setting: &Setting) -> String {
        let mut text = format!("{SETTING_HEAD}\n{}\n", setting.columns());
        for (way, rounds) in [("gets", &self.gets), ("loads", &self.loads)] {
            let kept: Vec<String> = rounds.kept_each.iter().map(|kept| format!("{kept:.3}")).collect();
            let seconds = median(&rounds.seconds_each);
            text +=
                &format!("  {way:<6} not read from the disk, by round: {}; {seconds:.2} s a round\n", kept.join(" "));
        }
        text
    }
}

/// The times of shuffled blocks with one pool, next to the next smaller pool.
#[derive(Serialize)]
pub struct BlockFigures {
    data_bytes: u64,
    pub seconds: f64,
    pub mapped_seconds: Option<f64>,
    /// The reason for having no mapped file.
    #[serde(skip_serializing_if = "Option::is_none")]
    mapped_not_run: Option<String>,
    /// With the previous, smaller pool.
    pub smaller_pool_seconds: Option<f64>,
    seconds_each: Vec<f64>,
}

impl BlockFigures {
    pub fn new(job: &Job, found: blocks::Found, smaller_pool_seconds: Option<f64>) -> BlockFigures {
        BlockFigures {
            data_bytes: job.spec.data_bytes,
            seconds: median(&found.seconds_each),
            mapped_seconds: found.mapped_seconds_each.as_deref().ok().map(median),
            mapped_not_run: found.mapped_seconds_each.err(),
            smaller_pool_seconds,
            seconds_each: found.seconds_each,
        }
    }
}

impl Figures for BlockFigures {
    fn judge(&self, _job: &Job) -> Option<Verdict> {
        Some(Verdict::new(judge_blocks(self), self.mapped_not_run.is_none()))
    }

    fn rows(&self, setting: &Setting) -> String {
        let mapped = match (self.mapped_seconds, &self.mapped_not_run) {
            (Some(seconds), _) => format!("mmap in as much memory (a cgroup) {seconds:.2} s"),
            (None, why) => format!("no mmap beside it: {}", why.as_deref().unwrap_or_default()),
        };
        format!("{SETTING_HEAD}\n{}\n  shuffled blocks {:.2} s; {mapped}\n", setting.columns(), self.seconds)
    }
}

//! Results of `collectives`.

use super::{Figures, SETTING_HEAD, Setting, Verdict};
use crate::baseline::median;
use crate::collectives::{Found, Timed};
use crate::plan::Job;
use crate::targets::judge_collectives;
use serde::Serialize;

#[derive(Serialize)]
pub struct CollectiveFigures {
    pub collectives: Vec<CollectiveThroughput>,
}

/// The throughput of a collective in bytes received by all ranks.
#[derive(Serialize)]
pub struct CollectiveThroughput {
    pub name: String,
    pub received_bytes: usize,
    pub bytes_per_second: f64,
    pub copy_bytes_per_second: f64,
    pub to_memcpy: f64,
    seconds_each: Vec<f64>,
    copy_seconds_each: Vec<f64>,
}

impl CollectiveThroughput {
    fn new(timed: Timed) -> CollectiveThroughput {
        let Timed { name, received_bytes, seconds_each, copy_seconds_each } = timed;
        let per_second = |seconds: &[f64]| received_bytes as f64 / median(seconds);
        let (bytes_per_second, copy_bytes_per_second) = (per_second(&seconds_each), per_second(&copy_seconds_each));
        CollectiveThroughput {
            name,
            received_bytes,
            bytes_per_second,
            copy_bytes_per_second,
            to_memcpy: bytes_per_second / copy_bytes_per_second,
            seconds_each,
            copy_seconds_each,
        }
    }
}

impl CollectiveFigures {
    pub fn new(_job: &Job, found: Found) -> CollectiveFigures {
        CollectiveFigures { collectives: found.collectives.into_iter().map(CollectiveThroughput::new).collect() }
    }
}

impl Figures for CollectiveFigures {
    fn judge(&self, _job: &Job) -> Option<Verdict> {
        Some(Verdict::new(judge_collectives(&self.collectives), true))
    }

    fn rows(&self, setting: &Setting) -> String {
        let mut text = format!("{SETTING_HEAD}\n{}\n", setting.columns());
        text += &format!("  {:>10} {:>10} {:>8} {:>10} {:>10}\n", "collective", "received", "GB/s", "memcpy", "ratio");
        for one in &self.collectives {
            text += &format!(
                "  {:>10} {:>10} {:>8.2} {:>10.2} {:>10.2}\n",
                one.name,
                one.received_bytes,
                one.bytes_per_second / 1e9,
                one.copy_bytes_per_second / 1e9,
                one.to_memcpy,
            );
        }
        text
    }
}

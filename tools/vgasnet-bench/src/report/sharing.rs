//! Results of `false-sharing`.

use super::{Figures, SETTING_HEAD, Setting, Verdict};
use crate::baseline::median;
use crate::false_sharing::{Found, PUTS, is_judged};
use crate::plan::Job;
use crate::targets::judge_sharing;
use serde::Serialize;

#[derive(Serialize)]
pub struct SharingFigures {
    rounds: u32,
    puts_per_rank_and_round: u64,
    time_seconds: f64,
    pub round_seconds: f64,
    puts_per_second: f64,
    pub barrier_seconds: f64,
    round_to_barrier: f64,
    #[serde(flatten)]
    found: Found,
}

impl SharingFigures {
    pub fn new(job: &Job, found: Found) -> SharingFigures {
        let rounds = job.spec.count;
        let time_seconds = median(&found.time_seconds_each);
        let round_seconds = time_seconds / f64::from(rounds);
        let barrier_seconds = median(&found.barriers_seconds_each) / f64::from(rounds);
        SharingFigures {
            rounds,
            puts_per_rank_and_round: PUTS,
            time_seconds,
            round_seconds,
            puts_per_second: (u64::from(job.ranks) * PUTS) as f64 / round_seconds,
            barrier_seconds,
            round_to_barrier: round_seconds / barrier_seconds,
            found,
        }
    }
}

impl Figures for SharingFigures {
    fn judge(&self, job: &Job) -> Option<Verdict> {
        let targets = if is_judged(job) { judge_sharing(self.round_to_barrier) } else { Vec::new() };
        Some(Verdict::new(targets, true))
    }

    fn time_seconds(&self) -> Option<f64> {
        Some(self.time_seconds)
    }

    fn head() -> String {
        format!(
            "{SETTING_HEAD} {:>7} {:>8} {:>10} {:>10} {:>11} {:>10}\n",
            "rounds", "time s", "round us", "puts/s", "barrier us", "to barrier"
        )
    }

    fn rows(&self, setting: &Setting) -> String {
        format!(
            "{} {:>7} {:>8.3} {:>10.1} {:>10.0} {:>11.1} {:>10.1}\n",
            setting.columns(),
            self.rounds,
            self.time_seconds,
            self.round_seconds * 1e6,
            self.puts_per_second,
            self.barrier_seconds * 1e6,
            self.round_to_barrier,
        )
    }
}

//! Results of `fault --threads`.

use super::{Figures, SETTING_HEAD, Setting, Verdict, not_direct};
use crate::baseline::median;
use crate::plan::Job;
use crate::targets::judge_threads;
use crate::threads::Found;
use serde::Serialize;

#[derive(Serialize)]
pub struct ThreadFigures {
    pub plain_pages_per_second: f64,
    plain_in_flight: usize,
    pub threads: Vec<Rate>,
    plain_is_direct: bool,
    plain_seconds_each: Vec<f64>,
}

/// Throughput with a number of threads.
#[derive(Serialize)]
pub struct Rate {
    pub threads: u32,
    pub pages_per_second: f64,
    /// The rate divided by the rate of plain reads.
    pub to_plain: f64,
    /// Of all processors together.
    processor_us_each: f64,
    seconds_each: Vec<f64>,
}

impl ThreadFigures {
    pub fn new(_job: &Job, found: Found) -> ThreadFigures {
        let rate = |seconds_each: &[f64]| found.loads as f64 / median(seconds_each);
        let plain_pages_per_second = rate(&found.plain_seconds_each);
        let threads = found.threads.iter().map(|loads| Rate {
            threads: loads.threads,
            pages_per_second: rate(&loads.seconds_each),
            to_plain: rate(&loads.seconds_each) / plain_pages_per_second,
            processor_us_each: median(&loads.processor_seconds_each) * 1e6 / found.loads as f64,
            seconds_each: loads.seconds_each.clone(),
        });
        ThreadFigures {
            plain_pages_per_second,
            plain_in_flight: found.plain_in_flight,
            threads: threads.collect(),
            plain_is_direct: found.plain_is_direct,
            plain_seconds_each: found.plain_seconds_each,
        }
    }
}

impl Figures for ThreadFigures {
    fn judge(&self, _job: &Job) -> Option<Verdict> {
        Some(Verdict::new(judge_threads(&self.threads), true))
    }

    fn rows(&self, setting: &Setting) -> String {
        let mut text = format!(
            "{SETTING_HEAD}\n{}\n  plain reads with {} in flight: {:.0} pages a second\n  {:>7} {:>12} {:>8} {:>8} {:>8}\n",
            setting.columns(),
            self.plain_in_flight,
            self.plain_pages_per_second,
            "threads",
            "pages/s",
            "us each",
            "cpu us",
            "to plain"
        );
        for rate in &self.threads {
            let us_each = 1e6 / rate.pages_per_second;
            text += &format!(
                "  {:>7} {:>12.0} {us_each:>8.1} {:>8.1} {:>8.2}\n",
                rate.threads, rate.pages_per_second, rate.processor_us_each, rate.to_plain
            );
        }
        text + &not_direct(self.plain_is_direct, "  ", "reads")
    }
}

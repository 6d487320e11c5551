//! Replacement policies on traces of accesses, compared with the optimum.

mod arc;
mod belady;
mod lru;
mod s3_fifo;
mod simulate;
mod traces;

use crate::Stop;
use crate::options::ReplacementOptions;
use crate::report::{Output, Verdict};
use crate::targets::judge_replacement;
use serde::Serialize;
use simulate::Cache;
use traces::Trace;
use vgasnet_protocol::replacement::PolicyKind;

/// The policies, the default first.
const POLICIES: [&str; 5] = ["clock-pro", "clock", "lru", "arc", "s3-fifo"];

/// The hit ratios of a trace with this number of frames.
#[derive(Serialize)]
pub struct Row {
    pub trace: &'static str,
    pub pages: u32,
    pub frames: usize,
    pub optimum: f64,
    /// In the order of the report's policies.
    pub hit_ratios: [f64; POLICIES.len()],
}

impl Row {
    /// The hit ratio of the default policy.
    pub fn default_ratio(&self) -> f64 {
        self.hit_ratios[0]
    }

    /// The hit ratio of LRU.
    pub fn lru_ratio(&self) -> f64 {
        self.hit_ratios[2]
    }

    /// The best of the others.
    pub fn best_other(&self) -> f64 {
        self.hit_ratios[1..].iter().copied().fold(0.0, f64::max)
    }
}

#[derive(Serialize)]
struct Report {
    benchmark: &'static str,
    seed: u64,
    policies: [&'static str; POLICIES.len()],
    rows: Vec<Row>,
    #[serde(flatten)]
    verdict: Verdict,
}

/// Measures. Returns the exit status.
pub fn run(options: &ReplacementOptions) -> Result<u8, Stop> {
    let output = Output::open(&options.json, &None)?;
    let rows: Vec<Row> = traces::all(options.pages, options.seed).iter().flat_map(rows).collect();
    let verdict = Verdict::new(judge_replacement(&rows), true);
    let report = Report { benchmark: "replacement", seed: options.seed, policies: POLICIES, rows, verdict };
    output.show(&report, &table(&report), || Ok(String::new()))?;
    Ok(report.verdict.status(options.check))
}

/// Pools of a 16th, a quarter, a half and three quarters of the pages.
fn rows(trace: &Trace) -> Vec<Row> {
    let pages = trace.distinct as usize;
    [pages / 16, pages / 4, pages / 2, pages * 3 / 4].map(|frames| row(trace, frames.max(1))).into()
}

fn row(trace: &Trace, frames: usize) -> Row {
    let counted = (trace.pages.len() - trace.first) as f64;
    let ratio = |hits: usize| hits as f64 / counted;
    let caches: [Box<dyn Cache>; POLICIES.len()] = [
        Box::new(simulate::Pool::new(PolicyKind::ClockPro, frames)),
        Box::new(simulate::Pool::new(PolicyKind::Clock, frames)),
        Box::new(lru::Lru::new(frames)),
        Box::new(arc::Arc::new(frames)),
        Box::new(s3_fifo::S3Fifo::new(frames)),
    ];
    Row {
        trace: trace.name,
        pages: trace.distinct,
        frames,
        optimum: ratio(belady::hits(&trace.pages, frames, trace.first)),
        hit_ratios: caches.map(|mut cache| ratio(simulate::hits(&mut *cache, &trace.pages, trace.first))),
    }
}

fn table(report: &Report) -> String {
    let mut text = format!("{:<14} {:>7} {:>7} {:>9}", "trace", "pages", "frames", "optimum");
    report.policies.iter().for_each(|policy| text += &format!(" {policy:>9}"));
    text += "\n";
    for row in &report.rows {
        text += &format!("{:<14} {:>7} {:>7} {:>9.3}", row.trace, row.pages, row.frames, row.optimum);
        row.hit_ratios.iter().for_each(|ratio| text += &format!(" {ratio:>9.3}"));
        text += "\n";
    }
    text + &report.verdict.table()
}

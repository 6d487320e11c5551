//! Replacement policies on traces of accesses, compared with the optimum.

mod arc;
mod belady;
mod lru;
mod s3_fifo;
mod simulate;
mod traces;

use crate::Stop;
use crate::prelude::*;
use simulate::Cache;
use traces::Trace;
use vgasnet_protocol::replacement::PolicyKind;

/// The policies, the default first.
const POLICIES: [&str; 5] = ["clock-pro", "clock", "lru", "arc", "s3-fifo"];

/// Hit ratios of page replacement policies on traces, compared with the optimum; no ranks are started
#[derive(Args, Serialize, Deserialize)]
pub struct Replacement {
    /// Approximate number of pages used by each trace
    #[arg(long, visible_alias = "size", value_name = "N", default_value_t = 4096, value_parser = within(256..=1_000_000))]
    pages: u32,

    /// Seed of the random traces
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Write the results to this file in JSON; with - they go to stdout, and the table goes to stderr
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Exit with status 1 if a figure is worse than wanted
    #[arg(long)]
    check: bool,
}

impl Benchmark for Replacement {
    const NAME: &'static str = "replacement";

    /// The default policy is judged.
    fn run(&self) -> Result<Report, Stop> {
        let rows: Vec<Row> = traces::all(self.pages, self.seed).iter().flat_map(rows).collect();
        let least = |trace: &str, ratio: &dyn Fn(&Row) -> f64| {
            rows.iter().filter(|row| row.is("trace", trace)).map(ratio).fold(f64::INFINITY, f64::min)
        };
        let own = |row: &Row| row.number(POLICIES[0]);
        let to_lru = least("zipf", &|row| own(row) / row.number("lru"));
        let to_share = least("loop", &|row| own(row) * row.number("pages") / row.number("frames"));
        let best_other = |row: &Row| POLICIES[1..].iter().map(|policy| row.number(policy)).fold(0.0, f64::max);
        let behind = rows.iter().map(|row| best_other(row) - own(row)).fold(0.0, f64::max);
        let row = Row::default().keep("seed", self.seed).keep("policies", POLICIES).rows("rows", rows);
        let figures = Figures::of(row)
            .target("zipf_to_lru", "zipf: hits to those of LRU, least", to_lru, Bound::AtLeast, 1.0)
            .target("loop_to_frames", "loop: hits a round to frames, least", to_share, Bound::AtLeast, 0.89)
            .target("behind_best", "hit ratio behind the best other, most", behind, Bound::AtMost, 0.02);
        Ok(Report::of_figures(Self::NAME, figures))
    }
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
    let hit_ratios = caches.map(|mut cache| ratio(simulate::hits(&mut *cache, &trace.pages, trace.first)));
    let row = Row::labelled(trace.name).keep("trace", trace.name).show("pages", trace.distinct).show("frames", frames);
    let row = row.show("optimum", ratio(belady::hits(&trace.pages, frames, trace.first)));
    let row = POLICIES.iter().zip(hit_ratios).fold(row, |row, (policy, ratio)| row.show(policy, ratio));
    row.keep("hit_ratios", hit_ratios)
}

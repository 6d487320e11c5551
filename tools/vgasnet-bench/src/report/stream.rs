//! Results of `stream` and `ahead`.

use super::{Figures, SETTING_HEAD, Setting, Verdict, not_direct};
use crate::ahead;
use crate::baseline::{median, quantile};
use crate::plan::Job;
use crate::stream::{Found, Io, Passes, Way};
use crate::targets::{judge_ahead, judge_stream};
use serde::Serialize;

/// Passes compared with plain I/O at its best depth.
#[derive(Serialize)]
pub struct StreamFigures {
    data_bytes: u64,
    pub ratios: Vec<Ratio>,
    #[serde(flatten)]
    found: Found,
}

/// One way, compared.
#[derive(Serialize)]
pub struct Ratio {
    pub way: Way,
    bytes_per_second: f64,
    plain_bytes_per_second: f64,
    plain_depth: usize,
    pub to_plain: f64,
}

impl StreamFigures {
    pub fn new(job: &Job, found: Found) -> StreamFigures {
        let data_bytes = job.spec.data_bytes;
        let ratios = found.passes.iter().map(|passes| Ratio::new(passes, &found, data_bytes as f64)).collect();
        StreamFigures { data_bytes, ratios, found }
    }
}

impl Ratio {
    fn new(passes: &Passes, found: &Found, data_bytes: f64) -> Ratio {
        let of_io = found.plain.iter().filter(|plain| plain.io == passes.way.io());
        let all = of_io.map(|plain| (plain.depth, median(&plain.seconds_each)));
        let (plain_depth, plain_seconds) = all.min_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or((0, f64::NAN));
        let seconds = median(&passes.seconds_each);
        Ratio {
            way: passes.way,
            bytes_per_second: data_bytes / seconds,
            plain_bytes_per_second: data_bytes / plain_seconds,
            plain_depth,
            to_plain: plain_seconds / seconds,
        }
    }
}

impl Figures for StreamFigures {
    fn judge(&self, _job: &Job) -> Option<Verdict> {
        Some(Verdict::new(judge_stream(&self.ratios), true))
    }

    fn rows(&self, setting: &Setting) -> String {
        let mut text = format!("{SETTING_HEAD}\n{}\n", setting.columns());
        text += &format!("  {:<8} {:>8} {:>8} {:>18} {:>6}\n", "by", "GB/s", "plain", "of plain", "ratio");
        for ratio in &self.ratios {
            let io = match ratio.way.io() {
                Io::Reads => "reads",
                Io::Writes => "writes",
                Io::ReadsAndWrites => "both",
            };
            text += &format!(
                "  {:<8} {:>8.2} {:>8.2} {:>18} {:>6.2}\n",
                format!("{:?}", ratio.way).to_lowercase(),
                ratio.bytes_per_second / 1e9,
                ratio.plain_bytes_per_second / 1e9,
                format!("{io}, {} in flight", ratio.plain_depth),
                ratio.to_plain,
            );
        }
        text + &not_direct(self.found.plain_is_direct, "  ", "reads and writes")
    }
}

/// Misses during read-ahead, compared with misses on an idle disk.
#[derive(Serialize)]
pub struct AheadFigures {
    idle_us: f64,
    beside_us: f64,
    beside_p90_us: f64,
    pub beside_to_idle: f64,
    #[serde(flatten)]
    found: ahead::Found,
}

impl AheadFigures {
    pub fn new(_job: &Job, found: ahead::Found) -> AheadFigures {
        let (idle_us, beside_us) = (median(&found.idle_us_each), median(&found.beside_us_each));
        let beside_p90_us = quantile(&found.beside_us_each, 0.9);
        AheadFigures { idle_us, beside_us, beside_p90_us, beside_to_idle: beside_us / idle_us, found }
    }
}

impl Figures for AheadFigures {
    fn judge(&self, _job: &Job) -> Option<Verdict> {
        Some(Verdict::new(judge_ahead(self), true))
    }

    fn rows(&self, setting: &Setting) -> String {
        format!(
            "{SETTING_HEAD}\n{}\n  a miss on an idle disk {:.0} us; beside read-ahead {:.0} us, p90 {:.0}, {} of them\n",
            setting.columns(),
            self.idle_us,
            self.beside_us,
            self.beside_p90_us,
            self.found.beside_us_each.len(),
        )
    }
}

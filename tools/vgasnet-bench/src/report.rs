//! The results: a table for people, JSON for programs, plots.

mod collectives;
mod fault;
mod files;
mod gasnet_ex;
mod gets;
mod hit;
mod kept;
mod lists;
mod messages;
mod operations;
mod page_size;
mod programs;
mod reads;
mod sharing;
mod small;
mod stream;
mod sweep;
mod table;
mod threads;
mod triad;

pub use collectives::{CollectiveFigures, CollectiveThroughput};
pub use files::{CaseFigures, FileRow, FilesReport, RowFigures, SequentialFigures};
pub use gasnet_ex::{GasnetExReport, OperationRow};
pub use gets::GetsFigures;
pub use hit::HitReport;
pub use kept::BlockFigures;
pub use lists::{ListFigures, ListKind};
pub use messages::{MessageFigures, Throughput};
pub use operations::OperationFigures;
pub use page_size::PageSizeFigures;
pub use programs::{ProgramReport, Way, WayRow};
pub use reads::ReadFigures;
pub use sharing::SharingFigures;
pub use small::{SmallFigures, SmallRow};
pub use stream::{AheadFigures, Ratio, StreamFigures};
pub use sweep::SweepFigures;
pub use table::{Best, TableFigures};
pub use threads::{Rate, ThreadFigures};
pub use triad::{Measured, TriadFigures};

use crate::Stop;
use crate::plan::{Job, Workload};
use crate::targets::{Bound, Target};
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use vgasnet_conduit::whole_file;
use vgasnet_settings::format_size;

/// The destinations of the results.
pub struct Output {
    json: Json,
    plot: Option<PathBuf>,
}

enum Json {
    Nowhere,
    File(PathBuf),
    /// The table then goes to stderr.
    Stdout,
}

impl Output {
    /// Tries to open all files, so an unwritable one is reported before any long work.
    pub fn open(json: &Option<PathBuf>, plot: &Option<PathBuf>) -> Result<Output, Stop> {
        if let Some(path) = plot.as_ref().filter(|path| path.extension().is_none_or(|extension| extension != "svg")) {
            return Err(Stop::usage(format!("--plot {}: it draws SVG; give a name that ends in .svg", path.display())));
        }
        let try_path = |option: &str, path: &Path| {
            whole_file::try_path(path).map_err(|error| Stop::usage(format!("{option} {}: {error}", path.display())))
        };
        if let Some(path) = plot {
            try_path("--plot", path)?;
        }
        let json = match json {
            None => Json::Nowhere,
            Some(path) if path.as_os_str() == "-" => Json::Stdout,
            Some(path) => {
                try_path("--json", path)?;
                Json::File(path.clone())
            }
        };
        Ok(Output { json, plot: plot.clone() })
    }

    /// Writes the results, and draws the image if requested.
    pub fn show(
        &self,
        report: &impl Serialize,
        table: &str,
        image: impl FnOnce() -> Result<String, String>,
    ) -> Result<(), Stop> {
        let failed = |error: io::Error| Stop::failure(format!("writing the results: {error}"));
        let mut json = serde_json::to_string_pretty(report).map_err(|error| failed(error.into()))?;
        json.push('\n');
        let shown = match &self.json {
            Json::Nowhere => io::stdout().write_all(table.as_bytes()),
            Json::File(path) => {
                let written = whole_file::replace(path, |file| file.write_all(json.as_bytes()));
                written.map_err(|error| Stop::failure(format!("--json {}: {error}", path.display())))?;
                io::stdout().write_all(table.as_bytes())
            }
            Json::Stdout => {
                io::stdout().write_all(json.as_bytes()).and_then(|()| io::stderr().write_all(table.as_bytes()))
            }
        };
        shown.map_err(failed)?;
        let Some(path) = &self.plot else { return Ok(()) };
        let drawn = image().and_then(|image| {
            let written = whole_file::replace(path, |file| file.write_all(image.as_bytes()));
            written.map_err(|error| error.to_string())
        });
        drawn.map_err(|error| Stop::failure(format!("--plot {}: {error}", path.display())))
    }
}

/// The results of a benchmark.
#[derive(Serialize)]
pub struct Report<'a, F> {
    benchmark: Workload,
    storage_dir: &'a Path,
    pub runs: Vec<Run<F>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cooperative: Option<Vec<Cooperative>>,
    /// For benchmarks with targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    reached_all: Option<bool>,
}

/// A job and its figures.
#[derive(Serialize)]
pub struct Run<F> {
    #[serde(flatten)]
    pub setting: Setting,
    #[serde(flatten)]
    pub figures: F,
    #[serde(flatten)]
    verdict: Option<Verdict>,
}

/// The figures of a job.
pub trait Figures: Serialize + Sized {
    /// For benchmarks with targets.
    fn judge(&self, _job: &Job) -> Option<Verdict> {
        None
    }

    /// For benchmarks that compare cooperative caching with its absence.
    fn time_seconds(&self) -> Option<f64> {
        None
    }

    /// The subject of a comparison, if a benchmark compares several subjects.
    fn subject(&self) -> String {
        String::new()
    }

    /// The head of a table with a row for each job.
    fn head() -> String {
        String::new()
    }

    fn rows(&self, setting: &Setting) -> String;

    /// Lines below the table.
    fn remarks(_runs: &[Run<Self>]) -> String {
        String::new()
    }
}

impl<F: Figures> Run<F> {
    pub fn new(job: &Job, figures: F) -> Run<F> {
        Run { setting: Setting::new(job), verdict: figures.judge(job), figures }
    }
}

impl<'a, F: Figures> Report<'a, F> {
    pub fn new(jobs: &'a [Job], runs: Vec<Run<F>>) -> Report<'a, F> {
        let (benchmark, storage_dir) = (jobs[0].spec.workload, &*jobs[0].config.storage_dir);
        let pairs = runs.windows(2).filter_map(|pair| Cooperative::compare(&pair[0], &pair[1]));
        let cooperative: Option<Vec<Cooperative>> = runs[0].figures.time_seconds().map(|_| pairs.collect());
        let verdicts: Option<Vec<_>> = runs.iter().map(|run| run.verdict.as_ref()).collect();
        let reached_all = verdicts.map(|verdicts| verdicts.iter().all(|verdict| verdict.reached_all));
        let is_behind_nowhere = cooperative.as_deref().and_then(judge_cooperative);
        let judged: Vec<bool> = reached_all.into_iter().chain(is_behind_nowhere).collect();
        let reached_all = (!judged.is_empty()).then(|| judged.iter().all(|reached| *reached));
        Report { benchmark, storage_dir, runs, cooperative, reached_all }
    }

    /// The exit status. `check` makes a missed target an error.
    pub fn status(&self, check: bool) -> u8 {
        u8::from(check && self.reached_all == Some(false))
    }

    pub fn table(&self) -> String {
        let mut text = F::head();
        for run in &self.runs {
            text += &run.figures.rows(&run.setting);
            // In a table with a row per job, a verdict would separate rows, so only bad ones are shown.
            let shown = run.verdict.as_ref().filter(|verdict| F::head().is_empty() || !verdict.reached_all);
            text += &shown.map_or_else(String::new, Verdict::table);
        }
        for pair in self.cooperative.iter().flatten() {
            let (ranks, peer) = (pair.ranks, if pair.peer_memory { "on" } else { "off" });
            let behind = if pair.is_behind() { ", which is behind" } else { "" };
            text += &format!(
                "cooperative caching, -n {ranks}, peer memory {peer}{}: {:.2} times as fast{behind}\n",
                pair.subject, pair.speedup
            );
        }
        text + &F::remarks(&self.runs)
    }
}

/// The same ranks with and without cooperative caching.
#[derive(Debug, Serialize)]
struct Cooperative {
    ranks: u32,
    peer_memory: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    subject: String,
    /// The time without, divided by the time with it: more than 1 is a gain.
    speedup: f64,
}

/// Whether cooperative caching is never slower; `None` if it was not compared.
fn judge_cooperative(pairs: &[Cooperative]) -> Option<bool> {
    (!pairs.is_empty()).then(|| !pairs.iter().any(Cooperative::is_behind))
}

impl Cooperative {
    /// Times of the same work differ by a few percent. For a single rank both jobs are equal.
    fn is_behind(&self) -> bool {
        const NOISE: f64 = 1.05;
        self.ranks > 1 && self.speedup * NOISE < 1.0
    }

    /// Compares two jobs that differ in nothing else.
    fn compare<F: Figures>(with: &Run<F>, without: &Run<F>) -> Option<Cooperative> {
        let (setting, other) = (&with.setting, &without.setting);
        let (ranks, peer_memory) = (setting.ranks, setting.peer_memory);
        let is_pair = (ranks, peer_memory, true, false)
            == (other.ranks, other.peer_memory, setting.cooperative, other.cooperative);
        let speedup = without.figures.time_seconds()? / with.figures.time_seconds()?;
        let subject = with.figures.subject();
        is_pair.then_some(Cooperative { ranks, peer_memory, subject, speedup })
    }
}

/// The verdict on a job: its figures compared with its targets.
#[derive(Serialize)]
pub struct Verdict {
    targets: Vec<Target>,
    reached_all: bool,
}

impl Verdict {
    /// A job with incomplete figures has not reached all targets.
    pub fn new(targets: Vec<Target>, is_complete: bool) -> Verdict {
        Verdict { reached_all: is_complete && targets.iter().all(|target| target.reached), targets }
    }

    /// The exit status. `check` makes a missed target an error.
    pub fn status(&self, check: bool) -> u8 {
        u8::from(check && !self.reached_all)
    }

    /// The table; empty for a job without targets.
    pub fn table(&self) -> String {
        if self.targets.is_empty() {
            return String::new();
        }
        let mut text = format!("{:<42} {:>10} {:>13} {:>7}\n", "target", "measured", "wanted", "ratio");
        for target in &self.targets {
            let bound = if target.bound == Bound::AtMost { "at most" } else { "at least" };
            let verdict = if target.reached { "reached" } else { "missed" };
            text += &format!(
                "{:<42} {:>10.3} {bound:>8} {:>4} {:>7.2} {verdict}\n",
                target.meaning, target.measured, target.target, target.ratio
            );
        }
        text
    }
}

/// Properties of a job common to all its rounds.
#[derive(Clone, Serialize)]
pub struct Setting {
    mode: Workload,
    pub ranks: u32,
    pub page_bytes: u64,
    pub pool_bytes: u64,
    pub cooperative: bool,
    pub peer_memory: bool,
    pub repeat: u32,
    pub seed: u64,
    /// Threads computing at the same time.
    pub busy: u16,
}

const SETTING_HEAD: &str = "mode          ranks  page   pool  coop  peer";

impl Setting {
    fn new(job: &Job) -> Setting {
        Setting {
            mode: job.spec.workload,
            ranks: job.ranks,
            page_bytes: job.config.page_bytes,
            pool_bytes: job.config.pool_bytes,
            cooperative: job.config.cooperative,
            peer_memory: job.config.peer_memory,
            repeat: job.spec.repeat,
            seed: job.spec.seed,
            busy: job.busy,
        }
    }

    fn columns(&self) -> String {
        let on = |is_on: bool| if is_on { "on" } else { "off" };
        let (page, pool) = (format_size(self.page_bytes), format_size(self.pool_bytes));
        let (cooperative, peer) = (on(self.cooperative), on(self.peer_memory));
        format!("{:<13} {:>5} {page:>5} {pool:>6} {cooperative:>5} {peer:>5}", self.mode.name(), self.ranks)
    }
}

/// A remark about a baseline.
const MAPPED_MEMORY: &str =
    "mmap has as much memory as a rank takes, page cache included: the pool, a 16th of it, and 12M";

/// A remark in case plain I/O did not bypass the page cache.
fn not_direct(is_direct: bool, indent: &str, io: &str) -> String {
    let text = format!("{indent}the directory has no O_DIRECT: plain {io} went through the page cache\n");
    if is_direct { String::new() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cooperative_caching_is_behind_nowhere_or_the_target_is_missed() {
        let judge = |speedups: &[f64]| {
            let pair =
                |speedup: &f64| Cooperative { ranks: 2, peer_memory: true, subject: String::new(), speedup: *speedup };
            judge_cooperative(&speedups.iter().map(pair).collect::<Vec<_>>())
        };
        assert_eq!([judge(&[]), judge(&[1.0, 0.97, 3.0]), judge(&[2.0, 0.9])], [None, Some(true), Some(false)]);
    }
}

//! The results: a table for people, JSON for programs, plots.

mod fault;
mod hit;
mod messages;
mod reads;
mod sharing;
mod triad;

pub use fault::FaultRun;
pub use hit::HitReport;
pub use messages::{MessagesRun, Throughput};
pub use reads::ReadRun;
pub use sharing::SharingRun;
pub use triad::{Measured, TriadRun};

use crate::Stop;
use crate::plan::Job;
use crate::targets::{Bound, Target};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use vgasnet::config::format_size;

/// Where the results go.
pub struct Output {
    json: Json,
    plot: Option<PathBuf>,
}

enum Json {
    Nowhere,
    File(File, PathBuf),
    /// The table goes to stderr then.
    Stdout,
}

impl Output {
    /// Opens all files, so that nothing long runs for a file that cannot be written.
    pub fn open(json: &Option<PathBuf>, plot: &Option<PathBuf>) -> Result<Output, Stop> {
        if let Some(path) = plot.as_ref().filter(|path| path.extension().is_none_or(|extension| extension != "svg")) {
            return Err(Stop::usage(format!("--plot {}: it draws SVG; give a name that ends in .svg", path.display())));
        }
        let create = |option: &str, path: &Path| {
            File::create(path).map_err(|error| Stop::usage(format!("{option} {}: {error}", path.display())))
        };
        if let Some(path) = plot {
            create("--plot", path)?;
        }
        let json = match json {
            None => Json::Nowhere,
            Some(path) if path.as_os_str() == "-" => Json::Stdout,
            Some(path) => Json::File(create("--json", path)?, path.clone()),
        };
        Ok(Output { json, plot: plot.clone() })
    }

    /// Writes the results, and draws the image if one was asked for.
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
            Json::File(file, path) => {
                let mut file: &File = file;
                let written = file.write_all(json.as_bytes());
                written.map_err(|error| Stop::failure(format!("--json {}: {error}", path.display())))?;
                io::stdout().write_all(table.as_bytes())
            }
            Json::Stdout => {
                io::stdout().write_all(json.as_bytes()).and_then(|()| io::stderr().write_all(table.as_bytes()))
            }
        };
        shown.map_err(failed)?;
        let Some(path) = &self.plot else { return Ok(()) };
        let drawn = image().and_then(|image| std::fs::write(path, image).map_err(|error| error.to_string()));
        drawn.map_err(|error| Stop::failure(format!("--plot {}: {error}", path.display())))
    }
}

/// Jobs of a benchmark without targets.
#[derive(Serialize)]
pub struct Report<'a, R> {
    benchmark: &'static str,
    storage_dir: &'a Path,
    pub runs: Vec<R>,
    cooperative: Vec<Cooperative>,
}

/// A job of such a benchmark: a row of the table.
pub trait Row: Serialize + Sized {
    /// The setting of the job, and its time in seconds.
    fn timed(&self) -> (&Setting, f64);
    /// The heads of the columns after the setting's.
    fn head() -> String;
    fn columns(&self) -> String;
    /// Lines below the table.
    fn remarks(_runs: &[Self]) -> String {
        String::new()
    }
}

/// The same ranks with cooperative caching and without.
#[derive(Debug, Serialize)]
struct Cooperative {
    ranks: u32,
    peer_memory: bool,
    /// The time without over the time with it: more than 1 is a gain.
    speedup: f64,
}

impl<'a, R: Row> Report<'a, R> {
    pub fn new(jobs: &'a [Job], runs: Vec<R>) -> Report<'a, R> {
        let (benchmark, storage_dir) = (jobs[0].spec.workload.name(), &*jobs[0].config.storage_dir);
        let cooperative = runs.windows(2).filter_map(|pair| Cooperative::compare(&pair[0], &pair[1])).collect();
        Report { benchmark, storage_dir, runs, cooperative }
    }

    pub fn table(&self) -> String {
        let mut text = format!("{SETTING_HEAD} {}\n", R::head());
        for run in &self.runs {
            text += &format!("{} {}\n", run.timed().0.columns(), run.columns());
        }
        for pair in &self.cooperative {
            let (ranks, peer) = (pair.ranks, if pair.peer_memory { "on" } else { "off" });
            text +=
                &format!("cooperative caching, -n {ranks}, peer memory {peer}: {:.2} times as fast\n", pair.speedup);
        }
        text + &R::remarks(&self.runs)
    }
}

impl Cooperative {
    /// Of two jobs that differ in nothing else.
    fn compare<R: Row>(with: &R, without: &R) -> Option<Cooperative> {
        let ((setting, with_seconds), (other, without_seconds)) = (with.timed(), without.timed());
        let (ranks, peer_memory) = (setting.ranks, setting.peer_memory);
        let is_pair = (ranks, peer_memory, true, false)
            == (other.ranks, other.peer_memory, setting.cooperative, other.cooperative);
        is_pair.then(|| Cooperative { ranks, peer_memory, speedup: without_seconds / with_seconds })
    }
}

/// Jobs of a benchmark with targets.
#[derive(Serialize)]
pub struct Judged<'a, R> {
    benchmark: &'static str,
    storage_dir: &'a Path,
    pub runs: Vec<R>,
    pub reached_all: bool,
}

/// A job of such a benchmark.
pub trait Judge: Serialize {
    fn verdict(&self) -> &Verdict;
    /// The figures, without the targets.
    fn table(&self) -> String;
}

/// How the figures of a job compare with its targets.
#[derive(Serialize)]
pub struct Verdict {
    targets: Vec<Target>,
    reached_all: bool,
}

impl<'a, R: Judge> Judged<'a, R> {
    pub fn new(jobs: &'a [Job], runs: Vec<R>) -> Judged<'a, R> {
        let (benchmark, storage_dir) = (jobs[0].spec.workload.name(), &*jobs[0].config.storage_dir);
        let reached_all = runs.iter().all(|run| run.verdict().reached_all);
        Judged { benchmark, storage_dir, runs, reached_all }
    }

    pub fn table(&self) -> String {
        self.runs.iter().map(|run| run.table() + &run.verdict().table()).collect()
    }
}

impl Verdict {
    /// A job whose figures are not complete has not reached all targets.
    fn new(targets: Vec<Target>, is_complete: bool) -> Verdict {
        Verdict { reached_all: is_complete && targets.iter().all(|target| target.reached), targets }
    }

    fn table(&self) -> String {
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

/// Properties of a job that all its rounds share.
#[derive(Clone, Serialize)]
pub struct Setting {
    pub mode: &'static str,
    pub ranks: u32,
    pub page_bytes: u64,
    pub pool_bytes: u64,
    pub cooperative: bool,
    pub peer_memory: bool,
    pub repeat: u32,
    pub seed: u64,
}

const SETTING_HEAD: &str = "mode          ranks  page   pool  coop  peer";

impl Setting {
    fn new(job: &Job) -> Setting {
        Setting {
            mode: job.spec.workload.name(),
            ranks: job.ranks,
            page_bytes: job.config.page_bytes,
            pool_bytes: job.config.pool_bytes,
            cooperative: job.config.cooperative,
            peer_memory: job.config.peer_memory,
            repeat: job.spec.repeat,
            seed: job.spec.seed,
        }
    }

    fn columns(&self) -> String {
        let on = |is_on: bool| if is_on { "on" } else { "off" };
        let (page, pool) = (format_size(self.page_bytes), format_size(self.pool_bytes));
        let (cooperative, peer) = (on(self.cooperative), on(self.peer_memory));
        format!("{:<13} {:>5} {page:>5} {pool:>6} {cooperative:>5} {peer:>5}", self.mode, self.ranks)
    }
}

/// A remark if plain I/O did not bypass the page cache.
fn not_direct(is_direct: bool, indent: &str, io: &str) -> String {
    let text = format!("{indent}the directory has no O_DIRECT: plain {io} went through the page cache\n");
    if is_direct { String::new() } else { text }
}

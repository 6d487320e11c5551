//! The results: a table for people, JSON for programs.

pub mod fault;
pub mod messages;
pub mod triad;

use crate::baseline::median;
use crate::plan::{BLOCK_BYTES, Job};
use crate::targets::{Bound, Target, judge_hit};
use crate::{Stop, false_sharing, hit, reads};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use vgasnet::config::format_size;

/// Where results go.
pub enum Output {
    /// A table on stdout.
    Table,
    /// A table on stdout, and JSON in a file.
    TableAndFile(File, PathBuf),
    /// JSON on stdout, and a table on stderr.
    Json,
}

impl Output {
    /// Opens what is to be written, so that nothing long runs for a file that cannot be.
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
        match json {
            None => Ok(Output::Table),
            Some(path) if path.as_os_str() == "-" => Ok(Output::Json),
            Some(path) => Ok(Output::TableAndFile(create("--json", path)?, path.clone())),
        }
    }

    pub fn show(&self, report: &impl Serialize, table: &str) -> Result<(), Stop> {
        let failed = |error: io::Error| Stop::failure(format!("writing the results: {error}"));
        let mut json = serde_json::to_string_pretty(report).map_err(|error| failed(error.into()))?;
        json.push('\n');
        match self {
            Output::Table => io::stdout().write_all(table.as_bytes()).map_err(failed),
            Output::TableAndFile(file, path) => {
                let mut file: &File = file;
                let written = file.write_all(json.as_bytes());
                written.map_err(|error| Stop::failure(format!("--json {}: {error}", path.display())))?;
                io::stdout().write_all(table.as_bytes()).map_err(failed)
            }
            Output::Json => {
                io::stdout().write_all(json.as_bytes()).map_err(failed)?;
                io::stderr().write_all(table.as_bytes()).map_err(failed)
            }
        }
    }
}

/// Jobs of one benchmark.
#[derive(Serialize)]
pub struct Report<'a, R> {
    pub benchmark: &'static str,
    pub storage_dir: &'a Path,
    pub runs: Vec<R>,
    pub cooperative: Vec<Cooperative>,
}

/// What was the same for all rounds of a job.
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

const SETTING_HEAD: &str = "mode          ranks  page   pool  coop  peer";

/// The same ranks with cooperative caching and without.
#[derive(Debug, Serialize)]
pub struct Cooperative {
    pub ranks: u32,
    pub peer_memory: bool,
    /// The time without over the time with it: more than 1 is a gain.
    pub speedup: f64,
}

pub trait Run {
    fn setting(&self) -> &Setting;
    fn time_seconds(&self) -> f64;
}

/// Compares neighbours that differ in nothing else.
pub fn pair_cooperative(runs: &[impl Run]) -> Vec<Cooperative> {
    let pairs = runs.windows(2).filter(|pair| {
        let (with, without) = (pair[0].setting(), pair[1].setting());
        let is_same = (with.ranks, with.peer_memory) == (without.ranks, without.peer_memory);
        is_same && with.cooperative && !without.cooperative
    });
    let speedup = |pair: &[_]| Run::time_seconds(&pair[1]) / Run::time_seconds(&pair[0]);
    let compared = pairs.map(|pair| {
        let setting = pair[0].setting();
        Cooperative { ranks: setting.ranks, peer_memory: setting.peer_memory, speedup: speedup(pair) }
    });
    compared.collect()
}

fn cooperative_lines(pairs: &[Cooperative]) -> String {
    let line = |pair: &Cooperative| {
        let peer = if pair.peer_memory { "on" } else { "off" };
        format!("cooperative caching, -n {}, peer memory {peer}: {:.2} times as fast\n", pair.ranks, pair.speedup)
    };
    pairs.iter().map(line).collect()
}

/// A job of `sequential` or `random`.
#[derive(Serialize)]
pub struct ReadRun {
    #[serde(flatten)]
    pub setting: Setting,
    pub size_bytes: u64,
    pub get_bytes: u64,
    pub input: Option<PathBuf>,
    pub time_seconds: f64,
    pub throughput_bytes_per_second: f64,
    pub plain_read_bytes_per_second: f64,
    pub throughput_to_plain: f64,
    pub memcpy_bytes_per_second: f64,
    pub throughput_to_memcpy: f64,
    #[serde(flatten)]
    found: reads::Found,
}

impl ReadRun {
    pub fn new(job: &Job, found: reads::Found) -> ReadRun {
        let time_seconds = median(&found.time_seconds_each);
        let throughput = found.bytes_read_all_ranks as f64 / time_seconds;
        let plain = found.plain_bytes as f64 / median(&found.plain_seconds_each);
        let memcpy = BLOCK_BYTES as f64 / median(&found.copy_4_mib_seconds_each);
        ReadRun {
            setting: Setting::new(job),
            size_bytes: job.spec.data_bytes,
            get_bytes: BLOCK_BYTES,
            input: job.spec.input.clone(),
            time_seconds,
            throughput_bytes_per_second: throughput,
            plain_read_bytes_per_second: plain,
            throughput_to_plain: throughput / plain,
            memcpy_bytes_per_second: memcpy,
            throughput_to_memcpy: throughput / memcpy,
            found,
        }
    }
}

impl Run for ReadRun {
    fn setting(&self) -> &Setting {
        &self.setting
    }

    fn time_seconds(&self) -> f64 {
        self.time_seconds
    }
}

impl Report<'_, ReadRun> {
    pub fn table(&self) -> String {
        let mut text = format!(
            "{SETTING_HEAD} {:>6} {:>8} {:>7} {:>10} {:>9} {:>11} {:>9} {:>7}\n",
            "size", "time s", "GB/s", "plain GB/s", "to plain", "memcpy GB/s", "to memcpy", "disk GB"
        );
        for run in &self.runs {
            let [throughput, plain, memcpy] =
                [run.throughput_bytes_per_second, run.plain_read_bytes_per_second, run.memcpy_bytes_per_second]
                    .map(|bytes_per_second| bytes_per_second / 1e9);
            text += &format!(
                "{} {:>6} {:>8.3} {throughput:>7.2} {plain:>10.2} {:>9.2} {memcpy:>11.2} {:>9.2} {:>7.2}\n",
                run.setting.columns(),
                format_size(run.size_bytes),
                run.time_seconds,
                run.throughput_to_plain,
                run.throughput_to_memcpy,
                run.found.disk_read_bytes_all_ranks as f64 / 1e9,
            );
        }
        text += &cooperative_lines(&self.cooperative);
        if self.runs.iter().any(|run| !run.found.plain_is_direct) {
            text += "the directory has no O_DIRECT: plain reads went through the page cache\n";
        }
        for run in self.runs.iter().filter(|run| run.input.is_some()) {
            text += &format!(
                "-n {}: {} bytes compared with the file, all the same; checksums took {:.3} s of the time\n",
                run.setting.ranks, run.found.checked_bytes, run.found.checksum_seconds
            );
        }
        text
    }
}

/// A job of `false-sharing`.
#[derive(Serialize)]
pub struct SharingRun {
    #[serde(flatten)]
    pub setting: Setting,
    pub rounds: u32,
    pub puts_per_rank_and_round: u64,
    pub time_seconds: f64,
    pub round_seconds: f64,
    pub puts_per_second: f64,
    pub barrier_seconds: f64,
    pub round_to_barrier: f64,
    #[serde(flatten)]
    found: false_sharing::Found,
}

impl SharingRun {
    pub fn new(job: &Job, found: false_sharing::Found) -> SharingRun {
        let rounds = job.spec.sharing_rounds;
        let time_seconds = median(&found.time_seconds_each);
        let round_seconds = time_seconds / f64::from(rounds);
        let barrier_seconds = median(&found.barriers_seconds_each) / f64::from(rounds);
        let puts = u64::from(job.ranks) * false_sharing::PUTS;
        SharingRun {
            setting: Setting::new(job),
            rounds,
            puts_per_rank_and_round: false_sharing::PUTS,
            time_seconds,
            round_seconds,
            puts_per_second: puts as f64 / round_seconds,
            barrier_seconds,
            round_to_barrier: round_seconds / barrier_seconds,
            found,
        }
    }
}

impl Run for SharingRun {
    fn setting(&self) -> &Setting {
        &self.setting
    }

    fn time_seconds(&self) -> f64 {
        self.time_seconds
    }
}

impl Report<'_, SharingRun> {
    pub fn table(&self) -> String {
        let mut text = format!(
            "{SETTING_HEAD} {:>7} {:>8} {:>10} {:>10} {:>11} {:>10}\n",
            "rounds", "time s", "round us", "puts/s", "barrier us", "to barrier"
        );
        for run in &self.runs {
            text += &format!(
                "{} {:>7} {:>8.3} {:>10.1} {:>10.0} {:>11.1} {:>10.1}\n",
                run.setting.columns(),
                run.rounds,
                run.time_seconds,
                run.round_seconds * 1e6,
                run.puts_per_second,
                run.barrier_seconds * 1e6,
                run.round_to_barrier,
            );
        }
        text + &cooperative_lines(&self.cooperative)
    }
}

/// The job of `hit`.
#[derive(Serialize)]
pub struct HitReport {
    pub benchmark: &'static str,
    pub storage_dir: PathBuf,
    #[serde(flatten)]
    pub setting: Setting,
    pub segment_bytes: u64,
    pub targets: Vec<Target>,
    pub reached_all: bool,
    #[serde(flatten)]
    found: hit::Found,
}

impl HitReport {
    pub fn new(job: &Job, found: hit::Found) -> HitReport {
        let targets = judge_hit(job, &found);
        HitReport {
            benchmark: "hit",
            storage_dir: job.config.storage_dir.clone(),
            setting: Setting::new(job),
            segment_bytes: job.spec.data_bytes,
            reached_all: targets.iter().all(|target| target.reached),
            targets,
            found,
        }
    }

    pub fn table(&self) -> String {
        let mut text = judged_lines(&self.targets);
        if !self.found.plain_is_direct {
            text += "the directory has no O_DIRECT: plain reads went through the page cache\n";
        }
        text
    }
}

/// Jobs of a benchmark that has targets.
#[derive(Serialize)]
pub struct Judged<'a, R> {
    pub benchmark: &'static str,
    pub storage_dir: &'a Path,
    pub runs: Vec<R>,
    pub reached_all: bool,
}

fn judged_lines(targets: &[Target]) -> String {
    let mut text = format!("{:<42} {:>10} {:>13} {:>7}\n", "target", "measured", "wanted", "ratio");
    for target in targets {
        let bound = if target.bound == Bound::AtMost { "at most" } else { "at least" };
        let verdict = if target.reached { "reached" } else { "missed" };
        text += &format!(
            "{:<42} {:>10.3} {bound:>8} {:>4} {:>7.2} {verdict}\n",
            target.meaning, target.measured, target.target, target.ratio
        );
    }
    text
}

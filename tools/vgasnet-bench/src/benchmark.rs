//! A benchmark: its options, its jobs, and the measurement in a rank.

use crate::launch::run_jobs;
use crate::plan::{Data, Job, Spec};
use crate::rank::Rank;
use crate::report::{Figures, Kind, Output, Report, Run};
use crate::{Stop, launch, rank};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::path::PathBuf;
use vgasnet::am::Entry as Handler;

/// The value holds the options. Its comment is the help text. Each rank gets a copy.
pub trait Benchmark: Args + FromArgMatches + Serialize + DeserializeOwned {
    /// The name of the subcommand.
    const NAME: &'static str;

    const KIND: Kind = Kind::Jobs;

    /// The segments with data.
    const DATA: Data = Data::First;

    /// Whether small accesses are measured. In other benchmarks they bring pages to the pool instead of being shipped.
    const IS_SMALL: bool = false;

    /// The name in the results.
    fn mode(&self) -> &'static str {
        Self::NAME
    }

    /// The jobs in the order of their runs.
    fn plan(&self) -> Result<Vec<Job>, Stop> {
        Ok(Vec::new())
    }

    /// The work of a rank. The figures of rank 0 count.
    fn measure(&self, _rank: &Rank, _spec: &Spec) -> Figures {
        Figures::default()
    }

    /// Handlers of Active Messages.
    fn handlers() -> Vec<Handler> {
        Vec::new()
    }

    /// The work of a process that maps a file and is not a rank.
    fn serve(&self, _spec: &Spec) {}

    /// Completes the figures of a job by comparing them with the previous runs, and with `peak_bytes`, the memory of
    /// the processes that map files.
    fn compare(&self, _job: &Job, figures: Figures, _before: &[Run], _peak_bytes: Option<u64>) -> Figures {
        figures
    }

    /// Measures. A benchmark of other programs replaces this, and has no plan.
    fn run(&self) -> Result<Report, Stop> {
        run_jobs(self)
    }
}

/// A subcommand.
pub struct Entry {
    pub name: &'static str,
    pub arguments: fn(Command) -> Command,
    /// Measures. Returns the exit status.
    pub run: fn(&ArgMatches) -> Result<u8, Stop>,
    /// The work of a rank.
    pub rank: fn(&Spec) -> Result<u8, Stop>,
}

impl Entry {
    pub const fn of<B: Benchmark>() -> Entry {
        Entry { name: B::NAME, arguments: B::augment_args, run: run::<B>, rank: rank::work::<B> }
    }
}

fn run<B: Benchmark>(matches: &ArgMatches) -> Result<u8, Stop> {
    launch::refuse_ranks()?;
    let options = B::from_arg_matches(matches).map_err(Stop::usage)?;
    // A benchmark without one of these options has no such argument.
    let path = |option: &str| matches.try_get_one::<PathBuf>(option).ok().flatten().cloned();
    let is_checked = matches.try_get_one::<bool>("check").is_ok_and(|check| check == Some(&true));
    let output = Output::open(path("json"), path("plot"))?;
    let report = options.run()?;
    output.show(B::NAME, &report)?;
    Ok(u8::from(is_checked && report.has_reached_all() == Some(false)))
}

/// A benchmark with these options.
pub fn parsed<B: Benchmark>(options: Vec<OsString>) -> Result<B, String> {
    let command = B::augment_args(Command::new(B::NAME).no_binary_name(true));
    let matches = command.try_get_matches_from(options).and_then(|matches| B::from_arg_matches(&matches));
    matches.map_err(|error| error.to_string())
}

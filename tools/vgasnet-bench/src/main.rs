//! Measures vgasnet on this machine, each figure with a ratio to something measured in the same run.
//!
//! This process reads the options, starts the ranks (this program again, with the hidden subcommand `rank`) and reports the
//! measurements of rank 0. [`options`] and [`plan`] define the jobs, [`launcher`] runs them, [`rank`] and the modules that it
//! calls are the work of a rank, [`report`] and [`plot`] show the results.

mod arrays;
mod baseline;
mod cgroup;
mod disk;
mod false_sharing;
mod faults;
mod hit;
mod input;
mod launcher;
mod memory;
mod messages;
mod options;
mod plan;
mod plot;
mod progress;
mod rank;
mod reads;
mod report;
mod targets;
mod triad;

use options::{Command, Options};
use std::fmt::Display;
use std::process::ExitCode;

/// The status for options that make no sense, as shells and clap have it.
const USAGE_STATUS: u8 = 2;

/// One line, and the status to exit with.
#[derive(Debug)]
struct Stop {
    line: String,
    status: u8,
}

impl Stop {
    /// The options make no sense.
    fn usage(line: impl Display) -> Stop {
        Stop { line: line.to_string(), status: USAGE_STATUS }
    }

    /// Something could not be done.
    fn failure(line: impl Display) -> Stop {
        Stop { line: line.to_string(), status: 1 }
    }
}

fn main() -> ExitCode {
    let options = match Options::read() {
        Ok(options) => options,
        Err(stop) => return end(&stop),
    };
    let done = match options.command {
        Command::Measure(benchmark) => launcher::run(&benchmark),
        Command::Rank { spec } => rank::run(&spec),
    };
    match done {
        Ok(status) => ExitCode::from(status),
        Err(stop) => end(&stop),
    }
}

fn end(stop: &Stop) -> ExitCode {
    // A job that failed has said why itself.
    if !stop.line.is_empty() {
        eprintln!("vgasnet-bench: {}", stop.line);
    }
    ExitCode::from(stop.status)
}

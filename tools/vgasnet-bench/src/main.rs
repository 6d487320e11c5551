//! Measures vgasnet on this machine. Each figure is a ratio to a baseline measured in the same run.
//!
//! This process reads the options, starts the ranks (this program with the hidden subcommand `rank`) and reports the
//! measurements of rank 0. [`options`] and [`plan`] define the jobs, [`launcher`] runs them, [`rank`] and the modules
//! it calls are the work of a rank, [`report`] and [`plot`] show the results.

mod ahead;
mod arrays;
mod at_random;
mod baseline;
mod blocks;
mod busy;
mod calls;
mod collectives;
mod cycle;
mod disk;
mod false_sharing;
mod faults;
mod figures;
mod files;
mod gasnet_ex;
mod gets;
mod hit;
mod input;
mod launcher;
mod lists;
mod mapped;
mod messages;
mod operations;
mod options;
mod page_size;
mod plan;
mod plot;
mod programs;
mod rank;
mod reads;
mod replacement;
mod report;
mod small;
mod stream;
mod sweep;
mod table;
mod targets;
mod threads;
mod triad;

use clap::CommandFactory;
use options::{Command, Options};
use std::fmt::Display;
use std::process::ExitCode;

/// Exit status for invalid options, as used by shells and clap.
const USAGE_STATUS: u8 = 2;

/// One line, and the exit status.
#[derive(Debug)]
struct Stop {
    line: String,
    status: u8,
}

impl Stop {
    /// Invalid options.
    fn usage(line: impl Display) -> Stop {
        Stop { line: line.to_string(), status: USAGE_STATUS }
    }

    /// A failed operation.
    fn failure(line: impl Display) -> Stop {
        Stop { line: line.to_string(), status: 1 }
    }
}

fn main() -> ExitCode {
    let extras = vgasnet_manual::PageExtras {
        sections: &[("ENVIRONMENT", "Options go before the variables of vgasnet, which vgasnet(7) lists.")],
        see_also: &["vgasnet(7)", "vgasnetrun(1)", "vgasnet-info(1)"],
    };
    if vgasnet_manual::asked().is_some_and(|what| vgasnet_manual::print(Options::command(), &what, extras)) {
        return ExitCode::SUCCESS;
    }
    let done = Options::read().and_then(|options| match options.command {
        Command::Measure(benchmark) => launcher::run(&benchmark),
        Command::Rank { spec } => rank::run(&spec),
    });
    let status = done.unwrap_or_else(|stop| {
        // A failed job has already printed its own line.
        if !stop.line.is_empty() {
            eprintln!("vgasnet-bench: {}", stop.line);
        }
        stop.status
    });
    ExitCode::from(status)
}

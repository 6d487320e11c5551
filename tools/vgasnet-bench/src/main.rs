//! Measures vgasnet on this machine. Each figure is a ratio to a baseline measured in the same run.
//!
//! This process reads the options, starts the ranks (this program with the hidden subcommand `rank`) and reports the
//! figures of rank 0. [`benchmark::Benchmark`] is the trait of all benchmarks and [`benchmarks`] has their list.
//! [`launch`] runs their jobs, [`rank`] is a rank, and [`report`] and [`plot`] show the results.

mod at_random;
mod baseline;
mod benchmark;
mod benchmarks;
mod busy;
mod calls;
mod disk;
mod input;
mod launch;
mod mapped;
mod options;
mod plan;
mod plot;
mod prelude;
mod programs;
mod rank;
mod report;
mod rows;

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
    if vgasnet_manual::asked().is_some_and(|what| vgasnet_manual::print(options::command(), &what, extras)) {
        return ExitCode::SUCCESS;
    }
    let status = options::run().unwrap_or_else(|stop| {
        // A failed job has already printed its own line.
        if !stop.line.is_empty() {
            eprintln!("vgasnet-bench: {}", stop.line);
        }
        stop.status
    });
    ExitCode::from(status)
}

//! Starts the ranks of a vgasnet job on this machine.

use std::ffi::OsString;

use clap::Parser;
use vgasnet_smp::launch::Launch;

/// Runs a program as a job of several ranks on this machine
#[derive(Parser)]
#[command(
    name = "vgasnetrun",
    override_usage = "vgasnetrun [-n RANKS] [-l] PROGRAM [ARGUMENT]...",
    after_help = "Signals are forwarded to the ranks; stdin goes to rank 0. When a rank fails, the others are ended, and \
                  the exit status is that rank's, 128 + n when signal n killed it."
)]
struct Options {
    /// How many ranks, 1 to 4096
    #[arg(short = 'n', value_name = "RANKS", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(vgasnet_smp::RANKS_MAX)))]
    ranks: u32,

    /// Begin every line of output with the rank that wrote it: "[3] text"
    #[arg(short = 'l')]
    label_output: bool,

    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    program: Vec<OsString>,
}

fn main() {
    let Options { ranks, label_output, program } = Options::parse();
    let (program, args) = program.split_first().expect("clap requires a program");
    let outcome = Launch::new(ranks, program).args(args).label_output(label_output).run();
    std::process::exit(outcome.status);
}

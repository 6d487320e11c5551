//! The main job: four ranks read data several times larger than their memory and compare every byte. mmap and read() do
//! the same with the same memory.
//!
//! This process parses the options and starts the others. Each of them is this program with the hidden command
//! `process`.

mod chart;
mod job;
mod plan;
mod ranks;
mod readers;
mod results;

use clap::{Parser, Subcommand};
use plan::{Orders, Way};
use std::path::PathBuf;
use std::process::ExitCode;
///  Puts a file into segments of vgasnet that are larger than memory, has every rank read all of it, and compares
/// the time with
/// mmap and read().
#[derive(Debug, Parser)]
#[command(name = "vgasnet-main-job", version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct Options {
    #[command(subcommand)]
    process: Option<Process>,

    /// The data: a file of more than the memory
    #[arg(required = true)]
    file: Option<PathBuf>,

    /// Ranks, and processes of the other ways
    #[arg(short = 'n', long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    ranks: u32,

    /// Memory of each rank for pages, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 32, value_parser = clap::value_parser!(u64).range(16..=1 << 20))]
    pool: u64,

    /// How often each way reads the data
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,

    /// Draw the result there, too
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Write the result there as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Process {
    #[command(hide = true)]
    Process { orders: String },
}

fn main() -> ExitCode {
    let options = Options::parse();
    let done = match &options.process {
        Some(Process::Process { orders }) => process(orders),
        None => job::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(line) => {
            // A failed job has already printed its own line.
            if !line.is_empty() {
                eprintln!("vgasnet-main-job: {line}");
            }
            ExitCode::FAILURE
        }
    }
}

fn process(orders: &str) -> Result<(), String> {
    let orders: Orders = serde_json::from_str(orders).map_err(|error| format!("orders of a process: {error}"))?;
    match orders.way {
        Way::Vgasnet => ranks::run(&orders),
        Way::Mmap | Way::Read => readers::run(&orders),
    }
}

//! The options of `gasnet-ex`.

use super::Judging;
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;
use vgasnet_settings::parse_size;

#[derive(Args, Clone)]
#[command(mut_arg("check", |check| check.help("Exit with status 1 if a target is missed, or could not be measured")))]
pub struct GasnetExOptions {
    /// Number of ranks, also as -np; several numbers are measured one after another
    #[arg(short = 'n', value_name = "RANKS", default_value = "2,4", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(2..=64))]
    pub ranks: Vec<u32>,

    /// The prefix of another GASNet-EX, for threads (par), with its packages in lib/pkgconfig
    #[arg(long, value_name = "DIR")]
    pub other: Option<PathBuf>,

    /// The network of the other GASNet-EX
    #[arg(long, value_enum, default_value_t = Network::Smp)]
    pub network: Network,

    /// Size of the part of a segment with random places
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = parse_size)]
    pub spread: u64,

    /// DRAM cache of each rank of vgasnet, with room for all places
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = parse_size)]
    pub pool: u64,

    /// Alternating rounds of both; results are their medians
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,

    /// Directory of the backing files [default: VGASNET_STORAGE_DIR, else TMPDIR, else /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub storage_dir: Option<PathBuf>,

    /// Write the results to this file in JSON; with - they go to stdout, and the table goes to stderr
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    #[command(flatten)]
    pub judging: Judging,
}

/// GASNet-EX's name for the transport between ranks of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Shared memory
    Smp,
    /// UDP, and shared memory
    Udp,
}

impl Network {
    pub fn name(self) -> &'static str {
        match self {
            Network::Smp => "smp",
            Network::Udp => "udp",
        }
    }
}

//! The options of benchmarks of cached gets.

use super::{Judging, Setup};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use vgasnet_settings::parse_size;

const POOL: &str = "DRAM cache of each rank [default: VGASNET_POOL_SIZE, else 32M]";
const PAGE: &str = "Page size [default: VGASNET_PAGE_SIZE, else 1M]";

#[derive(Args, Clone)]
#[command(mut_arg("pool", |pool| pool.help(POOL)), mut_arg("page", |page| page.help(PAGE)))]
#[command(mut_arg("check", |check| check.help("Exit with status 1 if a target is missed, or could not be measured")))]
pub struct GetsOptions {
    #[command(flatten)]
    pub setup: Setup,

    /// Number of distinct gets
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(17..=1_000_000))]
    pub distinct: u32,

    /// Number of draws among them
    #[arg(long, visible_alias = "size", value_name = "N", default_value_t = 20_000,
          value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub draws: u32,

    /// Whether the gets share bytes
    #[arg(long, value_enum, default_value_t = Ranges::Disjoint)]
    pub ranges: Ranges,

    /// Distribution of the draws
    #[arg(long, value_enum, default_value_t = Sampling::Normal)]
    pub sampling: Sampling,

    /// For normal draws: the standard deviation is the number of distinct gets divided by this
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub sigma: u32,

    /// Memory of the cache; several sizes are measured one after another [default: 1/8, 1/4, 1/2, 1 and 2 times the
    /// bytes of all distinct gets]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = parse_size)]
    pub cache: Vec<u64>,

    /// Do not measure `MPI_Get`, with and without a library that caches it
    #[arg(long)]
    pub no_mpi: bool,

    #[command(flatten)]
    pub mpi: MpiOptions,

    #[command(flatten)]
    pub judging: Judging,
}

// For benchmarks that also run MPI programs. A doc comment would become the help of the command.
#[derive(Args, Clone)]
pub struct MpiOptions {
    /// The C compiler of an MPI; its launcher has the same name with mpiexec for mpicc
    #[arg(long, value_name = "COMMAND", default_value = "mpicc")]
    pub mpicc: String,

    /// The preloaded library that caches MPI_Get [default: libvgasnet-mpi-cache.so next to this program, or in ../lib]
    #[arg(long, value_name = "FILE")]
    pub mpi_cache: Option<PathBuf>,
}

/// Starts and lengths of the distinct gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ranges {
    /// Powers of two from 1 to 64K, adjacent
    Disjoint,
    /// 4 bytes to 64K, each starting 4 bytes after the previous one in its page
    Overlapping,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sampling {
    /// Around the middle one
    Normal,
    /// All equally likely
    Uniform,
}

#[derive(Args, Clone)]
pub struct ProgramOptions {
    /// Rounds; results are their medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,

    /// Seed of the data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Number of ranks, also as -np; with two, the other rank has not much more than a pool, and vgasnet moves its
    /// pages here
    #[arg(short = 'n', value_name = "RANKS", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub ranks: u32,

    /// Number of ranks over MPI; each needs a processor
    #[arg(long, value_name = "RANKS", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub mpi_ranks: u32,

    /// Page size
    #[arg(long, value_name = "SIZE", default_value = "128K", value_parser = parse_size)]
    pub page: u64,

    /// Memory for remote bytes, as fractions of the remote bytes
    #[arg(long, value_name = "PART", default_value = "0.25,0.5,1", value_delimiter = ',')]
    pub parts: Vec<f64>,

    /// Directory of the backing files [default: VGASNET_STORAGE_DIR, else TMPDIR, else /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub storage_dir: Option<PathBuf>,

    /// Directory with the programs' sources [default: ../share/vgasnet/examples relative to this program, else the
    /// source tree]
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,

    /// Run the programs on two hosts, network namespaces created for this purpose, over TCP; needs root, and a vgasnet
    /// with MPI
    #[arg(long)]
    pub two_hosts: bool,

    /// Do not measure the programs by MPI, with and without a library that caches its gets
    #[arg(long)]
    pub no_mpi: bool,

    #[command(flatten)]
    pub mpi: MpiOptions,

    /// Write the results to this file in JSON; with - they go to stdout, and the table goes to stderr
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    #[command(flatten)]
    pub judging: Judging,
}

#[derive(Args, Clone)]
#[command(mut_arg("check", |check| check.help("Exit with status 1 if a target is missed, or could not be measured")))]
pub struct LccOptions {
    #[command(flatten)]
    pub program: ProgramOptions,

    /// The graph has 2^N vertices
    #[arg(long, visible_alias = "size", value_name = "N", default_value_t = 15,
          value_parser = clap::value_parser!(u32).range(6..=28))]
    pub scale: u32,

    /// Weight cached lists by their degree over the mean
    #[arg(long)]
    pub weighted: bool,
}

#[derive(Args, Clone)]
#[command(mut_arg("check", |check| check.help("Exit with status 1 if a target is missed, or could not be measured")))]
pub struct BarnesHutOptions {
    #[command(flatten)]
    pub program: ProgramOptions,

    /// Number of bodies
    #[arg(long, visible_alias = "size", value_name = "N", default_value_t = 4000,
          value_parser = clap::value_parser!(u32).range(64..=10_000_000))]
    pub bodies: u32,

    /// Number of time steps
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub steps: u32,

    /// Bodies spread over a cube, instead of a cluster
    #[arg(long)]
    pub uniform: bool,
}

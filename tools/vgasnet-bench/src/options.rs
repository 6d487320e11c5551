//! The command line.

mod cached;
mod figures;
mod files;
mod gasnet_ex;
mod operations;
mod random;

pub use cached::{BarnesHutOptions, GetsOptions, LccOptions, MpiOptions, ProgramOptions, Ranges, Sampling};
pub use figures::FiguresOptions;
pub use files::FilesOptions;
pub use gasnet_ex::{GasnetExOptions, Network};
pub use operations::OperationsOptions;
pub use random::{Access, SmallOptions, TableOptions};

use crate::Stop;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use vgasnet_settings::parse_size;
use vgasnet_smp::RANKS_MAX;

/// Measures vgasnet on this machine
///
/// Every benchmark starts its own ranks. Sizes are digits, then at most one of K, M, G, T.
#[derive(Parser)]
#[command(name = "vgasnet-bench", version)]
pub struct Options {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    #[command(flatten)]
    Measure(Benchmark),
    /// The work of a rank started by this program
    #[command(hide = true)]
    Rank {
        /// A `plan::Spec` in JSON
        spec: String,
    },
}

#[derive(Subcommand)]
pub enum Benchmark {
    /// Every rank reads all data of rank 0 from start to end, all ranks at once, in blocking gets of 4 MiB
    Sequential(ReadOptions),
    /// Every rank reads the same amount in gets of 4 MiB at random multiples of 4 MiB
    Random(ReadOptions),
    /// Throughput of one of three ranks reading pages, by their size and location, compared with a copy from the same
    /// memory
    PageSize(PageSizeOptions),
    /// Every rank reads all data of rank 0, in order and at random, from half a pool to four, with and without
    /// cooperative caching: time, and messages per page
    Sweep(SweepOptions),
    /// Every rank puts ten single bytes into one page, then waits at a barrier, repeatedly
    FalseSharing(SharingOptions),
    /// Compares hits, misses, progress and memory with their targets
    Hit(HitOptions),
    /// a = b + s * c over arrays in a rank's own segment, by loads and stores, in the pool and larger than it
    Triad(TriadOptions),
    /// Latency of the first load or store of a page, by the location of the page
    Fault(FaultOptions),
    /// Data larger than the pool, read and written from start to end, compared with plain I/O at its best depth
    Stream(StreamOptions),
    /// Latency of a miss during read-ahead of a large range
    Ahead(StreamOptions),
    /// Active Messages between two ranks: the round trip of short ones, and the throughput of medium ones
    Messages(MessageOptions),
    /// Lists of pieces of 64 bytes that hit, compared with plain copies of the pieces, between two ranks
    Lists(ListOptions),
    /// Gets and puts of every kind that hit, at random places, by size, threads and owner of the pages, compared with
    /// copies
    Operations(OperationsOptions),
    /// Collectives of large blocks among ranks of one host: bytes received by all ranks, compared with a copy by one
    /// thread
    Collectives(CollectiveOptions),
    /// A cyclic scan over twice the pool, by gets and by loads: the fraction of pages not read from the disk in a round
    Loop(LoopOptions),
    /// Loads of shuffled blocks of 1 MiB, with several pools, compared with a mapped file with the same memory
    Blocks(BlockOptions),
    /// Gets, puts, loads and stores of 8 bytes to 64 KiB at random places, by location, compared with raw I/O and a
    /// mapped file
    Small(SmallOptions),
    /// Inserts into a hash table of eight pools in each rank's segment, compared with a mapped file with the same
    /// memory
    Table(TableOptions),
    /// Repeated random gets of many sizes, with and without the cache of gets, by size and by memory of the cache
    Gets(GetsOptions),
    /// Clustering coefficients of a graph: the example lcc, with and without the cache of gets, over vgasnet and over
    /// MPI
    Lcc(LccOptions),
    /// Gravitation of many bodies: the example barnes_hut, with and without the cache of gets, over vgasnet and over
    /// MPI
    BarnesHut(BarnesHutOptions),
    /// Shared files over vgasnet, over MPI-IO and under locks: a sliding window, BT-IO, FLASH I/O
    Files(Box<FilesOptions>),
    /// Small operations of GASNet-EX, all in memory, compared with another installed GASNet-EX
    GasnetEx(GasnetExOptions),
    /// The paper's figures in a model of its machine, and this machine compared with its model: data of the page of
    /// figures
    Figures(FiguresOptions),
    /// Hit ratios of page replacement policies on traces, compared with the optimum; no ranks are started
    Replacement(ReplacementOptions),
}

#[derive(Args, Clone)]
pub struct Setup {
    /// DRAM cache of each rank [default: VGASNET_POOL_SIZE, else 256M]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub pool: Option<u64>,

    /// Page size [default: VGASNET_PAGE_SIZE, else 4M]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub page: Option<u64>,

    /// Directory of the backing files [default: VGASNET_STORAGE_DIR, else TMPDIR, else /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub storage_dir: Option<PathBuf>,

    /// Seed of the data and of random places
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Rounds; results are their medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,

    /// Threads that compute at the same time as the ranks
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1000))]
    pub busy: u16,

    /// Write the results to this file in JSON; with - they go to stdout, and the table goes to stderr
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Make each job print its statistics on stderr at its end; counting takes a few nanoseconds per hit
    #[arg(long)]
    pub stats: bool,
}

impl Setup {
    /// Adds this pool if neither the option nor the environment sets one.
    pub fn with_pool(self, default_bytes: u64) -> Setup {
        Setup { pool: self.pool.or(default_unless("VGASNET_POOL_SIZE", default_bytes)), ..self }
    }
}

/// Whether an option or the environment sets the page size.
pub fn is_page_chosen(setup: &Setup) -> bool {
    setup.page.or(default_unless("VGASNET_PAGE_SIZE", 0)) != Some(0)
}

/// A default, unless the environment sets the variable.
pub fn default_unless(variable: &str, default_bytes: u64) -> Option<u64> {
    std::env::var_os(variable).is_none().then_some(default_bytes)
}

#[derive(Args, Clone)]
pub struct Modes {
    /// Number of ranks, also as -np; several numbers, as in 1,2,4, are measured one after another
    #[arg(short = 'n', value_name = "RANKS", default_value = "2", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..=i64::from(RANKS_MAX)))]
    pub ranks: Vec<u32>,

    /// Cooperative caching: whether a page held by another rank is fetched from there
    #[arg(long, value_enum, default_value_t = Switch::On)]
    pub cooperative: Switch,

    /// Whether ranks of one host use each other's frames directly
    #[arg(long, value_enum, default_value_t = Switch::On)]
    pub peer_memory: Switch,

    /// Draw the results to this file
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
}

// For benchmarks with targets. A doc comment would become the help of the command.
#[derive(Args, Clone)]
pub struct Judging {
    /// Draw the results to this file
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,

    /// Exit with status 1 if a target is missed
    #[arg(long)]
    pub check: bool,
}

#[derive(Args, Clone)]
pub struct ReadOptions {
    #[command(flatten)]
    pub modes: Modes,

    #[command(flatten)]
    pub setup: Setup,

    /// Data on rank 0 [default: 1G, with --input the size of the file]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: Option<u64>,

    /// Put this file into the segment, and compare every byte read with it
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    pub input: Option<PathBuf>,

    /// With --cooperative both: exit with status 1 if cooperative caching is slower than its absence
    #[arg(long)]
    pub check: bool,

    /// Change the byte at this offset of the segment after filling, to test the comparison
    #[arg(long, value_name = "OFFSET", hide = true, requires = "input")]
    pub damage: Option<u64>,
}

/// Without --page and VGASNET_PAGE_SIZE, all page sizes allowed by vgasnet are measured, from 8K on.
#[derive(Args, Clone)]
pub struct PageSizeOptions {
    #[command(flatten)]
    pub setup: Setup,

    /// Data read in each measurement, in whole pages, at least two
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = parse_size)]
    pub size: u64,

    #[command(flatten)]
    pub judging: Judging,
}

#[derive(Args, Clone)]
#[command(mut_arg("pool", |pool| pool.help("DRAM cache of each rank [default: VGASNET_POOL_SIZE, else 64M]")))]
#[command(mut_arg("page", |page| page.help("Page size [default: VGASNET_PAGE_SIZE, else 256K]")))]
pub struct SweepOptions {
    #[command(flatten)]
    pub setup: Setup,

    /// Number of ranks, also as -np; several numbers are measured one after another
    #[arg(short = 'n', value_name = "RANKS", default_value = "1,2,4", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..=i64::from(RANKS_MAX)))]
    pub ranks: Vec<u32>,

    /// Data on rank 0; several sizes, as in 64M,1G, are measured one after another [default: 1/2, 1, 3/2, 2, 3 and 4
    /// pools]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = parse_size)]
    pub size: Vec<u64>,

    /// Whether ranks of one host use each other's frames directly; off is the same as on different hosts
    #[arg(long, value_enum, default_value_t = Switch::Off)]
    pub peer_memory: Switch,

    #[command(flatten)]
    pub judging: Judging,
}

#[derive(Args, Clone)]
pub struct SharingOptions {
    #[command(flatten)]
    pub modes: Modes,

    #[command(flatten)]
    pub setup: Setup,

    /// Rounds of puts and a barrier in each repetition
    #[arg(long, visible_alias = "size", value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rounds: u32,

    /// Exit with status 1 if the target is missed; it applies to 4 ranks without shared memory
    #[arg(long)]
    pub check: bool,
}

#[derive(Args, Clone)]
pub struct HitOptions {
    #[command(flatten)]
    pub setup: Setup,

    /// Number of ranks, also as -np
    #[arg(short = 'n', value_name = "RANKS", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(RANKS_MAX)))]
    pub ranks: u32,

    /// Measure random gets with this number of threads per rank in addition to one thread
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: u32,

    /// Measure gets at random places only
    #[arg(long)]
    pub only_random: bool,

    /// Exit with status 1 if a target is missed
    #[arg(long)]
    pub check: bool,
}

#[derive(Args, Clone)]
#[command(mut_arg("check", |check| check.help("Exit with status 1 if a target is missed, or could not be measured")))]
pub struct TriadOptions {
    #[command(flatten)]
    pub setup: Setup,

    /// Size of each of the three arrays, in whole pages; several sizes, as in 64M,1G, are measured one after another.
    /// Arrays that fit the pool are compared with malloc, larger ones with the disk [default: a quarter of the pool,
    /// and four pools]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = parse_size)]
    pub size: Vec<u64>,

    #[command(flatten)]
    pub judging: Judging,
}

/// Without --page and VGASNET_PAGE_SIZE, pages of 4M and of 64K are measured one after another.
#[derive(Args, Clone)]
pub struct FaultOptions {
    #[command(flatten)]
    pub setup: Setup,

    /// Number of faults of each kind
    #[arg(long, visible_alias = "size", value_name = "N", default_value_t = 256,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub faults: u32,

    /// Measure instead the pages per second for this number of threads of one rank loading from random pages; several
    /// numbers, as in 1,4,16, are measured in alternating rounds
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with_all = ["faults", "peer_memory"],
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Vec<u32>,

    /// Whether ranks of one host use each other's frames directly
    #[arg(long, value_enum, default_value_t = Switch::On)]
    pub peer_memory: Switch,

    #[command(flatten)]
    pub judging: Judging,
}

/// Without --page and VGASNET_PAGE_SIZE, pages of 4M and of 64K are measured one after another.
#[derive(Args, Clone)]
pub struct StreamOptions {
    #[command(flatten)]
    pub setup: Setup,

    /// Data read or written in order, or read ahead [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: Option<u64>,

    /// Exit with status 1 if a target is missed
    #[arg(long)]
    pub check: bool,
}

#[derive(Args, Clone)]
pub struct MessageOptions {
    #[command(flatten)]
    pub setup: Setup,

    /// Number of round trips
    #[arg(long, visible_alias = "size", value_name = "N", default_value_t = 20_000,
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub messages: u32,

    #[command(flatten)]
    pub judging: Judging,
}

#[derive(Args, Clone)]
pub struct ListOptions {
    #[command(flatten)]
    pub setup: Setup,

    /// Exit with status 1 if a target is missed
    #[arg(long)]
    pub check: bool,
}

/// Without --pool and --page, several pools with pages of 64K and of 4M are measured one after another.
#[derive(Args, Clone)]
pub struct LoopOptions {
    #[command(flatten)]
    pub setup: Setup,

    /// Number of additional idle ranks. Unless set, VGASNET_IDLE_POOLS is 1, so their pools keep pages evicted by the
    /// first rank
    #[arg(long, value_name = "RANKS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=63))]
    pub idle: u32,

    /// Exit with status 1 if a target is missed
    #[arg(long)]
    pub check: bool,
}

#[derive(Args, Clone)]
pub struct CollectiveOptions {
    #[command(flatten)]
    pub setup: Setup,

    /// Bytes received by every rank, from all ranks together
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = parse_size)]
    pub size: u64,

    /// Number of ranks
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub ranks: u32,

    /// Whether ranks see each other's memory, as on one host; off is the same as on different hosts
    #[arg(long, value_enum, default_value_t = Switch::On)]
    pub peer_memory: Switch,

    #[command(flatten)]
    pub judging: Judging,
}

#[derive(Args, Clone)]
#[command(mut_arg("pool", |pool| pool.hide(true)), mut_arg("page", |page| page.help("Page size [default: 64K]")))]
#[command(mut_arg("check", |check| check.help("Exit with status 1 if a target is missed, or could not be measured")))]
pub struct BlockOptions {
    #[command(flatten)]
    pub setup: Setup,

    /// DRAM cache of the rank; several sizes are measured one after another, in ascending order
    #[arg(long, value_name = "SIZE", default_value = "32M,128M,512M,2G", value_delimiter = ',', value_parser = parse_size)]
    pub pools: Vec<u64>,

    /// Data, in whole blocks
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_size)]
    pub size: u64,

    /// Exit with status 1 if a target is missed
    #[arg(long)]
    pub check: bool,
}

#[derive(Args, Clone)]
pub struct ReplacementOptions {
    /// Approximate number of pages used by each trace
    #[arg(long, visible_alias = "size", value_name = "N", default_value_t = 4096,
          value_parser = clap::value_parser!(u32).range(256..=1_000_000))]
    pub pages: u32,

    /// Seed of the random traces
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Write the results to this file in JSON; with - they go to stdout, and the table goes to stderr
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Exit with status 1 if a target is missed
    #[arg(long)]
    pub check: bool,
}

/// One value of a mode, or both one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    On,
    Off,
    Both,
}

impl Switch {
    pub fn values(self) -> &'static [bool] {
        match self {
            Switch::On => &[true],
            Switch::Off => &[false],
            Switch::Both => &[true, false],
        }
    }
}

impl Options {
    /// Parses the command line. Prints help and exits if requested.
    pub fn read() -> Result<Options, Stop> {
        let command = Options::command();
        let arguments = vgasnet_manual::with_np(&command, std::env::args_os());
        let matches = command.try_get_matches_from(arguments);
        matches.and_then(|matches| Options::from_arg_matches(&matches)).map_err(|error| {
            if !error.use_stderr() {
                error.exit();
            }
            // clap would print help instead of an error line.
            if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
                return Stop::usage("no benchmark is named; see --help");
            }
            Stop::usage(first_paragraph(&error.to_string()))
        })
    }
}

/// The error on one line, without the usage below it.
fn first_paragraph(text: &str) -> String {
    let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty() && !line.starts_with("Usage:"));
    let line = lines.collect::<Vec<_>>().join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    format!("{line}; see --help")
}

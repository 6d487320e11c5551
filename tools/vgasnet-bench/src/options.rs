//! The command line, and options common to several benchmarks.

use crate::{Stop, benchmarks, rank};
use clap::builder::RangedI64ValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Args, Command, ValueEnum};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use vgasnet_settings::parse_size;
use vgasnet_smp::RANKS_MAX;

/// A number in a range.
pub fn within(range: RangeInclusive<i64>) -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(range)
}

/// A number of ranks.
pub fn ranks() -> RangedI64ValueParser<u32> {
    within(1..=i64::from(RANKS_MAX))
}

/// Help for `--check` where a missing figure is a missed target.
pub const CHECK_ALL: &str = "Exit with status 1 if a figure is worse than wanted, or could not be measured";

#[derive(Args, Clone, Serialize, Deserialize)]
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
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = within(1..=1000))]
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
    pub fn with_pool(&self, default_bytes: u64) -> Setup {
        Setup { pool: self.pool.or(default_unless("VGASNET_POOL_SIZE", default_bytes)), ..self.clone() }
    }

    /// Adds this page size if neither the option nor the environment sets one.
    pub fn with_page(&self, default_bytes: u64) -> Setup {
        Setup { page: self.page.or(default_unless("VGASNET_PAGE_SIZE", default_bytes)), ..self.clone() }
    }

    /// A setup for each of these page sizes, or only for the one set by the option or the environment.
    pub fn in_pages(&self, pages_bytes: impl IntoIterator<Item = u64>) -> Vec<Setup> {
        let is_chosen = self.page.is_some() || default_unless("VGASNET_PAGE_SIZE", 0).is_none();
        let pages = if is_chosen { vec![self.page] } else { pages_bytes.into_iter().map(Some).collect() };
        pages.into_iter().map(|page| Setup { page, ..self.clone() }).collect()
    }
}

/// Page sizes of benchmarks that measure large and small pages.
pub const LARGE_AND_SMALL: [u64; 2] = [4 << 20, 64 << 10];

/// A default, unless the environment sets the variable.
fn default_unless(variable: &str, default_bytes: u64) -> Option<u64> {
    std::env::var_os(variable).is_none().then_some(default_bytes)
}

#[derive(Args, Clone, Serialize, Deserialize)]
pub struct Modes {
    /// Number of ranks, also as -np; several numbers, as in 1,2,4, are measured one after another
    #[arg(short = 'n', value_name = "RANKS", default_value = "2", value_delimiter = ',', value_parser = ranks())]
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
#[derive(Args, Clone, Serialize, Deserialize)]
pub struct Judging {
    /// Draw the results to this file
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,

    /// Exit with status 1 if a figure is worse than wanted
    #[arg(long)]
    pub check: bool,
}

// For benchmarks that also run MPI programs. A doc comment would become the help of the command.
#[derive(Args, Clone, Serialize, Deserialize)]
pub struct MpiOptions {
    /// The C compiler of an MPI; its launcher has the same name with mpiexec for mpicc
    #[arg(long, value_name = "COMMAND", default_value = "mpicc")]
    pub mpicc: String,

    /// The preloaded library that caches MPI_Get [default: libvgasnet-mpi-cache.so next to this program, or in ../lib]
    #[arg(long, value_name = "FILE")]
    pub mpi_cache: Option<PathBuf>,
}

/// One value of a mode, or both one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
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

/// All subcommands and their options.
pub fn command() -> Command {
    let about = "Measures vgasnet on this machine";
    let more = "Every benchmark starts its own ranks. Sizes are digits, then at most one of K, M, G, T.";
    let spec = Arg::new("spec").required(true).help("A `plan::Spec` in JSON");
    let rank = Command::new("rank").about("The work of a rank started by this program").hide(true).arg(spec);
    Command::new("vgasnet-bench")
        .version(env!("CARGO_PKG_VERSION"))
        .about(about)
        .long_about(format!("{about}\n\n{more}"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(benchmarks::ALL.iter().map(|entry| (entry.arguments)(Command::new(entry.name))))
        .subcommand(rank)
}

/// Parses the command line and runs the subcommand. Prints help and exits if requested. Returns the exit status.
pub fn run() -> Result<u8, Stop> {
    let command = command();
    let arguments = vgasnet_manual::with_np(&command, std::env::args_os());
    let matches = command.try_get_matches_from(arguments).map_err(|error| {
        if !error.use_stderr() {
            error.exit();
        }
        // clap would print help instead of an error line.
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            return Stop::usage("no benchmark is named; see --help");
        }
        Stop::usage(first_paragraph(&error.to_string()))
    })?;
    let (name, matches) = matches.subcommand().expect("clap requires one");
    match benchmarks::ALL.iter().find(|entry| entry.name == name) {
        Some(entry) => (entry.run)(matches),
        None => rank::run(matches.get_one::<String>("spec").expect("clap requires it")),
    }
}

/// The error on one line, without the usage below it.
fn first_paragraph(text: &str) -> String {
    let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty() && !line.starts_with("Usage:"));
    let line = lines.collect::<Vec<_>>().join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    format!("{line}; see --help")
}

//! The options of `files`.

use super::Judging;
use crate::files::Pattern;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use vgasnet_settings::parse_size;

#[derive(Args, Clone)]
#[command(mut_arg("check", |check| check.help("Exit with status 1 if a target is missed, or could not be measured")))]
pub struct FilesOptions {
    /// The patterns to measure
    #[arg(long, value_enum, value_name = "PATTERN", value_delimiter = ',', default_values_t = Pattern::value_variants().to_vec())]
    pub patterns: Vec<Pattern>,

    /// Number of ranks, also as -np; several numbers are measured one after another. The patterns of BT-IO need squares
    /// [default: 2,4 for the sliding window, else 4]
    #[arg(short = 'n', value_name = "RANKS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=64))]
    pub ranks: Vec<u32>,

    /// Sizes of the file of the sliding window
    #[arg(long, value_name = "SIZE", default_value = "32M", value_delimiter = ',', value_parser = parse_size)]
    pub size: Vec<u64>,

    /// Classes of BT-IO: cubes of 12, 24, 64 and 102 points a side
    #[arg(long, value_enum, value_name = "CLASS", default_value = "a", value_delimiter = ',', ignore_case = true)]
    pub class: Vec<Class>,

    /// Dumps of BT-IO
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub dumps: u32,

    /// Cells a side of the blocks of FLASH I/O
    #[arg(long, value_name = "N", default_value = "8,16", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=64))]
    pub edge: Vec<u32>,

    /// The DRAM cache of each rank, counted in its memory
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = parse_size)]
    pub pool: u64,

    /// Memory of each rank in addition to its pool; ways without a pool leave the rest to the system's page cache
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = parse_size)]
    pub besides: u64,

    /// Page size
    #[arg(long, value_name = "SIZE", default_value = "256K", value_parser = parse_size)]
    pub page: u64,

    /// Alternating rounds of all ways; results are their medians
    #[arg(long, visible_alias = "rounds", value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,

    /// Measure only runs that end with a sync, and none that end with the close
    #[arg(long)]
    pub only_sync: bool,

    /// Directory of the files, and of backing files [default: VGASNET_STORAGE_DIR, else TMPDIR, else /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub storage_dir: Option<PathBuf>,

    /// Do not measure MPI-IO
    #[arg(long)]
    pub no_mpi: bool,

    /// The C compiler of an MPI; its launcher has the same name with mpiexec for mpicc
    #[arg(long, value_name = "COMMAND", default_value = "mpicc")]
    pub mpicc: String,

    /// The preloaded library that serves MPI-IO by vgasnet [default: libvgasnet-mpi-io.so next to this program, or in
    /// ../lib]
    #[arg(long, value_name = "FILE")]
    pub mpi_io_library: Option<PathBuf>,

    /// Write the results to this file in JSON; with - they go to stdout, and the table goes to stderr
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    #[command(flatten)]
    pub judging: Judging,
}

/// A class of the NAS parallel benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Class {
    S,
    W,
    A,
    B,
}

impl Class {
    /// Points on a side of the cube.
    pub fn points(self) -> u64 {
        match self {
            Class::S => 12,
            Class::W => 24,
            Class::A => 64,
            Class::B => 102,
        }
    }
}

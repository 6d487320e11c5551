//! The options of benchmarks of small accesses at random places.

use super::{Judging, Setup};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use vgasnet_smp::RANKS_MAX;

const POOL: &str = "DRAM cache of each rank [default: VGASNET_POOL_SIZE, else 64M]";

/// Without --page and VGASNET_PAGE_SIZE, pages of 64K and of 4M are measured one after another.
#[derive(Args, Clone)]
#[command(mut_arg("pool", |pool| pool.help(POOL)))]
#[command(mut_arg("page", |page| page.help("Page size [default: VGASNET_PAGE_SIZE, else 64K and 4M]")))]
pub struct SmallOptions {
    #[command(flatten)]
    pub setup: Setup,

    /// Number of ranks, also as -np; a single rank has no neighbour
    #[arg(short = 'n', value_name = "RANKS", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(RANKS_MAX)))]
    pub ranks: u32,

    /// Measure these accesses only; several, as in get,load, are possible
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "get,put,atomic,load,store",
        hide_default_value = true
    )]
    pub only: Vec<Access>,

    /// The neighbour is treated as on another host: the ranks share no memory
    #[arg(long)]
    pub other_host: bool,

    #[command(flatten)]
    pub judging: Judging,
}

/// Without --page and VGASNET_PAGE_SIZE, pages of 4K, 16K, 64K and 4M are measured one after another, and the best is
/// judged.
#[derive(Args, Clone)]
#[command(mut_arg("pool", |pool| pool.help(POOL)))]
#[command(mut_arg("page", |page| page.help("Page size [default: VGASNET_PAGE_SIZE, else 4K, 16K, 64K and 4M]")))]
#[command(mut_arg("check", |check| check.help("Exit with status 1 if a target is missed, or could not be measured")))]
pub struct TableOptions {
    #[command(flatten)]
    pub setup: Setup,

    /// Number of ranks, also as -np; several numbers are measured one after another
    #[arg(short = 'n', value_name = "RANKS", default_value = "1,4", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..=i64::from(RANKS_MAX)))]
    pub ranks: Vec<u32>,

    /// Exit with status 1 if a target is missed
    #[arg(long)]
    pub check: bool,
}

/// A way to access bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Get,
    Put,
    /// A fetch-and-add of an 8-byte number.
    Atomic,
    Load,
    Store,
}

impl Access {
    /// All of them, in display order.
    pub const ALL: [Access; 5] = [Access::Get, Access::Put, Access::Atomic, Access::Load, Access::Store];

    pub fn name(self) -> &'static str {
        match self {
            Access::Get => "get",
            Access::Put => "put",
            Access::Atomic => "atomic",
            Access::Load => "load",
            Access::Store => "store",
        }
    }

    /// Whether the access changes bytes. Measured atomic operations add 0.
    pub fn is_write(self) -> bool {
        matches!(self, Access::Put | Access::Store)
    }

    /// Whether the access is an instruction, on the own segment.
    pub fn is_by_instruction(self) -> bool {
        matches!(self, Access::Load | Access::Store)
    }
}

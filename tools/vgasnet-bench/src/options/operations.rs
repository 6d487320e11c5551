//! Options of `operations`.

use super::Setup;
use clap::Args;
use vgasnet_settings::parse_size;
use vgasnet_smp::RANKS_MAX;

#[derive(Args, Clone)]
pub struct OperationsOptions {
    #[command(flatten)]
    pub setup: Setup,

    /// Number of ranks, also as -np
    #[arg(short = 'n', value_name = "RANKS", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(RANKS_MAX)))]
    pub ranks: u32,

    /// Measure with this number of threads per rank in addition to one thread
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: u32,

    /// Size of the places of each rank: a power of two, at most half of the pool
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = parse_size)]
    pub size: u64,
}

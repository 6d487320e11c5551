//! `operations`: one job.

use super::{run_all, show};
use crate::Stop;
use crate::options::OperationsOptions;
use crate::plan::{Job, Spec, Workload};
use crate::report::{OperationFigures, Output};
use vgasnet_settings::format_size_about;

/// Minimum size of the places: many operations of the longest kind.
const SIZE_BYTES_MIN: u64 = 4 << 10;

pub fn run(options: &OperationsOptions) -> Result<u8, Stop> {
    let output = Output::open(&options.setup.json, &None)?;
    let spec =
        Spec { data_bytes: options.size, count: options.threads, ..Spec::new(Workload::Operations, &options.setup) };
    let job = Job::new(options.ranks, true, true, &options.setup, spec)?;
    let most_bytes = job.config.pool_bytes / 2;
    if !options.size.is_power_of_two() || !(SIZE_BYTES_MIN..=most_bytes).contains(&options.size) {
        return Err(Stop::usage(format!(
            "--size {}: give a power of two from 4K to {}, which is half of the pool, or a larger --pool",
            format_size_about(options.size),
            format_size_about(most_bytes),
        )));
    }
    job.check_space()?;
    let jobs = [job];
    show(&jobs, run_all(&jobs, OperationFigures::new)?, &output, false, |_| Ok(String::new()))
}

//! `gets`: one job for gets of each size, and one for each size of the cache.

use super::{refuse_few_frames, run_job, show};
use crate::gets::by_mpi;
use crate::gets::{Found, Orders, RANKS, data_bytes};
use crate::options::{GetsOptions, Setup, default_unless};
use crate::plan::{Job, Spec, Workload};
use crate::report::{GetsFigures, Output, Run};
use crate::{Stop, plot};
use vgasnet_settings::format_size;

const POOL_BYTES_DEFAULT: u64 = 32 << 20;
const PAGE_BYTES_DEFAULT: u64 = 1 << 20;

/// Two pages of each home are in rank 0's pool, and two are not.
const FRAMES_MIN: u64 = 7;

/// Cache memory for all successive gets of the size measurement, and the minimum.
const CACHE_BYTES_OF_SIZES: u64 = 1 << 30;
const CACHE_BYTES_MIN: u64 = 64 << 10;

pub fn run(options: &GetsOptions) -> Result<u8, Stop> {
    let output = Output::open(&options.setup.json, &options.judging.plot)?;
    if let Some(bytes) = options.cache.iter().find(|bytes| **bytes < CACHE_BYTES_MIN) {
        return Err(Stop::usage(format!("--cache {bytes}: give at least {}", format_size(CACHE_BYTES_MIN))));
    }
    let sizes = job(options, None)?;
    let found: Found = run_job(&sizes)?;
    let parts = [(1, 8), (1, 4), (1, 2), (1, 1), (2, 1)];
    let parts = parts.map(|(of, part)| (found.distinct_bytes * of / part).max(CACHE_BYTES_MIN));
    let caches = if options.cache.is_empty() { parts.to_vec() } else { options.cache.clone() };
    let by_mpi =
        if options.no_mpi { Err("--no-mpi".to_owned()) } else { by_mpi::measure(&options.mpi, &options.setup) };
    let mut runs = vec![Run::new(&sizes, GetsFigures::new(found, Some(by_mpi)))];
    let mut jobs = vec![sizes];
    for cache_bytes in caches {
        let job = job(options, Some(cache_bytes))?;
        let figures = GetsFigures::new(run_job(&job)?, None);
        runs.push(Run::new(&job, figures));
        jobs.push(job);
    }
    show(&jobs, runs, &output, options.judging.check, plot::gets)
}

fn job(options: &GetsOptions, cache_bytes: Option<u64>) -> Result<Job, Stop> {
    let setup = options.setup.clone().with_pool(POOL_BYTES_DEFAULT);
    let setup = Setup { page: setup.page.or(default_unless("VGASNET_PAGE_SIZE", PAGE_BYTES_DEFAULT)), ..setup };
    let mut job = Job::new(RANKS, true, false, &setup, Spec::new(Workload::Gets, &setup))?;
    refuse_few_frames(&job, FRAMES_MIN)?;
    job.spec.data_bytes = data_bytes(job.config.pool_bytes, job.config.page_bytes);
    job.spec.gets = Some(Orders {
        ranges: options.ranges,
        sampling: options.sampling,
        sigma: options.sigma,
        distinct: options.distinct,
        draws: options.draws,
        cache_bytes,
    });
    let bytes = cache_bytes.unwrap_or(CACHE_BYTES_OF_SIZES);
    job.vars.push(("VGASNET_GET_CACHE_SIZE", bytes.to_string()));
    job.check_space()?;
    Ok(job)
}

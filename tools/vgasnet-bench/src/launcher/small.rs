//! `small`: jobs with two page sizes. The larger is compared with the smaller.

use super::{limit_memory, refuse_few_frames, run_job, setups_by_page, show};
use crate::options::SmallOptions;
use crate::plan::{Job, Spec, Workload};
use crate::report::{Output, Run, SmallFigures};
use crate::small::{Found, POOL_BYTES_DEFAULT, POOL_BYTES_MIN, SEGMENT_POOLS};
use crate::{Stop, mapped, plot};

/// Loads and stores need four frames in addition to the accessed half of the pool.
const FRAMES_MIN: u64 = 7;

pub fn run(options: &SmallOptions) -> Result<u8, Stop> {
    let output = Output::open(&options.setup.json, &options.judging.plot)?;
    let setup = options.setup.clone().with_pool(POOL_BYTES_DEFAULT);
    let mut jobs = Vec::new();
    // Small pages first, because large ones are judged against them.
    for setup in setups_by_page(&setup).iter().rev() {
        let mut job = Job::new(options.ranks, true, !options.other_host, setup, Spec::new(Workload::Small, setup))?;
        refuse_few_frames(&job, FRAMES_MIN.max(POOL_BYTES_MIN / job.config.page_bytes))?;
        job.spec.accesses.clone_from(&options.only);
        job.spec.data_bytes = mapped::file_bytes(SEGMENT_POOLS.saturating_mul(job.config.pool_bytes), &job);
        job.check_space()?;
        jobs.push(job);
    }
    let mut runs: Vec<Run<SmallFigures>> = Vec::new();
    let is_compared = jobs.len() > 1;
    for job in &mut jobs {
        let _limit = limit_memory(job, 1);
        let found: Found = run_job(job)?;
        let small_pages = runs.first().map(|run| &run.figures);
        let figures = SmallFigures::new(found, small_pages, !is_compared || small_pages.is_some());
        runs.push(Run::new(job, figures));
    }
    show(&jobs, runs, &output, options.judging.check, plot::small)
}

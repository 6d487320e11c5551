//! `table`: a job for each number of ranks and each page size. The best page size is judged.

use super::{limit_memory, refuse_few_frames, run_job, show};
use crate::options::{Setup, TableOptions, is_page_chosen};
use crate::plan::{Job, Spec, Workload};
use crate::report::{Output, Run, TableFigures};
use crate::small::{POOL_BYTES_DEFAULT, SEGMENT_POOLS};
use crate::table::{Found, PAGES_BYTES};
use crate::{Stop, mapped};

/// Loads and stores need four frames.
const FRAMES_MIN: u64 = 7;

pub fn run(options: &TableOptions) -> Result<u8, Stop> {
    let output = Output::open(&options.setup.json, &None)?;
    let setup = options.setup.clone().with_pool(POOL_BYTES_DEFAULT);
    let pages = if is_page_chosen(&setup) { vec![setup.page] } else { PAGES_BYTES.map(Some).to_vec() };
    let mut jobs = Vec::new();
    for &ranks in &options.ranks {
        for &page in &pages {
            let setup = Setup { page, ..setup.clone() };
            let mut job = Job::new(ranks, true, true, &setup, Spec::new(Workload::Table, &setup))?;
            refuse_few_frames(&job, FRAMES_MIN)?;
            job.spec.data_bytes = mapped::file_bytes(SEGMENT_POOLS.saturating_mul(job.config.pool_bytes), &job);
            job.check_space()?;
            jobs.push(job);
        }
    }
    let mut runs: Vec<Run<TableFigures>> = Vec::new();
    for (at, job) in jobs.iter_mut().enumerate() {
        let _limit = limit_memory(job, job.ranks);
        let found: Found = run_job(job)?;
        let same_ranks = &runs[at / pages.len() * pages.len()..];
        let figures = TableFigures::new(found, same_ranks, same_ranks.len() + 1 == pages.len());
        runs.push(Run::new(job, figures));
    }
    show(&jobs, runs, &output, options.check, |_| Ok(String::new()))
}

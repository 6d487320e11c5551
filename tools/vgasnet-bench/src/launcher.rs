//! Runs jobs one after another and shows their results.

mod files;
mod gasnet_ex;
mod gets;
mod operations;
mod programs;
mod small;
mod table;

use crate::arrays::ARRAYS;
use crate::busy::Busy;
use crate::hit::{self, SEGMENT_POOLS};
use crate::options::{
    Benchmark, BlockOptions, CollectiveOptions, FaultOptions, HitOptions, ListOptions, LoopOptions, MessageOptions,
    PageSizeOptions, ReadOptions, Setup, SharingOptions, StreamOptions, SweepOptions, Switch, TriadOptions,
    is_page_chosen,
};
use crate::plan::{self, BLOCK_BYTES, Job, Mapping, Spec, Workload};
use crate::report::{
    AheadFigures, BlockFigures, CollectiveFigures, Figures, HitReport, ListFigures, MessageFigures, Output,
    PageSizeFigures, ReadFigures, Report, Run, SharingFigures, StreamFigures, SweepFigures, ThreadFigures,
    TriadFigures,
};
use crate::threads::DATA_POOLS;
use crate::{Stop, ahead, blocks, cycle, false_sharing, figures, input, page_size, plot, replacement, sweep};
use nix::sys::memfd::{MFdFlags, memfd_create};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use vgasnet_conduit::launchers::MPI_RANK_VARIABLES;
use vgasnet_launch::Launch;
use vgasnet_measuring::cgroup::MemoryLimit;
use vgasnet_settings::format_size;

const DATA_BYTES_DEFAULT: u64 = 1 << 30;

/// Frames needed by sequential loads and stores with concurrent read-ahead and write-back.
const STREAM_FRAMES_MIN: u64 = 7;

/// Room in a pool in addition to twice the read-ahead.
const POOL_ROOM_BYTES: u64 = 64 << 20;

/// Loads and stores need four frames in addition to the measured half of the pool.
const FAULT_FRAMES_MIN: u64 = 7;

/// Measures. Returns the exit status.
pub fn run(benchmark: &Benchmark) -> Result<u8, Stop> {
    let mut launched = std::iter::once(vgasnet_smp::JOB_VARIABLE).chain(MPI_RANK_VARIABLES);
    if let Some(name) = launched.find(|name| std::env::var_os(name).is_some()) {
        return Err(Stop::usage(format!(
            "this process is a rank that a launcher started ({name} is set); vgasnet-bench starts its own ranks, so run it \
             by itself"
        )));
    }
    match benchmark {
        Benchmark::Sequential(options) => reads(Workload::Sequential, options),
        Benchmark::Random(options) => reads(Workload::Random, options),
        Benchmark::PageSize(options) => page_sizes(options),
        Benchmark::Sweep(options) => sweeps(options),
        Benchmark::FalseSharing(options) => sharing(options),
        Benchmark::Hit(options) => hits(options),
        Benchmark::Triad(options) => triad(options),
        Benchmark::Fault(options) => fault(options),
        Benchmark::Stream(options) => stream(options),
        Benchmark::Ahead(options) => read_ahead(options),
        Benchmark::Messages(options) => messages(options),
        Benchmark::Lists(options) => lists(options),
        Benchmark::Operations(options) => operations::run(options),
        Benchmark::Collectives(options) => collectives(options),
        Benchmark::Loop(options) => cyclic(options),
        Benchmark::Blocks(options) => shuffled_blocks(options),
        Benchmark::Small(options) => small::run(options),
        Benchmark::Table(options) => table::run(options),
        Benchmark::Gets(options) => gets::run(options),
        Benchmark::Lcc(options) => programs::lcc(options),
        Benchmark::BarnesHut(options) => programs::barnes_hut(options),
        Benchmark::Files(options) => files::run(options),
        Benchmark::GasnetEx(options) => gasnet_ex::run(options),
        Benchmark::Figures(options) => figures::run(options),
        Benchmark::Replacement(options) => replacement::run(options),
    }
}

fn reads(workload: Workload, options: &ReadOptions) -> Result<u8, Stop> {
    let output = Output::open(&options.setup.json, &options.modes.plot)?;
    let mut spec = Spec::new(workload, &options.setup);
    spec.data_bytes = options.size.unwrap_or(DATA_BYTES_DEFAULT);
    // The ranks inherit the checksums, so the file stays open until the last job has ended.
    let _sums = match &options.input {
        Some(path) => {
            let path =
                path.canonicalize().map_err(|error| Stop::usage(format!("--input {}: {error}", path.display())))?;
            let (sums, size_bytes) = input::checksums(&path)?;
            spec.data_bytes = size_bytes;
            spec.sums_fd = Some(sums.as_raw_fd());
            spec.input = Some(path);
            Some(sums)
        }
        None => None,
    };
    if spec.data_bytes == 0 {
        return Err(Stop::usage(
            "there is no data to read; give --size at least 1, or --input a file that is not empty",
        ));
    }
    spec.damage_offset = options.damage;
    if options.damage.is_some_and(|offset| offset >= spec.data_bytes) {
        return Err(Stop::usage(format!("--damage is beyond the {} bytes of data", spec.data_bytes)));
    }
    if options.check && options.modes.cooperative != Switch::Both {
        return Err(Stop::usage("--check compares cooperative caching with its absence; give --cooperative both"));
    }
    let jobs = plan::jobs(&options.modes, &options.setup, &spec)?;
    show(&jobs, run_all(&jobs, ReadFigures::new)?, &output, options.check, plot::reads)
}

fn page_sizes(options: &PageSizeOptions) -> Result<u8, Stop> {
    let output = Output::open(&options.setup.json, &options.judging.plot)?;
    let pages = if is_page_chosen(&options.setup) {
        vec![options.setup.page]
    } else {
        page_size::pages_bytes().map(Some).collect()
    };
    let mut jobs = Vec::new();
    for page in pages {
        let setup = Setup { page, ..options.setup.clone() };
        let mut job = Job::new(page_size::RANKS, true, true, &setup, Spec::new(Workload::PageSize, &setup))?;
        let page_bytes = job.config.page_bytes;
        job.spec.data_bytes = whole_pages(Some(options.size.max(2 * page_bytes)), &job)?;
        refuse_few_frames(&job, job.spec.data_bytes / page_bytes)?;
        job.check_space()?;
        jobs.push(job);
    }
    show(&jobs, run_all(&jobs, PageSizeFigures::new)?, &output, options.judging.check, plot::page_sizes)
}

fn sweeps(options: &SweepOptions) -> Result<u8, Stop> {
    let output = Output::open(&options.setup.json, &options.judging.plot)?;
    let counts = sweep::Counting::new(options.setup.stats)?;
    let setup = sweep::defaults(&options.setup);
    let mut jobs = Vec::new();
    for (&ranks, &peer_memory) in
        options.ranks.iter().flat_map(|n| options.peer_memory.values().iter().map(move |on| (n, on)))
    {
        for is_random in [false, true] {
            let spec = Spec { only_random: is_random, ..Spec::new(Workload::Sweep, &setup) };
            let job = Job::new(ranks, true, peer_memory, &setup, spec.clone())?;
            for size in sweep::sizes_bytes(&options.size, job.config.pool_bytes) {
                for cooperative in [true, false] {
                    let mut job = Job::new(ranks, cooperative, peer_memory, &setup, spec.clone())?;
                    job.spec.data_bytes = whole_pages(Some(size), &job)?;
                    job.vars.extend(counts.variable());
                    job.check_space()?;
                    jobs.push(job);
                }
            }
        }
    }
    show(&jobs, run_all(&jobs, SweepFigures::new)?, &output, options.judging.check, plot::sweeps)
}

fn sharing(options: &SharingOptions) -> Result<u8, Stop> {
    let output = Output::open(&options.setup.json, &options.modes.plot)?;
    // The data is rounded up to the one page.
    let spec = Spec { data_bytes: 1, count: options.rounds, ..Spec::new(Workload::FalseSharing, &options.setup) };
    let jobs = plan::jobs(&options.modes, &options.setup, &spec)?;
    if options.check && !jobs.iter().any(false_sharing::is_judged) {
        return Err(Stop::usage("--check is about 4 ranks that do not share memory; give -n 4 --peer-memory off"));
    }
    show(&jobs, run_all(&jobs, SharingFigures::new)?, &output, options.check, plot::sharing)
}

fn hits(options: &HitOptions) -> Result<u8, Stop> {
    let output = Output::open(&options.setup.json, &None)?;
    let mut job = Job::new(options.ranks, true, true, &options.setup, Spec::new(Workload::Hit, &options.setup))?;
    if job.config.pool_bytes < 4 * job.config.page_bytes.max(BLOCK_BYTES) {
        return Err(Stop::usage("--pool is too small for this benchmark; give it at least 16M, and four pages"));
    }
    if !options.only_random && options.ranks < 2 {
        return Err(Stop::usage("-n 1 is for --only-random; the other measurements need two ranks"));
    }
    let all = SEGMENT_POOLS * job.config.pool_bytes;
    job.spec.data_bytes = if options.only_random { hit::data_bytes(job.config.pool_bytes) } else { all };
    (job.spec.only_random, job.spec.count) = (options.only_random, options.threads);
    job.check_space()?;
    let jobs = [job];
    let report = Report::new(&jobs, run_all(&jobs, |_, found| found)?);
    output.show(&HitReport::of(&report), &report.table(), || Ok(String::new()))?;
    Ok(report.status(options.check))
}

fn triad(options: &TriadOptions) -> Result<u8, Stop> {
    let output = Output::open(&options.setup.json, &options.judging.plot)?;
    let job = Job::new(1, true, true, &options.setup, Spec::new(Workload::Triad, &options.setup))?;
    let (page_bytes, pool_bytes) = (job.config.page_bytes, job.config.pool_bytes);
    refuse_few_frames(&job, ARRAYS)?;
    let sizes = match &*options.size {
        [] => vec![pool_bytes / 4 / page_bytes * page_bytes, 4 * pool_bytes],
        sizes => sizes.to_vec(),
    };
    let mut jobs = Vec::new();
    for size in sizes {
        let data_bytes = size.checked_next_multiple_of(page_bytes).and_then(|size| size.checked_mul(ARRAYS));
        let data_bytes = data_bytes.filter(|data_bytes| (1..=i64::MAX as u64 / 2).contains(data_bytes));
        let data_bytes = data_bytes.ok_or_else(|| {
            Stop::usage(format!("--size {size}: three such arrays are not possible; give 1 to {}", i64::MAX / 8))
        })?;
        let job = Job { spec: Spec { data_bytes, ..job.spec.clone() }, ..job.clone() };
        job.check_space()?;
        jobs.push(job);
    }
    let mut runs = Vec::new();
    for job in &mut jobs {
        let limit = if job.spec.data_bytes > pool_bytes { limit_memory(job, 1) } else { None };
        let found = run_job(job)?;
        let peak_bytes = limit.as_ref().and_then(MemoryLimit::peak_bytes);
        runs.push(Run::new(job, TriadFigures::new(job, found, peak_bytes)));
    }
    show(&jobs, runs, &output, options.judging.check, plot::triads)
}

/// Creates a cgroup for the processes that map a file, if this machine allows it.
fn limit_memory(job: &mut Job, processes: u32) -> Option<MemoryLimit> {
    let limit = MemoryLimit::new(u64::from(processes) * job.rank_memory_bytes());
    let dir = job.config.storage_dir.clone();
    job.spec.mapping = match &limit {
        Ok(limit) => Ok(Mapping { dir, cgroup: limit.path().to_owned() }),
        Err(reason) => Err(reason.clone()),
    };
    limit.ok()
}

fn fault(options: &FaultOptions) -> Result<u8, Stop> {
    if !options.threads.is_empty() {
        return fault_threads(options);
    }
    let output = Output::open(&options.setup.json, &options.judging.plot)?;
    let spec = Spec { count: options.faults, ..Spec::new(Workload::Fault, &options.setup) };
    let mut jobs = Vec::new();
    for setup in setups_by_page(&options.setup) {
        for &peer_memory in options.peer_memory.values() {
            let mut job = Job::new(2, true, peer_memory, &setup, spec.clone())?;
            refuse_few_frames(&job, FAULT_FRAMES_MIN)?;
            job.spec.data_bytes = u64::from(options.faults) * job.config.page_bytes;
            job.check_space()?;
            jobs.push(job);
        }
    }
    show(&jobs, run_all(&jobs, |_, found| found)?, &output, options.judging.check, plot::faults)
}

/// Loads by several threads.
fn fault_threads(options: &FaultOptions) -> Result<u8, Stop> {
    let output = Output::open(&options.setup.json, &options.judging.plot)?;
    let spec = Spec { threads: options.threads.clone(), ..Spec::new(Workload::FaultThreads, &options.setup) };
    let threads_max = options.threads.iter().copied().max().unwrap_or(1);
    let mut jobs = Vec::new();
    for setup in setups_by_page(&options.setup) {
        let mut job = Job::new(1, true, true, &setup, spec.clone())?;
        // With two frames each, threads are guaranteed to progress.
        refuse_few_frames(&job, (2 * u64::from(threads_max)).max(FAULT_FRAMES_MIN))?;
        job.spec.data_bytes = DATA_POOLS * job.config.pool_bytes;
        job.check_space()?;
        jobs.push(job);
    }
    show(&jobs, run_all(&jobs, ThreadFigures::new)?, &output, options.judging.check, plot::threads)
}

/// A setup for each page size: the chosen one, or two.
fn setups_by_page(setup: &Setup) -> Vec<Setup> {
    const PAGES_BYTES: [u64; 2] = [4 << 20, 64 << 10];
    let pages = if is_page_chosen(setup) { vec![setup.page] } else { PAGES_BYTES.map(Some).to_vec() };
    pages.into_iter().map(|page| Setup { page, ..setup.clone() }).collect()
}

fn stream(options: &StreamOptions) -> Result<u8, Stop> {
    let output = Output::open(&options.setup.json, &None)?;
    let mut jobs = Vec::new();
    for setup in setups_by_page(&options.setup) {
        let mut job = Job::new(1, true, true, &setup, Spec::new(Workload::Stream, &setup))?;
        refuse_few_frames(&job, STREAM_FRAMES_MIN)?;
        job.spec.data_bytes = whole_pages(options.size, &job)?;
        job.check_space()?;
        jobs.push(job);
    }
    show(&jobs, run_all(&jobs, StreamFigures::new)?, &output, options.check, |_| Ok(String::new()))
}

fn read_ahead(options: &StreamOptions) -> Result<u8, Stop> {
    let output = Output::open(&options.setup.json, &None)?;
    let mut jobs = Vec::new();
    for mut setup in setups_by_page(&options.setup) {
        // A hint fetches at most half a pool.
        let size = options.size.unwrap_or(DATA_BYTES_DEFAULT);
        setup.pool = setup.pool.or(size.checked_mul(2).and_then(|pool| pool.checked_add(POOL_ROOM_BYTES)));
        let mut job = Job::new(1, true, true, &setup, Spec::new(Workload::Ahead, &setup))?;
        let unrelated_bytes = ahead::unrelated_bytes(job.config.page_bytes);
        job.spec.data_bytes = whole_pages(Some(size), &job)?.saturating_add(unrelated_bytes);
        job.check_space()?;
        jobs.push(job);
    }
    show(&jobs, run_all(&jobs, AheadFigures::new)?, &output, options.check, |_| Ok(String::new()))
}

/// The size rounded up to whole pages of the job.
fn whole_pages(size: Option<u64>, job: &Job) -> Result<u64, Stop> {
    let size = size.unwrap_or(DATA_BYTES_DEFAULT);
    let whole =
        size.checked_next_multiple_of(job.config.page_bytes).filter(|size| (1..=i64::MAX as u64 / 4).contains(size));
    whole.ok_or_else(|| Stop::usage(format!("--size {size} is not possible; give 1 to {}", i64::MAX / 8)))
}

fn messages(options: &MessageOptions) -> Result<u8, Stop> {
    let output = Output::open(&options.setup.json, &options.judging.plot)?;
    let spec = Spec { data_bytes: 1, count: options.messages, ..Spec::new(Workload::Messages, &options.setup) };
    let jobs = [Job::new(2, true, true, &options.setup, spec)?];
    jobs[0].check_space()?;
    show(&jobs, run_all(&jobs, MessageFigures::new)?, &output, options.judging.check, plot::messages)
}

fn lists(options: &ListOptions) -> Result<u8, Stop> {
    let output = Output::open(&options.setup.json, &None)?;
    let mut job = Job::new(2, true, true, &options.setup, Spec::new(Workload::Lists, &options.setup))?;
    job.spec.data_bytes = job.config.pool_bytes / 2;
    job.check_space()?;
    let jobs = [job];
    show(&jobs, run_all(&jobs, ListFigures::new)?, &output, options.check, |_| Ok(String::new()))
}

fn collectives(options: &CollectiveOptions) -> Result<u8, Stop> {
    let output = Output::open(&options.setup.json, &options.judging.plot)?;
    let least_bytes = u64::from(options.ranks);
    if options.size < least_bytes {
        return Err(Stop::usage(format!("--size {}: give at least a byte a rank, {least_bytes}", options.size)));
    }
    let spec = Spec { data_bytes: options.size, ..Spec::new(Workload::Collectives, &options.setup) };
    let jobs = options.peer_memory.values().iter();
    let jobs = jobs.map(|&peer_memory| Job::new(options.ranks, true, peer_memory, &options.setup, spec.clone()));
    let jobs = jobs.collect::<Result<Vec<_>, _>>()?;
    jobs.iter().try_for_each(Job::check_space)?;
    show(&jobs, run_all(&jobs, CollectiveFigures::new)?, &output, options.judging.check, plot::collectives)
}

fn cyclic(options: &LoopOptions) -> Result<u8, Stop> {
    const IDLE_POOLS: &str = "VGASNET_IDLE_POOLS";
    const SIZES: [(u64, u64); 6] = [
        (8 << 20, 64 << 10),
        (32 << 20, 64 << 10),
        (128 << 20, 64 << 10),
        (64 << 20, 4 << 20),
        (128 << 20, 4 << 20),
        (256 << 20, 4 << 20),
    ];
    let output = Output::open(&options.setup.json, &None)?;
    let is_chosen = options.setup.pool.is_some() || options.setup.page.is_some();
    let chosen = SIZES.map(|(pool, page)| Setup { pool: Some(pool), page: Some(page), ..options.setup.clone() });
    let setups = if is_chosen { vec![options.setup.clone()] } else { chosen.into() };
    let mut jobs = Vec::new();
    for setup in setups {
        let mut job = Job::new(1 + options.idle, true, true, &setup, Spec::new(Workload::Loop, &setup))?;
        refuse_few_frames(&job, cycle::FRAMES_MIN)?;
        if options.idle > 0 && std::env::var_os(IDLE_POOLS).is_none() {
            job.vars.push((IDLE_POOLS, "1".into()));
        }
        job.spec.data_bytes = cycle::SEGMENT_POOLS * job.config.pool_bytes;
        job.check_space()?;
        jobs.push(job);
    }
    let report = Report::new(&jobs, run_all(&jobs, |_, found: cycle::Found| found)?);
    output.show(&report, &report.table(), || Ok(String::new()))?;
    Ok(report.status(options.check))
}

fn shuffled_blocks(options: &BlockOptions) -> Result<u8, Stop> {
    const PAGE_BYTES: u64 = 64 << 10;
    let output = Output::open(&options.setup.json, &None)?;
    let mut jobs = Vec::new();
    for pool in &options.pools {
        let page = options.setup.page.or(Some(PAGE_BYTES));
        let setup = Setup { pool: Some(*pool), page, ..options.setup.clone() };
        let mut job = Job::new(1, true, true, &setup, Spec::new(Workload::Blocks, &setup))?;
        refuse_few_frames(&job, cycle::FRAMES_MIN)?;
        job.spec.data_bytes = options.size.max(1).next_multiple_of(blocks::UNIT_BYTES.max(job.config.page_bytes));
        job.check_space()?;
        jobs.push(job);
    }
    let (mut runs, mut smaller): (Vec<Run<BlockFigures>>, _) = (Vec::new(), None);
    for job in &mut jobs {
        let _limit = limit_memory(job, 1);
        let run = Run::new(job, BlockFigures::new(job, run_job(job)?, smaller));
        smaller = Some(run.figures.seconds);
        runs.push(run);
    }
    let report = Report::new(&jobs, runs);
    output.show(&report, &report.table(), || Ok(String::new()))?;
    Ok(report.status(options.check))
}

/// Loads and stores need one frame more than the measured `frames`.
fn refuse_few_frames(job: &Job, frames: u64) -> Result<(), Stop> {
    let (page_bytes, pool_bytes) = (job.config.page_bytes, job.config.pool_bytes);
    let pool_bytes_min = (frames + 1) * page_bytes;
    if pool_bytes >= pool_bytes_min {
        return Ok(());
    }
    Err(Stop::usage(format!(
        "--pool {} is too small for this benchmark with pages of {}; give it at least {}, or a smaller --page",
        format_size(pool_bytes),
        format_size(page_bytes),
        format_size(pool_bytes_min),
    )))
}

/// Shows the results. Returns the exit status.
fn show<F: Figures>(
    jobs: &[Job],
    runs: Vec<Run<F>>,
    output: &Output,
    check: bool,
    plot: fn(&[Run<F>]) -> Result<String, String>,
) -> Result<u8, Stop> {
    let report = Report::new(jobs, runs);
    output.show(&report, &report.table(), || plot(&report.runs))?;
    Ok(report.status(check))
}

fn run_all<T: DeserializeOwned, F: Figures>(jobs: &[Job], figures: fn(&Job, T) -> F) -> Result<Vec<Run<F>>, Stop> {
    jobs.iter().map(|job| Ok(Run::new(job, figures(job, run_job(job)?)))).collect()
}

/// Runs a job to its end. Returns rank 0's report. A failing job prints the reason itself.
fn run_job<T: DeserializeOwned>(job: &Job) -> Result<T, Stop> {
    // Without close-on-exec, so the ranks inherit the file.
    let memory = memfd_create("vgasnet-bench-report", MFdFlags::empty());
    let mut memory = File::from(memory.map_err(|error| Stop::failure(format!("memory for a report: {error}")))?);
    let spec = Spec { report: format!("/proc/self/fd/{}", memory.as_raw_fd()).into(), ..job.spec.clone() };
    let spec = serde_json::to_string(&spec).map_err(|error| Stop::failure(format!("what a rank is told: {error}")))?;
    let program =
        std::env::current_exe().map_err(|error| Stop::failure(format!("this program's own path: {error}")))?;
    let launch = Launch::new(job.ranks, program).arg("rank").arg(spec);
    let launch = launch.env("VGASNET_MAX_SEGSIZE", format_size(job.segment_bytes_max()));
    let _busy = Busy::start(job.busy);
    let outcome = job.vars.iter().fold(launch, |launch, (name, value)| launch.env(name, value)).run();
    if outcome.status != 0 {
        return Err(Stop { line: String::new(), status: u8::try_from(outcome.status).unwrap_or(1) });
    }
    let mut text = String::new();
    let read = memory.rewind().and_then(|()| memory.read_to_string(&mut text));
    let report = read.map_err(serde_json::Error::io).and_then(|_| serde_json::from_str(&text));
    report.map_err(|error| Stop::failure(format!("the report of rank 0: {error}")))
}

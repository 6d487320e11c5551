//! Runs jobs, one after the other, and shows what came of them.

use crate::arrays::ARRAYS;
use crate::cgroup::MemoryLimit;
use crate::hit::SEGMENT_POOLS;
use crate::options::{FaultOptions, HitOptions, MessageOptions, ReadOptions, Setup, SharingOptions, TriadOptions};
use crate::plan::{self, BLOCK_BYTES, Job, Mapping, Spec, Workload};
use crate::report::fault::FaultRun;
use crate::report::messages::MessagesRun;
use crate::report::triad::TriadRun;
use crate::report::{HitReport, Judged, Output, ReadRun, Report, SharingRun, pair_cooperative};
use crate::{Stop, input, plot};
use nix::sys::memfd::{MFdFlags, memfd_create};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use std::path::Path;
use vgasnet::config::format_size;
use vgasnet_launch::Launch;

const DATA_BYTES_DEFAULT: u64 = 1 << 30;

/// Half of a pool is measured at a time, by loads and stores, which need four frames.
const FAULT_FRAMES_MIN: u64 = 7;

/// Environment variables that launchers set for the processes that they start.
const LAUNCHED: [&str; 4] = [vgasnet_smp::JOB_VARIABLE, "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"];

/// `sequential` and `random`.
pub fn reads(workload: Workload, options: &ReadOptions) -> Result<u8, Stop> {
    refuse_inside_a_job()?;
    let output = Output::open(&options.setup.json, &options.modes.plot)?;
    let mut spec = spec(workload, &options.setup);
    spec.data_bytes = options.size.unwrap_or(DATA_BYTES_DEFAULT);
    let sums = match &options.input {
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
    let jobs = plan::jobs(&options.modes, &options.setup, &spec)?;
    let mut runs = Vec::new();
    for job in &jobs {
        runs.push(ReadRun::new(job, run(job)?));
    }
    drop(sums);
    let cooperative = pair_cooperative(&runs);
    let report = Report { benchmark: workload.name(), storage_dir: &jobs[0].config.storage_dir, runs, cooperative };
    output.show(&report, &report.table())?;
    draw(&options.modes.plot, || plot::reads(&report.runs))?;
    Ok(0)
}

/// `false-sharing`.
pub fn false_sharing(options: &SharingOptions) -> Result<u8, Stop> {
    refuse_inside_a_job()?;
    let output = Output::open(&options.setup.json, &options.modes.plot)?;
    let mut spec = spec(Workload::FalseSharing, &options.setup);
    // Rounded up to the one page.
    spec.data_bytes = 1;
    spec.sharing_rounds = options.rounds;
    let jobs = plan::jobs(&options.modes, &options.setup, &spec)?;
    let mut runs = Vec::new();
    for job in &jobs {
        runs.push(SharingRun::new(job, run(job)?));
    }
    let cooperative = pair_cooperative(&runs);
    let benchmark = Workload::FalseSharing.name();
    let report = Report { benchmark, storage_dir: &jobs[0].config.storage_dir, runs, cooperative };
    output.show(&report, &report.table())?;
    draw(&options.modes.plot, || plot::sharing(&report.runs))?;
    Ok(0)
}

/// `hit`.
pub fn hit(options: &HitOptions) -> Result<u8, Stop> {
    refuse_inside_a_job()?;
    let output = Output::open(&options.setup.json, &None)?;
    let mut job = Job::new(options.ranks, true, true, &options.setup, spec(Workload::Hit, &options.setup))?;
    if job.config.pool_bytes < 2 * BLOCK_BYTES {
        return Err(Stop::usage("--pool is too small for this benchmark; give it at least 8M"));
    }
    job.spec.data_bytes = SEGMENT_POOLS * job.config.pool_bytes;
    job.check_space()?;
    let report = HitReport::new(&job, run(&job)?);
    output.show(&report, &report.table())?;
    Ok(u8::from(options.check && !report.reached_all))
}

/// `triad`.
pub fn triad(options: &TriadOptions) -> Result<u8, Stop> {
    refuse_inside_a_job()?;
    let output = Output::open(&options.setup.json, &options.plot)?;
    let job = Job::new(1, true, true, &options.setup, spec(Workload::Triad, &options.setup))?;
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
        let limit = if job.spec.data_bytes > pool_bytes { limit_memory(job) } else { None };
        let found = run(job)?;
        let peak_bytes = limit.as_ref().and_then(MemoryLimit::peak_bytes);
        drop(limit);
        runs.push(TriadRun::new(job, found, peak_bytes));
    }
    let reached_all = runs.iter().all(|run| run.reached_all);
    let report = Judged { benchmark: "triad", storage_dir: &job.config.storage_dir, runs, reached_all };
    output.show(&report, &report.table())?;
    draw(&options.plot, || plot::triads(&report.runs))?;
    Ok(u8::from(options.check && !reached_all))
}

/// Makes a cgroup for the process that a job's triad is compared with, as far as this machine allows that.
fn limit_memory(job: &mut Job) -> Option<MemoryLimit> {
    let limit = MemoryLimit::new(job.rank_memory_bytes());
    let dir = job.config.storage_dir.clone();
    job.spec.mapping = match &limit {
        Ok(limit) => Ok(Mapping { dir, cgroup: limit.path().to_owned() }),
        Err(reason) => Err(reason.clone()),
    };
    limit.ok()
}

/// `fault`.
pub fn fault(options: &FaultOptions) -> Result<u8, Stop> {
    const PAGES_BYTES: [u64; 2] = [4 << 20, 64 << 10];
    refuse_inside_a_job()?;
    let output = Output::open(&options.setup.json, &options.plot)?;
    let spec = Spec { faults: options.faults, ..spec(Workload::Fault, &options.setup) };
    let is_chosen = options.setup.page.is_some() || std::env::var_os("VGASNET_PAGE_SIZE").is_some();
    let pages = if is_chosen { vec![options.setup.page] } else { PAGES_BYTES.map(Some).to_vec() };
    let mut jobs = Vec::new();
    for page in pages {
        let setup = Setup { page, ..options.setup.clone() };
        for &peer_memory in options.peer_memory.values() {
            let mut job = Job::new(2, true, peer_memory, &setup, spec.clone())?;
            refuse_few_frames(&job, FAULT_FRAMES_MIN)?;
            job.spec.data_bytes = u64::from(options.faults) * job.config.page_bytes;
            job.check_space()?;
            jobs.push(job);
        }
    }
    let mut runs = Vec::new();
    for job in &jobs {
        runs.push(FaultRun::new(job, run(job)?));
    }
    let reached_all = runs.iter().all(|run| run.reached_all);
    let report = Judged { benchmark: "fault", storage_dir: &jobs[0].config.storage_dir, runs, reached_all };
    output.show(&report, &report.table())?;
    draw(&options.plot, || plot::faults(&report.runs))?;
    Ok(u8::from(options.check && !reached_all))
}

/// `messages`.
pub fn messages(options: &MessageOptions) -> Result<u8, Stop> {
    refuse_inside_a_job()?;
    let output = Output::open(&options.setup.json, &options.plot)?;
    let mut spec = spec(Workload::Messages, &options.setup);
    (spec.data_bytes, spec.messages) = (1, options.messages);
    let job = Job::new(2, true, true, &options.setup, spec)?;
    job.check_space()?;
    let runs = vec![MessagesRun::new(&job, run(&job)?)];
    let reached_all = runs.iter().all(|run| run.reached_all);
    let report = Judged { benchmark: "messages", storage_dir: &job.config.storage_dir, runs, reached_all };
    output.show(&report, &report.table())?;
    draw(&options.plot, || plot::messages(&report.runs))?;
    Ok(u8::from(options.check && !reached_all))
}

/// Loads and stores need some frames; so many more are for what is measured.
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

fn spec(workload: Workload, setup: &Setup) -> Spec {
    Spec {
        workload,
        data_bytes: 0,
        sharing_rounds: 0,
        faults: 0,
        messages: 0,
        repeat: setup.repeat,
        seed: setup.seed,
        input: None,
        damage_offset: None,
        mapping: Err("this benchmark compares with no mapped file".into()),
        report_fd: -1,
        sums_fd: None,
    }
}

fn refuse_inside_a_job() -> Result<(), Stop> {
    match LAUNCHED.iter().find(|name| std::env::var_os(name).is_some()) {
        Some(name) => Err(Stop::usage(format!(
            "this process is a rank that a launcher started ({name} is set); vgasnet-bench starts its own ranks, so run it \
             by itself"
        ))),
        None => Ok(()),
    }
}

/// Runs a job to its end; what its rank 0 reports. A job that fails says why itself.
fn run<T: DeserializeOwned>(job: &Job) -> Result<T, Stop> {
    // Without close-on-exec: the ranks are to have it.
    let memory = memfd_create("vgasnet-bench-report", MFdFlags::empty());
    let mut memory = File::from(memory.map_err(|error| Stop::failure(format!("memory for a report: {error}")))?);
    let spec = Spec { report_fd: memory.as_raw_fd(), ..job.spec.clone() };
    let spec = serde_json::to_string(&spec).map_err(|error| Stop::failure(format!("what a rank is told: {error}")))?;
    let program =
        std::env::current_exe().map_err(|error| Stop::failure(format!("this program's own path: {error}")))?;
    let mut launch = Launch::new(job.ranks, program).arg("rank").arg(spec);
    for (name, value) in job.env() {
        launch = launch.env(name, value);
    }
    let outcome = launch.run();
    if outcome.status != 0 {
        return Err(Stop { line: String::new(), status: u8::try_from(outcome.status).unwrap_or(1) });
    }
    let mut text = String::new();
    let read = memory.rewind().and_then(|()| memory.read_to_string(&mut text));
    read.map_err(|error| Stop::failure(format!("the report of rank 0: {error}")))?;
    serde_json::from_str(&text).map_err(|error| Stop::failure(format!("the report of rank 0: {error}")))
}

fn draw(path: &Option<std::path::PathBuf>, image: impl FnOnce() -> Result<String, String>) -> Result<(), Stop> {
    let Some(path) = path else { return Ok(()) };
    let path: &Path = path;
    let failed = |error: &dyn std::fmt::Display| Stop::failure(format!("--plot {}: {error}", path.display()));
    let image = image().map_err(|error| failed(&error))?;
    std::fs::write(path, image).map_err(|error| failed(&error))
}

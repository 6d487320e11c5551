//! Runs jobs, one after the other, and shows what came of them.

use crate::hit::SEGMENT_POOLS;
use crate::options::{HitOptions, ReadOptions, Setup, SharingOptions};
use crate::plan::{self, BLOCK_BYTES, Job, Spec, Workload};
use crate::report::{HitReport, Output, ReadRun, Report, SharingRun, pair_cooperative};
use crate::{Stop, input, plot};
use nix::sys::memfd::{MFdFlags, memfd_create};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use std::path::Path;
use vgasnet_smp::launch::Launch;

const DATA_BYTES_DEFAULT: u64 = 1 << 30;

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

fn spec(workload: Workload, setup: &Setup) -> Spec {
    Spec {
        workload,
        data_bytes: 0,
        sharing_rounds: 0,
        repeat: setup.repeat,
        seed: setup.seed,
        input: None,
        damage_offset: None,
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

//! Runs jobs one after another.

use crate::Stop;
use crate::benchmark::Benchmark;
use crate::busy::Busy;
use crate::plan::{Job, Mapping, Spec};
use crate::report::{Figures, Report, Run};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use vgasnet_conduit::launchers::MPI_RANK_VARIABLES;
use vgasnet_launch::Launch;
use vgasnet_measuring::cgroup::MemoryLimit;
use vgasnet_settings::format_size;

/// The variable by which a launcher has made this process a rank.
pub fn launcher_variable() -> Option<&'static str> {
    let mut all = std::iter::once(vgasnet_smp::JOB_VARIABLE).chain(MPI_RANK_VARIABLES);
    all.find(|name| std::env::var_os(name).is_some())
}

pub fn refuse_ranks() -> Result<(), Stop> {
    launcher_variable().map_or(Ok(()), |name| {
        Err(Stop::usage(format!(
            "this process is a rank that a launcher started ({name} is set); vgasnet-bench starts its own ranks, so run it \
             by itself"
        )))
    })
}

/// Runs all jobs of a benchmark.
pub fn run_jobs<B: Benchmark>(options: &B) -> Result<Report, Stop> {
    let mut jobs = options.plan()?;
    jobs.iter().try_for_each(Job::check_space)?;
    let mut report = Report::of_jobs(options, &jobs);
    for job in &mut jobs {
        let limit = limit_memory(job);
        let figures = run_job(job)?;
        let peak_bytes = limit.and_then(|limit| limit.peak_bytes());
        let figures = options.compare(job, figures, &report.runs, peak_bytes);
        drop(job.file.take());
        report.runs.push(Run { setting: job.setting(options.mode()), figures });
    }
    Ok(report)
}

/// Creates a cgroup for the processes of a job that map a file, if this machine allows it.
fn limit_memory(job: &mut Job) -> Option<MemoryLimit> {
    if job.mapped_processes == 0 {
        return None;
    }
    let limit = MemoryLimit::new(u64::from(job.mapped_processes) * job.rank_memory_bytes());
    let dir = job.config.storage_dir.clone();
    job.spec.mapping = match &limit {
        Ok(limit) => Ok(Mapping { dir, cgroup: limit.path().to_owned() }),
        Err(reason) => Err(reason.clone()),
    };
    limit.ok()
}

/// Runs a job to its end. Returns rank 0's figures. A failing job prints the reason itself.
pub fn run_job(job: &Job) -> Result<Figures, Stop> {
    // Without close-on-exec, so the ranks inherit the file.
    let memory = memfd_create("vgasnet-bench-report", MFdFlags::empty());
    let mut memory = File::from(memory.map_err(|error| Stop::failure(format!("memory for a report: {error}")))?);
    let spec = Spec { report: format!("/proc/self/fd/{}", memory.as_raw_fd()).into(), ..job.spec.clone() };
    let program =
        std::env::current_exe().map_err(|error| Stop::failure(format!("this program's own path: {error}")))?;
    let launch = Launch::new(job.ranks, program).arg("rank").arg(spec.to_text().map_err(Stop::failure)?);
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

//! Memory, processors and limits of this process.

use crate::report::{Report, Section};
use nix::sys::resource::{Resource, getrlimit};
use std::fs;
use vgasnet_settings::{Machine, format_size_about};

/// Docker's default size of `/dev/shm`, used by MPI for shared memory.
const SHM_SMALL_BYTES: u64 = 64 << 20;

/// The processors available to this process.
pub fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}

/// Adds the machine's resources and the limits.
pub fn observe(report: &mut Report) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    report.say(Section::Machine, "linux", release.trim());
    report.number(Section::Machine, "processors", u64::from(processors()), "");
    report.bytes(Section::Machine, "memory_available_bytes", Machine::observe().memory_available_bytes);
    if let Some(bytes) = number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size") {
        report.bytes(Section::Machine, "large_page_bytes", bytes);
    }
    if let Some(mode) = chosen("/sys/kernel/mm/transparent_hugepage/shmem_enabled") {
        report.say(Section::Machine, "large_pages_in_shared_memory", mode);
    }
    report.limit(Section::Limits, "locked_memory_bytes", limit(Resource::RLIMIT_MEMLOCK), format_size_about);
    report.limit(Section::Limits, "address_space_bytes", limit(Resource::RLIMIT_AS), format_size_about);
    report.limit(Section::Limits, "file_size_bytes", limit(Resource::RLIMIT_FSIZE), format_size_about);
    report.limit(Section::Limits, "descriptors", limit(Resource::RLIMIT_NOFILE), |count| count.to_string());
    report.limit(Section::Limits, "processes_and_threads", limit(Resource::RLIMIT_NPROC), |count| count.to_string());
    if let Some(count) = number("/proc/sys/vm/max_map_count") {
        report.number(Section::Limits, "mappings", count, "");
    }
    shared_memory(report);
}

/// The soft limit on a resource, if there is one.
pub fn limit(resource: Resource) -> Option<u64> {
    getrlimit(resource).ok().map(|(soft, _)| soft).filter(|soft| *soft != libc::RLIM_INFINITY)
}

fn shared_memory(report: &mut Report) {
    match nix::sys::statvfs::statvfs("/dev/shm") {
        Ok(stat) => {
            let free_bytes = stat.blocks_available() * stat.fragment_size();
            report.bytes(Section::Limits, "dev_shm_bytes", free_bytes);
            if cfg!(feature = "mpi") && free_bytes <= SHM_SMALL_BYTES {
                report.advise(format!(
                    "/dev/shm has {} free, and MPI may need more; in Docker: --shm-size=1g",
                    format_size_about(free_bytes)
                ));
            }
        }
        Err(error) => report.say(Section::Limits, "dev_shm", format!("not there: {error}")),
    }
}

/// The bracketed word in a file like `always [madvise] never`.
fn chosen(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

/// The number in a file.
pub fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

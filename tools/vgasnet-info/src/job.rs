//! What each rank of a job on this machine would get.

use crate::report::{Report, Section};
use nix::sys::resource::{Resource, getrlimit};
use std::path::PathBuf;
use vgasnet::memory::{MappingRoom, Shape};
use vgasnet::settings::{Config, Machine, environment, format_size_about};
use vgasnet::storage;

/// Descriptors that a rank has open whatever the job.
const DESCRIPTORS: u64 = 64;

/// More of them, for each rank of the host.
const DESCRIPTORS_OF_RANK: u64 = 2;

/// Adds what a job of so many ranks on this host would get. Without a configuration that makes sense, there is none.
pub fn observe(report: &mut Report, ranks: u32, dir: Option<PathBuf>) -> Option<Config> {
    report.number(Section::Job, "ranks", u64::from(ranks), "");
    let config = match Config::from_env(environment(), ranks, &Machine::observe()) {
        Ok(config) => config,
        Err(error) => {
            report.refuse(error.to_string());
            return None;
        }
    };
    let config = Config { storage_dir: dir.unwrap_or(config.storage_dir), ..config };
    for name in &config.unknown {
        report.advise(format!("{name} is set, and means nothing to vgasnet"));
    }
    report.bytes(Section::Job, "vgasnet_page_bytes", config.page_bytes);
    report.bytes(Section::Job, "pool_bytes", config.pool_bytes);
    report.bytes(Section::Job, "get_cache_bytes", config.get_cache_bytes);
    if config.pool_bytes * u64::from(ranks) > Machine::observe().memory_available_bytes {
        report.refuse(format!("{ranks} pools of a page each need more memory than there is; start fewer ranks here"));
    }
    match storage::free_bytes(&config.storage_dir) {
        Ok(free_bytes) => segments(report, &config, free_bytes, ranks),
        Err(error) => report.refuse(error.to_string()),
    }
    locked_memory(report, &config);
    descriptors(report, ranks);
    Some(config)
}

fn segments(report: &mut Report, config: &Config, free_bytes: u64, ranks: u32) {
    let largest_bytes = config.max_segment_bytes(free_bytes, ranks);
    report.bytes(Section::Job, "segment_offered_bytes", config.offered_segment_bytes(free_bytes, ranks));
    report.bytes(Section::Job, "segment_largest_bytes", largest_bytes);
    if largest_bytes == 0 {
        let dir = config.storage_dir.display();
        report.refuse(format!(
            "{dir} has no space for a page of each rank; free some, or set VGASNET_STORAGE_DIR to another disk"
        ));
        return;
    }
    let pages = u32::try_from(largest_bytes / config.page_bytes).unwrap_or(u32::MAX);
    let frames = u32::try_from(config.pool_bytes / config.page_bytes).unwrap_or(u32::MAX);
    let room = MappingRoom::observe(config.peer_memory && ranks > 1, 0);
    if let Some(limit) = room.limit_for(Shape { pages, frames }) {
        report.advise(format!(
            "a pool has {frames} pages, more than loads and stores reach at a time; sysctl -w vm.max_map_count={limit}, or a larger \
             VGASNET_PAGE_SIZE"
        ));
    }
}

fn locked_memory(report: &mut Report, config: &Config) {
    if let Some(limit_bytes) = storage::memlock_bytes().filter(|limit_bytes| *limit_bytes < config.pool_bytes) {
        report.advise(format!(
            "a pool of {} exceeds the limit on locked memory, {}: what exceeds it takes more CPU for each read and write; ulimit -l \
             unlimited, or memlock in /etc/security/limits.conf",
            format_size_about(config.pool_bytes),
            format_size_about(limit_bytes),
        ));
    }
}

/// The launcher and the ranks raise the limit as far as they may.
fn descriptors(report: &mut Report, ranks: u32) {
    let needed = DESCRIPTORS + DESCRIPTORS_OF_RANK * u64::from(ranks);
    let hard = getrlimit(Resource::RLIMIT_NOFILE).map_or(libc::RLIM_INFINITY, |(_, hard)| hard);
    if hard < needed {
        report.refuse(format!(
            "a rank of {ranks} has about {needed} descriptors open, of which {hard} are allowed; ulimit -Hn {needed}, or nofile in \
             /etc/security/limits.conf"
        ));
    }
}

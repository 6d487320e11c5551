//! The resources of each rank in a job on this machine.

use crate::machine::limit;
use crate::report::{Report, Section};
use nix::sys::resource::{Resource, getrlimit};
use std::path::PathBuf;
use vgasnet_memory::{FRAMES_MIN, MappingRoom, Shape};
use vgasnet_settings::{Config, Machine, environment, format_size_about};
use vgasnet_storage as storage;

/// Descriptors open in every rank.
const DESCRIPTORS: u64 = 64;

/// More descriptors, for each rank on the host.
const DESCRIPTORS_OF_RANK: u64 = 2;

/// Processes of every job: the launcher.
const THREADS: u64 = 1;

/// Threads of each rank besides the program's own: the server of other ranks, and the minimum for storage.
const THREADS_OF_RANK: u64 = 3;

/// Adds the resources of a job with `ranks` ranks on this host. `None` if the configuration is invalid.
pub fn observe(report: &mut Report, ranks: u32, dir: Option<PathBuf>) -> Option<Config> {
    report.number(Section::Job, "ranks", u64::from(ranks), "");
    let machine = Machine::observe();
    let config = match Config::from_env(environment(), ranks, &machine) {
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
    if config.pool_bytes * u64::from(ranks) > machine.memory_available_bytes {
        report.refuse(format!("{ranks} pools of a page each need more memory than there is; start fewer ranks here"));
    }
    match storage::free_bytes(&config.storage_dir) {
        Ok(free_bytes) => segments(report, &config, &machine, free_bytes, ranks),
        Err(error) => report.refuse(error.to_string()),
    }
    locked_memory(report, &config);
    address_space(report, &config, ranks);
    descriptors(report, ranks);
    // The limit does not apply to root.
    threads(report, ranks, limit(Resource::RLIMIT_NPROC).filter(|_| !nix::unistd::geteuid().is_root()));
    Some(config)
}

fn segments(report: &mut Report, config: &Config, machine: &Machine, free_bytes: u64, ranks: u32) {
    let offered_bytes = config.offered_segment_bytes(free_bytes, ranks);
    let largest_bytes = config.max_segment_bytes(free_bytes, ranks);
    report.bytes(Section::Job, "segment_offered_bytes", offered_bytes);
    report.bytes(Section::Job, "segment_largest_bytes", largest_bytes);
    let dir = config.storage_dir.display();
    if largest_bytes == 0 {
        return report.refuse(format!(
            "{dir} has no space for a page of each rank; free some, or set VGASNET_STORAGE_DIR to another disk"
        ));
    }
    if offered_bytes == 0 {
        report.advise(format!(
            "ranks are offered no segment: a quarter of a rank's share of {dir} is less than a page; set VGASNET_MAX_SEGSIZE, a smaller \
             VGASNET_PAGE_SIZE, or VGASNET_STORAGE_DIR to another disk"
        ));
    }
    size_of_files(report, config, offered_bytes);
    frames(report, config, machine, largest_bytes, ranks);
}

/// Checks the limit on file sizes against the size of a segment.
fn size_of_files(report: &mut Report, config: &Config, offered_bytes: u64) {
    let limit_bytes = storage::size_limit_bytes();
    let limit = format_size_about(limit_bytes);
    if config.page_bytes > limit_bytes {
        report.refuse(format!("no file of a page may be made, as their size is limited to {limit}; raise `ulimit -f`"));
    } else if offered_bytes > limit_bytes {
        report.advise(format!(
            "a segment of {}, which is offered, exceeds the limit on the size of files, {limit}; raise `ulimit -f`, or lower \
             VGASNET_MAX_SEGSIZE",
            format_size_about(offered_bytes)
        ));
    }
}

/// Checks that a pool has enough pages for loads and stores, and no more than can be mapped.
fn frames(report: &mut Report, config: &Config, machine: &Machine, largest_bytes: u64, ranks: u32) {
    let pages = u32::try_from(largest_bytes / config.page_bytes).unwrap_or(u32::MAX);
    let frames = u32::try_from(config.pool_bytes / config.page_bytes).unwrap_or(u32::MAX);
    if frames < FRAMES_MIN {
        let enough_bytes = u64::from(FRAMES_MIN) * config.page_bytes;
        let share_bytes = machine.memory_available_bytes / u64::from(ranks);
        let advice = if enough_bytes <= share_bytes {
            format!("VGASNET_POOL_SIZE to at least {}, or a smaller VGASNET_PAGE_SIZE", format_size_about(enough_bytes))
        } else {
            "a smaller VGASNET_PAGE_SIZE, or start fewer ranks here".to_owned()
        };
        report.advise(format!(
            "a pool has fewer than {FRAMES_MIN} pages, so a program that loads from its segment or stores there is ended; set {advice}"
        ));
    }
    let room = MappingRoom::observe(config.caching.peer_memory && ranks > 1, 0);
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

/// A rank maps all pools of the host, its own pool a second time, and its segment.
fn address_space(report: &mut Report, config: &Config, ranks: u32) {
    let Some(limit_bytes) = limit(Resource::RLIMIT_AS) else { return };
    let pools = if config.caching.peer_memory { u64::from(ranks) } else { 1 };
    let pools_bytes = config.pool_bytes.saturating_mul(pools + 1);
    let (limit, pools) = (format_size_about(limit_bytes), format_size_about(pools_bytes));
    if pools_bytes > limit_bytes {
        report.refuse(format!(
            "the address space is limited to {limit}, and a rank maps {pools} of pools; ulimit -v unlimited, or a smaller VGASNET_POOL_SIZE"
        ));
    } else {
        report.advise(format!(
            "the address space is limited to {limit}; a rank maps {pools} of pools, its segment and the program: ulimit -v unlimited"
        ));
    }
}

/// The limit covers all processes and threads of the user.
fn threads(report: &mut Report, ranks: u32, limit: Option<u64>) {
    let needed = THREADS + THREADS_OF_RANK * u64::from(ranks);
    if let Some(limit) = limit.filter(|limit| *limit < needed) {
        report.refuse(format!(
            "a job of {ranks} ranks has at least {needed} processes and threads, of which the user may have {limit}; ulimit -u, or nproc \
             in /etc/security/limits.conf"
        ));
    }
}

/// The launcher and the ranks raise the soft limit up to the hard limit.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_is_not_offered_may_be_asked_for() {
        const MIB: u64 = 1 << 20;
        let machine = Machine { memory_available_bytes: 1024 * MIB };
        let page = [("VGASNET_PAGE_SIZE".to_owned(), "4M".to_owned())];
        let config = Config::from_env(page.into_iter(), 1, &machine).expect("valid");
        for (free_bytes, word, is_possible) in [
            (7 * MIB, "no space for a page of each rank", false),
            (12 * MIB, "ranks are offered no segment", true),
            (16 * MIB, "nothing stands in the way", true),
        ] {
            let mut report = Report::new(4096);
            segments(&mut report, &config, &machine, free_bytes, 1);
            assert!(report.text().contains(word), "{free_bytes}: {}", report.text());
            assert_eq!(report.is_job_possible, is_possible, "{free_bytes}");
        }
    }

    /// The advised pool size must fit into the rank's memory.
    #[test]
    fn pools_of_few_pages_grow_where_there_is_memory() {
        const MIB: u64 = 1 << 20;
        for (memory_available_bytes, word) in [
            (20 * MIB, "set VGASNET_POOL_SIZE to at least 16M, or a smaller VGASNET_PAGE_SIZE"),
            (12 * MIB, "set a smaller VGASNET_PAGE_SIZE, or start fewer ranks here"),
        ] {
            let machine = Machine { memory_available_bytes };
            let page = [("VGASNET_PAGE_SIZE".to_owned(), "4M".to_owned())];
            let config = Config::from_env(page.into_iter(), 1, &machine).expect("valid");
            let mut report = Report::new(4096);
            frames(&mut report, &config, &machine, 64 * MIB, 1);
            assert!(report.text().contains(word), "{}", report.text());
        }
    }

    #[test]
    fn threads_are_those_of_all_ranks() {
        for (limit, is_possible) in [(None, true), (Some(13), true), (Some(12), false)] {
            let mut report = Report::new(4096);
            threads(&mut report, 4, limit);
            assert_eq!(report.is_job_possible, is_possible, "{limit:?}: {}", report.text());
            assert_eq!(
                report.text().contains("at least 13 processes and threads, of which the user may have 12"),
                !is_possible
            );
        }
    }
}

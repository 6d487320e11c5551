//! Memory available to this process: the machine's own figure, and the limits of control groups.

use std::fs;
use std::path::{Path, PathBuf};

/// The properties of the machine on which defaults depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Bytes of memory that all processes of this host together may still take without swapping: the least of
    /// `MemAvailable` and the memory left under each limit (cgroup v1 or v2) above this process.
    pub memory_available_bytes: u64,
}

impl Machine {
    /// Observes the machine now. An unreadable limit counts as none. Without `/proc`, the kernel's count of unused
    /// memory stands in for `MemAvailable`; it is less, since it leaves out the file cache.
    pub fn observe() -> Machine {
        let read = |path: &Path| fs::read_to_string(path).ok();
        let machine = read(Path::new("/proc/meminfo"))
            .and_then(|text| available_from_meminfo(&text))
            .or_else(|| nix::sys::sysinfo::sysinfo().ok().map(|info| info.ram_unused()));
        let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
        let mounts = read(Path::new("/proc/self/mountinfo")).unwrap_or_default();
        let left = left_under_limits(&groups, &mounts, read);
        let memory_available_bytes = machine.into_iter().chain(left).min().unwrap_or(0);
        Machine { memory_available_bytes }
    }
}

fn available_from_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The files with a group's limit and usage, in one version of cgroups.
struct GroupFiles {
    limit: &'static str,
    usage: &'static str,
    /// The keys of the file cache in `memory.stat`. The kernel drops the file cache when a group needs its memory.
    cache: [&'static str; 2],
}

const V1: GroupFiles = GroupFiles {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    cache: ["total_inactive_file", "total_active_file"],
};
const V2: GroupFiles =
    GroupFiles { limit: "memory.max", usage: "memory.current", cache: ["inactive_file", "active_file"] };

/// A memory cgroup of this process, at one of the mount points of cgroups.
#[derive(Debug, PartialEq, Eq)]
pub struct MemoryGroup {
    /// The mount point of its hierarchy.
    pub mount_point: PathBuf,
    /// Its own directory, below the mount point; it may not exist.
    pub directory: PathBuf,
    /// Whether its files have the interface of cgroup v2.
    pub is_v2: bool,
}

/// The memory cgroups of a process, from its `/proc/self/cgroup` (`groups`) and `/proc/self/mountinfo` (`mounts`).
pub fn memory_groups(groups: &str, mounts: &str) -> Vec<MemoryGroup> {
    let group_at = |line: &str| {
        let (root, mount_point, is_v2) = parse_mount(line)?;
        let group = group_path(groups, is_v2)?;
        // A container without a cgroup namespace sees the host's path, but mounts its own group as the root. Then the
        // path does not exist below the mount, and the mount's root is the group.
        let below = group.strip_prefix(root).unwrap_or(group).trim_start_matches('/');
        Some(MemoryGroup { mount_point: mount_point.into(), directory: Path::new(mount_point).join(below), is_v2 })
    };
    mounts.lines().filter_map(group_at).collect()
}

/// The least memory left in any group above this process, if any has a limit. `groups` and `mounts` are as for
/// [`memory_groups`]; `read` reads a file, if it exists.
fn left_under_limits(groups: &str, mounts: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let groups = memory_groups(groups, mounts);
    let left = groups.iter().flat_map(|MemoryGroup { mount_point, directory, is_v2 }| {
        let above = directory.ancestors().take_while(move |directory| directory.starts_with(mount_point));
        above.filter_map(|directory| left_in_group(directory, if *is_v2 { &V2 } else { &V1 }, &read))
    });
    left.min()
}

/// The memory left in a group: its limit less its usage. File cache counts as unused, as in `MemAvailable`: otherwise a
/// group would appear to be full after reading large files.
fn left_in_group(directory: &Path, files: &GroupFiles, read: &impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let number = |name: &str| -> Option<u64> { read(&directory.join(name))?.trim().parse().ok() };
    let limit = number(files.limit)?;
    let usage = number(files.usage)?;
    let stat = read(&directory.join("memory.stat")).unwrap_or_default();
    let cache_of = |key: &str| stat.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
    let cache: u64 = files.cache.into_iter().filter_map(cache_of).sum();
    Some(limit.saturating_sub(usage.saturating_sub(cache)))
}

/// A line of mountinfo that mounts cgroups with memory limits: `… ROOT POINT OPTIONS … - TYPE SOURCE SUPER`. Returns
/// the root, without a slash at the end, the mount point, and whether it is of version 2.
fn parse_mount(line: &str) -> Option<(&str, &str, bool)> {
    let (mount, kind) = line.split_once(" - ")?;
    let mut kind = kind.split(' ');
    let is_v2 = match kind.next()? {
        "cgroup2" => true,
        "cgroup" => false,
        _ => return None,
    };
    if !is_v2 && !kind.nth(1)?.split(',').any(|controller| controller == "memory") {
        return None;
    }
    let mut fields = mount.split(' ').skip(3);
    Some((fields.next()?.trim_end_matches('/'), fields.next()?, is_v2))
}

/// This process's group: `0::PATH` for v2, `N:…,memory,…:PATH` for v1.
fn group_path(groups: &str, is_v2: bool) -> Option<&str> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let hierarchy = fields.next()?;
        let mut controllers = fields.next()?.split(',');
        let path = fields.next()?;
        let found = if is_v2 { hierarchy == "0" } else { controllers.any(|name| name == "memory") };
        found.then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn left(groups: &str, mounts: &str, files: &[(&str, &str)]) -> Option<u64> {
        let files: HashMap<&str, &str> = files.iter().copied().collect();
        left_under_limits(groups, mounts, |path| files.get(path.to_str()?).map(|text| text.to_string()))
    }

    const V2_MOUNT: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn reads_meminfo() {
        let text = "MemTotal:       24684084 kB\nMemAvailable:   1000 kB\n";
        assert_eq!(available_from_meminfo(text), Some(1_024_000));
        assert_eq!(available_from_meminfo("MemTotal: 1 kB\n"), None);
    }

    #[test]
    fn v2_takes_the_tightest_ancestor() {
        let files = [
            ("/sys/fs/cgroup/a/memory.max", "1000\n"),
            ("/sys/fs/cgroup/a/memory.current", "900\n"),
            ("/sys/fs/cgroup/a/memory.stat", "file 700\ninactive_file 300\nactive_file 400\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/b/memory.current", "100\n"),
        ];
        assert_eq!(left("0::/a/b\n", V2_MOUNT, &files), Some(800));
        assert_eq!(left("0::/\n", V2_MOUNT, &files), None);
    }

    #[test]
    fn v1_counts_only_the_memory_controller() {
        let mounts =
            "35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n36 31 0:33 / /cg/cpu rw - cgroup cgroup rw,cpu\n";
        let files = [
            ("/cg/memory/j/memory.limit_in_bytes", "5000\n"),
            ("/cg/memory/j/memory.usage_in_bytes", "2000\n"),
            ("/cg/memory/j/memory.stat", "inactive_file 1\ntotal_inactive_file 500\ntotal_active_file 200\n"),
            ("/cg/cpu/j/memory.limit_in_bytes", "1\n"),
            ("/cg/cpu/j/memory.usage_in_bytes", "1\n"),
        ];
        assert_eq!(left("4:memory:/j\n2:cpu:/j\n0::/\n", mounts, &files), Some(3700));
    }

    #[test]
    fn finds_the_group_that_a_container_mounts_as_its_root() {
        let files = [("/cg/memory.limit_in_bytes", "800"), ("/cg/memory.usage_in_bytes", "900")];
        let mounts = "35 31 0:32 /docker/x /cg ro - cgroup cgroup rw,memory\n";
        assert_eq!(left("4:memory:/docker/x\n", mounts, &files), Some(0));
        let mounts = "35 31 0:32 / /cg ro - cgroup cgroup rw,memory\n";
        assert_eq!(left("4:memory:/docker/x\n", mounts, &files), Some(0));
    }

    #[test]
    fn both_interfaces_are_found_in_what_the_kernel_shows() {
        let mounts = "24 1 0:22 / /sys/fs/cgroup ro - tmpfs tmpfs rw,mode=755\n\
                      25 24 0:23 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
                      26 24 0:24 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      27 24 0:25 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let groups = memory_groups("4:memory:/jobs/7\n3:cpuset:/\n0::/user.slice\n", mounts);
        let places = groups.iter().map(|group| (group.mount_point.as_path(), group.directory.as_path(), group.is_v2));
        let [v1, v2] = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"].map(Path::new);
        let (job, slice) = (v1.join("jobs/7"), v2.join("user.slice"));
        assert_eq!(places.collect::<Vec<_>>(), [(v1, job.as_path(), false), (v2, slice.as_path(), true)]);
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(Machine::observe().memory_available_bytes > 0);
    }
}

//! A limit on the memory of one process, its page cache included, as far as this machine lets us set one.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a cgroup may stay busy after its last process has ended.
const REMOVAL: Duration = Duration::from_secs(2);

/// The files of a cgroup that limit its memory and count the most in use: Linux has two interfaces.
const V1: [&str; 2] = ["memory.limit_in_bytes", "memory.max_usage_in_bytes"];
const V2: [&str; 2] = ["memory.max", "memory.peak"];

/// A cgroup of our own, removed when this is dropped.
#[derive(Debug)]
pub struct MemoryLimit {
    path: PathBuf,
    peak: &'static str,
}

impl MemoryLimit {
    /// Makes a cgroup whose processes have `limit_bytes` of memory in all. It lies below the cgroup of this process if
    /// possible, so that the limits of that hold, too.
    ///
    /// # Errors
    /// The reason, and a remedy.
    pub fn new(limit_bytes: u64) -> Result<MemoryLimit, String> {
        let (parent, [limit_file, peak]) = parent()?;
        let path = parent.join(format!("vgasnet-bench-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| failed("making", &path, &error))?;
        let limit = MemoryLimit { path, peak };
        let file = limit.path.join(limit_file);
        fs::write(&file, limit_bytes.to_string()).map_err(|error| failed("writing", &file, &error))?;
        Ok(limit)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The most that was in use at a time; `None` where the kernel does not count that.
    pub fn peak_bytes(&self) -> Option<u64> {
        fs::read_to_string(self.path.join(self.peak)).ok()?.trim().parse().ok()
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        let deadline = Instant::now() + REMOVAL;
        while let Err(error) = fs::remove_dir(&self.path) {
            if Instant::now() >= deadline {
                eprintln!("vgasnet-bench: {}", failed("removing", &self.path, &error));
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Puts this process into the cgroup at `path`.
///
/// # Errors
/// The kernel's reason.
pub fn enter(path: &Path) -> Result<(), String> {
    let file = path.join("cgroup.procs");
    fs::write(&file, "0").map_err(|error| failed("writing", &file, &error))
}

fn failed(what: &str, path: &Path, error: &dyn Display) -> String {
    format!("{what} {}: {error}; run as root where the memory controller of cgroups is at hand", path.display())
}

/// A cgroup that can have children with memory limits.
fn parent() -> Result<(PathBuf, [&'static str; 2]), String> {
    let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    let (mounts, own) = (read("/proc/self/mounts")?, read("/proc/self/cgroup")?);
    if let Some(mount) = mount_point(&mounts, |kind, options| kind == "cgroup" && has_word(options, ',', "memory")) {
        let own = own_path(&own, |controllers| has_word(controllers, ',', "memory"));
        return Ok((below(mount, own), V1));
    }
    let mount = mount_point(&mounts, |kind, _| kind == "cgroup2").ok_or("no cgroups are mounted here")?;
    let own = below(mount, own_path(&own, str::is_empty));
    // Processes and limited children do not go together, except at the root: else the new one is a sibling.
    let mut candidates = own.ancestors().take(2).filter(|path| path.starts_with(mount));
    let hands_on = |path: &&Path| {
        let controllers = fs::read_to_string(path.join("cgroup.subtree_control")).unwrap_or_default();
        has_word(&controllers, ' ', "memory")
    };
    let found = candidates.find(hands_on);
    found.map(|path| (path.to_owned(), V2)).ok_or_else(|| {
        format!("{} hands on no memory controller; write +memory to cgroup.subtree_control above it", own.display())
    })
}

fn has_word(text: &str, separator: char, word: &str) -> bool {
    text.trim().split(separator).any(|found| found == word)
}

/// The first mount point in `/proc/self/mounts` with a suitable type and options.
fn mount_point(mounts: &str, suits: impl Fn(&str, &str) -> bool) -> Option<&str> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (point, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        suits(kind, options).then_some(point)
    })
}

/// This process's path in `/proc/self/cgroup` in the first hierarchy with suitable controllers.
fn own_path(own: &str, suits: impl Fn(&str) -> bool) -> &str {
    let found = own.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        suits(controllers).then_some(path)
    });
    found.unwrap_or("/")
}

fn below(mount: &str, path: &str) -> PathBuf {
    Path::new(mount).join(path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_interfaces_are_found_in_what_the_kernel_shows() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw,mode=755 0 0\n\
                      cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let v1 = |kind: &str, options: &str| kind == "cgroup" && has_word(options, ',', "memory");
        assert_eq!(mount_point(mounts, v1), Some("/sys/fs/cgroup/memory"));
        assert_eq!(mount_point(mounts, |kind, _| kind == "cgroup2"), Some("/sys/fs/cgroup/unified"));
        let own = "4:memory:/jobs/7\n3:cpuset:/\n0::/user.slice\n";
        assert_eq!(own_path(own, |controllers| has_word(controllers, ',', "memory")), "/jobs/7");
        assert_eq!(own_path(own, str::is_empty), "/user.slice");
        assert_eq!(below("/sys/fs/cgroup/memory", "/jobs/7"), Path::new("/sys/fs/cgroup/memory/jobs/7"));
    }
}

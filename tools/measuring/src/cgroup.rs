//! A limit on the memory of processes, page cache included, if this machine allows setting one.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use vgasnet_settings::{MemoryGroup, memory_groups};

/// Time allowed for a cgroup to become idle after its last process has ended.
const REMOVAL: Duration = Duration::from_secs(2);

/// The limit file and the peak usage file of a cgroup, in the two interfaces of Linux.
const V1: [&str; 2] = ["memory.limit_in_bytes", "memory.max_usage_in_bytes"];
const V2: [&str; 2] = ["memory.max", "memory.peak"];

/// A cgroup created by this program. Dropping this removes it.
#[derive(Debug)]
pub struct MemoryLimit {
    path: PathBuf,
    peak: &'static str,
}

impl MemoryLimit {
    /// Creates a cgroup with `limit_bytes` of memory for all its processes together. If possible it is a child of this
    /// process's cgroup, so the limits of the parent still apply.
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

    /// The cgroup's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The peak memory usage; `None` if the kernel does not count it.
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

/// Moves this process into the cgroup at `path`.
///
/// # Errors
/// The kernel's reason.
pub fn enter(path: &Path) -> Result<(), String> {
    let file = path.join("cgroup.procs");
    fs::write(&file, "0").map_err(|error| failed("writing", &file, &error))
}

/// The same command, run by a process that first enters the cgroup at `path`.
pub fn within(path: &Path, command: &Command) -> Command {
    let mut within = Command::new("sh");
    within.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(path.join("cgroup.procs"));
    within.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => within.env(name, value),
            None => within.env_remove(name),
        };
    }
    within
}

fn failed(what: &str, path: &Path, error: &dyn Display) -> String {
    format!(
        "{what} {}: {error}; run as root, or try systemd-run --user --scope, where cgroups limit memory",
        path.display()
    )
}

/// A cgroup that can have children with memory limits.
fn parent() -> Result<(PathBuf, [&'static str; 2]), String> {
    let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    let groups = memory_groups(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?);
    if let Some(group) = groups.iter().find(|group| !group.is_v2) {
        return Ok((group.directory.clone(), V1));
    }
    let MemoryGroup { mount_point, directory, .. } = groups.first().ok_or("no cgroups are mounted here")?;
    // In v2 a cgroup other than the root has either processes or limited children. If this process's cgroup has
    // processes, the new cgroup becomes its sibling.
    let mut candidates = directory.ancestors().take(2).filter(|path| path.starts_with(mount_point));
    let hands_on = |path: &&Path| {
        let controllers = fs::read_to_string(path.join("cgroup.subtree_control")).unwrap_or_default();
        controllers.split_whitespace().any(|controller| controller == "memory")
    };
    let found = candidates.find(hands_on);
    found.map(|path| (path.to_owned(), V2)).ok_or_else(|| {
        let own = directory.display();
        format!("{own} hands on no memory controller; write +memory to cgroup.subtree_control above it")
    })
}

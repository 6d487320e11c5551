//! Processes with little memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A cgroup with a memory limit, in either version's way. Removed on drop.
pub struct MemoryLimit(PathBuf);

impl MemoryLimit {
    /// `None` if this user may make no cgroup.
    pub fn new(bytes: u64) -> Option<MemoryLimit> {
        // With a limit on memory and swap together, or on swap alone. Otherwise processes fill the machine's swap
        // first.
        let both = bytes.to_string();
        let ways = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", ("memory.memsw.limit_in_bytes", &*both)),
            ("/sys/fs/cgroup", "memory.max", ("memory.swap.max", "0")),
        ];
        ways.into_iter().find_map(|(root, limit, (swap, most))| {
            let dir = Path::new(root).join(format!("vgasnet-test-{}", std::process::id()));
            fs::create_dir(&dir).ok()?;
            let made = MemoryLimit(dir);
            fs::write(made.0.join(limit), &both).ok()?;
            (fs::write(made.0.join(swap), most).is_ok() || !has_swap()).then_some(made)
        })
    }

    /// A process that writes its number there gets this limit.
    pub fn processes(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

/// Whether the machine has swap. Systems without it need not count it.
fn has_swap() -> bool {
    fs::read_to_string("/proc/swaps").is_ok_and(|swaps| swaps.lines().count() > 1)
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // Its processes have ended, but the system may still count the last one.
        let end = Instant::now() + Duration::from_secs(10);
        while fs::remove_dir(&self.0).is_err() && Instant::now() < end {
            std::thread::yield_now();
        }
    }
}

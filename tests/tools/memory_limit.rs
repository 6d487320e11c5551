//! Processes that have little memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A cgroup of its own that bounds memory, in either version's way; removed when this goes.
pub struct MemoryLimit(PathBuf);

impl MemoryLimit {
    /// `None` where this user may make none.
    pub fn new(bytes: u64) -> Option<MemoryLimit> {
        // With the bound on memory and swap together, or on swap alone: else processes fill the machine's swap first.
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

    /// A process that writes its number there has no more memory than this.
    pub fn processes(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

/// Whether the machine has any swap: systems that have none need not count it.
fn has_swap() -> bool {
    fs::read_to_string("/proc/swaps").is_ok_and(|swaps| swaps.lines().count() > 1)
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // Its processes have ended, though the system may still count the last one.
        let end = Instant::now() + Duration::from_secs(10);
        while fs::remove_dir(&self.0).is_err() && Instant::now() < end {
            std::thread::yield_now();
        }
    }
}

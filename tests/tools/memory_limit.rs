//! Processes that have little memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A cgroup of its own that bounds memory, in either version's way; removed when this goes.
pub struct MemoryLimit(PathBuf);

impl MemoryLimit {
    /// `None` where this user may make none.
    pub fn new(bytes: u64) -> Option<MemoryLimit> {
        let ways = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        ways.into_iter().find_map(|(root, limit)| {
            let dir = Path::new(root).join(format!("vgasnet-test-{}", std::process::id()));
            fs::create_dir(&dir).ok()?;
            let made = MemoryLimit(dir);
            fs::write(made.0.join(limit), bytes.to_string()).ok().map(|()| made)
        })
    }

    /// A process that writes its number there has no more memory than this.
    pub fn processes(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
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

//! Common parts of the programs that measure vgasnet.

pub mod cgroup;
pub mod disk;
pub mod memory;
pub mod progress;

//! The parts that programs which measure vgasnet share.

pub mod cgroup;
pub mod disk;
pub mod memory;
pub mod progress;

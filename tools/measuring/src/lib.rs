//! The parts that programs which measure vgasnet share.

pub mod cgroup;
pub mod memory;
pub mod progress;

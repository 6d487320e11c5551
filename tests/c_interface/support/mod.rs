//! Compiling and running C programs that use vgasnet, for tests.

pub mod compile;
pub mod gasnet;
pub mod mounts;
pub mod run;
#[path = "../../tools/mod.rs"]
pub mod tools;

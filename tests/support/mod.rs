//! Compiling and running C programs that use vgasnet, for tests.

#![allow(dead_code, reason = "each test program needs a part of it")]

pub mod compile;
pub mod run;

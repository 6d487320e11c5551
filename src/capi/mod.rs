//! The C interface: the functions of `include/vgasnet.h`, which documents them.
//!
//! A function here checks its arguments, converts them and calls the Rust interface. `boundary.rs` deals with panics,
//! errors and calls that come too early.

mod access;
mod advice;
mod again;
mod am;
mod atomic;
mod barrier;
mod boundary;
mod client;
mod coll;
mod debug;
mod ex;
mod files;
#[cfg(feature = "mpi")]
mod files_of_mpi;
mod job;
mod last_line;
mod lists;
mod preconditions;
mod readonly;
mod stats;
mod sync;
mod transfer;

use std::ffi::c_int;

/// Done.
pub const OK: c_int = 0;
/// Called too early, or once too often.
pub const ERR_NOT_INIT: c_int = 10001;
/// The machine lacks a resource.
pub const ERR_RESOURCE: c_int = 10002;
/// An argument or an environment variable is invalid.
pub const ERR_BAD_ARG: c_int = 10003;
/// Not complete yet.
pub const ERR_NOT_READY: c_int = 10004;
/// The ranks came to the barrier with different ids.
pub const ERR_BARRIER_MISMATCH: c_int = 10005;
/// The file system refused an operation.
pub const ERR_IO: c_int = 10006;

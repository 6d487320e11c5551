//! vgasnet: a communication runtime for PGAS languages and libraries with segments larger than memory.
//!
//! C programs include `vgasnet.h`; this crate is the library behind it. The Rust interface covers the needs of the
//! project's own tools and tests: a program calls [`job::init`], then [`job::attach`], and gets a [`job::Runtime`] with
//! gets and puts in [`ops`] and Active Messages in [`am`]. ARCHITECTURE.md describes the rooms and their connections.

// `eprintln!` panics if stderr cannot be written.
#![cfg_attr(not(test), deny(clippy::print_stderr))]

pub mod am;
pub mod capi;
pub mod coll;
mod ex;
mod fault;
mod files;
pub mod job;
pub mod ops;

pub use vgasnet_sys::heap::live_bytes;
pub use vgasnet_sys::interposed::NAMES as INTERPOSED;

/// See [`vgasnet_sys::heap`].
#[global_allocator]
static HEAP: vgasnet_sys::heap::LibraryHeap = vgasnet_sys::heap::LibraryHeap;

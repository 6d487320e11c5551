//! vgasnet: a communication runtime for PGAS languages and libraries whose segments are larger than memory.
//!
//! C programs include `vgasnet.h`; this crate is the library behind it, and the same interface for Rust. A program calls
//! [`job::init`], then [`job::attach`], and gets a [`runtime::Runtime`]: gets and puts are in [`ops`], non-blocking ones in
//! [`nonblocking`]. ARCHITECTURE.md tells how the rooms below fit together.

pub mod am;
pub mod barrier;
pub mod budget;
pub mod capi;
pub mod coherence;
pub mod coll;
pub mod config;
pub mod engine;
pub mod error;
pub mod handles;
pub mod job;
pub mod large_pages;
pub mod local;
pub mod nonblocking;
pub mod ops;
pub mod page_table;
pub mod pool;
pub mod readahead;
pub mod residency;
pub mod runtime;
pub mod segment;
pub mod space;
pub mod storage;
pub mod termination;
pub mod transport;
pub mod vis;
pub mod wait_mode;

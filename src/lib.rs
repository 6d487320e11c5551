//! vgasnet: a communication runtime for PGAS languages and libraries whose segments are larger than memory.
//!
//! C programs include `vgasnet.h`; this crate is the library behind it, and the same interface for Rust. A program calls
//! [`job::init`], then [`job::attach`], and gets a [`job::Runtime`]: gets and puts are in [`ops`], Active Messages in [`am`],
//! collectives in [`coll`]. ARCHITECTURE.md tells how the rooms below fit together.

pub mod am;
pub mod capi;
pub mod coll;
pub mod engine;
pub mod error;
mod fault;
pub mod job;
pub mod memory;
pub mod ops;
pub mod request;
pub mod settings;
pub mod storage;
mod sys;

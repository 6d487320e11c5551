//! The MPI transport: messages by point-to-point with persistent receives, pages by rendezvous.
//!
//! Any MPI from version 3.0 on. Only starting and ending MPI block, so a rank never waits inside MPI for another rank,
//! and each wait decides when to poll again. All calls are made one at a time, under a lock.

#![cfg(feature = "link")]

pub mod calls;
mod ffi;
mod hydra;
mod network;
pub mod program;
mod segment;
mod state;

pub use ffi::is_initialised;
pub use network::MpiNetwork;
pub use segment::{Segment, set_segment};

/// Link flags for programs containing this library, separated by blanks.
pub const LINK_FLAGS: &str = env!("VGASNET_MPI_LINK_FLAGS");

/// The compiler of the MPI this library was built for, as a command.
pub const MPICC: &str = env!("VGASNET_MPICC");

/// The launcher of the MPI this library was built for, as a command.
pub const MPIEXEC: &str = env!("VGASNET_MPIEXEC");

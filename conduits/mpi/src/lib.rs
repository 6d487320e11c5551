//! The MPI transport: messages by point-to-point with persistent receives, pages by rendezvous.
//!
//! Any MPI from version 3.0 on. No call blocks but those that start and end MPI, so a rank never waits inside MPI for
//! another one, and whoever waits here decides when to look again. All calls are made one at a time, under a lock.

mod ffi;
mod network;
mod state;

pub use network::MpiNetwork;

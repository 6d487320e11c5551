//! The shared-memory conduit: the ranks of a job are processes on one machine.
//!
//! The ranks share one unnamed file, the `arena`. The first party of a host creates it and two eventfds a rank, and
//! passes them to the ranks (`rendezvous`, `joining`). A message is a record in the receiver's inbox (`ring`); a put or
//! get is a copy between two mapped pools in the calling thread. An idle thread sleeps on its eventfd, and the `bell`
//! selects the thread to wake for an arrival.

mod arena;
mod barrier;
mod bell;
mod completions;
mod conduit;
mod descriptors;
mod handshake;
mod job;
mod joining;
mod mapping;
mod peers;
mod rendezvous;
mod ring;
mod sync;
mod visitor;

pub use conduit::SmpConduit;
pub use handshake::random;
pub use job::{JOB_VARIABLE, raise_descriptor_limit};
pub use joining::join;
pub use peers::{Peer, Strangers, connect_locally, listen_locally};
pub use rendezvous::{Adopt, Rendezvous, Visit};

/// Maximum number of ranks of a job on one host.
pub const RANKS_MAX: u32 = 4096;

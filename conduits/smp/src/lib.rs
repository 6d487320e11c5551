//! The shared-memory conduit: the ranks of a job are processes on one machine.
//!
//! Everything the ranks share is one file without a name, the `arena`, which the launcher ([`launch`]) makes and the
//! ranks inherit together with two eventfds a rank. A message is a record in the receiver's inbox (`ring`); a put or get
//! is a copy between two mapped pools in the calling thread. Whoever has nothing to do sleeps on its eventfd, and the
//! `bell` says whom an arrival must wake.

mod arena;
mod barrier;
mod bell;
mod completions;
mod conduit;
mod host;
mod job;
pub mod launch;
mod mapping;
mod ring;
mod sync;

pub use conduit::SmpConduit;
pub use host::{Invitation, join};
pub use job::JOB_VARIABLE;

/// The largest number of ranks in a job.
pub const RANKS_MAX: u32 = 4096;

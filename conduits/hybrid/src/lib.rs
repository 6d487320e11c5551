//! A job on several hosts: the ranks of each host share memory, as over smp, and a [`Network`] carries all traffic
//! between hosts.
//!
//! [`HybridConduit`] is the same for every network. It sends to a neighbour through shared memory and to others through
//! the network. Networks make progress only when polled, so it sleeps for limited times.

#![deny(unsafe_code)]

mod agent_link;
mod backoff;
mod conduit;
mod gather;
mod network;
mod start;

pub use agent_link::{
    AGENT_VARIABLE, Passed, REASON_BYTES_MAX, Report, break_down, finish, has_agent, open_agent_link, pass_descriptor,
};
pub use backoff::Patience;
pub use conduit::HybridConduit;
pub use gather::{Exchange, Gather, Next};
pub use network::{Network, PoolMemory};

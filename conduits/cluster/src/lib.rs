//! A job on several hosts: the ranks of each host share memory, as over smp, and a [`Network`] carries what goes from
//! host to host.
//!
//! [`ClusterConduit`] is the same for every network. It sends to a neighbour through shared memory and to others
//! through the network, and sleeps for a while at a time, because networks are looked after by polling.

#![deny(unsafe_code)]

mod attendance;
mod backoff;
mod conduit;
mod network;
mod start;

pub use attendance::{
    AGENT_VARIABLE, Report, announce, attendant, break_down, entrust, finish, introduce, is_attended,
};
pub use backoff::Patience;
pub use conduit::ClusterConduit;
pub use network::{Network, PoolMemory};

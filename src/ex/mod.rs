//! GASNet-EX's additions to GASNet-1: clients, endpoints, segments and teams as objects, events with leaves, and
//! messages with negotiated payload.
//!
//! Each process has one client, with one endpoint. The operations themselves are in the rooms below.
//!
//! Source: GASNet-EX (specification 0.19).

mod atomics;
mod collectives;
mod element_types;
mod events;
mod make_teams;
mod objects;
mod peer_completion;
pub mod prepared;
mod primordial;
mod system;
mod teams;

pub use atomics::{Asked, Domain, Request, agree_on_domain, operation_name};
pub use collectives::{Collective, Moved, start as start_collective};
pub use events::{Category, Event, EventCounts, sweep, test, wait, wait_all, wait_any};
pub use make_teams::{create, destroy, split};
pub use objects::{Object, find, give_out};
pub use peer_completion::{
    PEER_COMPLETION_BYTES_MAX, PeerCompletion, has_peer_completion, set_peer_completion, take_peer_completion,
};
pub use primordial::{
    Bound, Client, Endpoint, Primordial, Segment, attach_segment, bound, bound_of_rank, primordial, start,
};
pub use system::{RankInfo, Ranks, host, nbrhd, position};
pub use teams::{Scratch, Team, jobrank, jobrank_if_any, jobrank_quickly, pair};

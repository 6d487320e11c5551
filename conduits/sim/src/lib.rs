//! A simulated transport: all ranks of a job in one process. A seed determines everything a network leaves open.
//!
//! A [`Hub`] is the machines and the network between them; [`Hub::conduit`] gives each rank its [`SimConduit`].
//! Messages are delayed and overtake each other, sends and transfers are refused for a while, and a put or get moves
//! its halves at separate polls. Nothing is lost or duplicated.
//!
//! Time is counted in polls, so nothing moves while nobody polls. When one thread drives all ranks, everything follows
//! from the seed and the calls alone. When each rank has threads of its own, they may sleep and are woken as on any
//! conduit; a rank does not sleep while something is in flight to it.

mod conduit;
mod hub;
mod memory;
mod network;
mod rendezvous;
mod sleepers;

pub use conduit::SimConduit;
pub use hub::Hub;
pub use network::Traffic;

/// The properties of a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The host of each rank; hosts are numbered from 0 without gaps.
    pub hosts: Vec<u32>,
    /// Ranks of a host have each other's memory: [`vgasnet_conduit::Capabilities::peer_memory`].
    pub peer_memory: bool,
    /// The seed of all random choices.
    pub seed: u64,
    /// Probability of a delay for a message, each half of a transfer, and a completion. 0: everything arrives at the
    /// next poll, in the order of sending.
    pub delay_percent: u32,
    /// Maximum delay in polls: of the receiver for messages and completions, of any rank for transfers.
    pub delay_polls_max: u32,
    /// Probability of refusing a send, put or get although there is room, bounded by `REFUSALS_MAX` in a row.
    pub busy_percent: u32,
}

impl Settings {
    /// `ranks` ranks on one host with each other's memory, and a network without delays.
    pub fn immediate(ranks: u32) -> Settings {
        Settings {
            hosts: vec![0; ranks as usize],
            peer_memory: true,
            seed: 0,
            delay_percent: 0,
            delay_polls_max: 1,
            busy_percent: 0,
        }
    }
}

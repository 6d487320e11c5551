//! A simulated transport: all ranks of a job in one process. Everything that a network leaves open is drawn from a seed.
//!
//! A [`Hub`] is the machines and the network between them; [`Hub::conduit`] gives each rank its [`SimConduit`]. Messages
//! are late and overtake each other, sends and transfers are refused for a while, a put or get moves half of its bytes at
//! one poll and the rest at a later one. Nothing is lost and nothing comes twice.
//!
//! Time is counted in polls, so nothing moves while nobody polls. When one thread drives all ranks, everything follows
//! from the seed and the calls alone. When each rank has threads of its own, they may sleep and are woken as on any
//! conduit; a rank to which something is under way does not sleep.

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
    /// The host that each rank runs on, one a rank; hosts are numbered from 0 without gaps.
    pub hosts: Vec<u32>,
    /// Ranks of a host have each other's memory: [`vgasnet_conduit::Capabilities::peer_memory`].
    pub peer_memory: bool,
    /// Everything random follows from it.
    pub seed: u64,
    /// How likely a message, each half of a transfer, and a completion are late. 0: everything is there at the next poll,
    /// in the order in which it was sent.
    pub delay_percent: u32,
    /// The most polls that something late takes: of the receiver for messages and completions, of any rank for transfers.
    pub delay_polls_max: u32,
    /// How likely a send, put or get is refused although there is room. Not more than a few times in a row.
    pub busy_percent: u32,
}

impl Settings {
    /// `ranks` ranks on one host with each other's memory, and a network that does everything at once.
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

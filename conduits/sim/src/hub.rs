//! The hub: machines, network and memory of a simulated job.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use vgasnet_conduit::{Rank, RegionSizes};

use crate::memory::Memory;
use crate::network::{Network, Traffic};
use crate::rendezvous::Rendezvous;
use crate::sleepers::Sleepers;
use crate::{Settings, SimConduit};

/// The common part of the conduits of a job. Their regions are valid as long as it lives.
pub struct Hub {
    settings: Settings,
    network: Mutex<Network>,
    sleepers: Vec<Sleepers>,
    memories: OnceLock<Vec<RankMemory>>,
    rendezvous: Rendezvous,
}

pub(crate) struct RankMemory {
    pub(crate) pool: Memory,
    pub(crate) table: Memory,
}

impl Hub {
    /// A fresh job.
    pub fn new(settings: Settings) -> Arc<Hub> {
        let ranks = settings.hosts.len();
        let hosts = settings.hosts.iter().max().map_or(0, |host| host + 1);
        assert!(ranks > 0, "a job has at least one rank");
        assert!((0..hosts).all(|host| settings.hosts.contains(&host)), "gaps in the hosts {:?}", settings.hosts);
        Arc::new(Hub {
            network: Mutex::new(Network::new(settings.clone())),
            sleepers: (0..ranks).map(|_| Sleepers::default()).collect(),
            memories: OnceLock::new(),
            rendezvous: Rendezvous::new(ranks),
            settings,
        })
    }

    /// The conduit of a rank. All conduits of a rank are the same one.
    pub fn conduit(self: &Arc<Hub>, rank: Rank) -> SimConduit {
        assert!(rank.index() < self.ranks(), "rank {rank} of {}", self.ranks());
        SimConduit::new(Arc::clone(self), rank)
    }

    /// Creates the regions of all ranks, in place of the collective [`vgasnet_conduit::Conduit::attach`], which one
    /// thread cannot call for all of them.
    pub fn attach_all(&self, sizes: &[RegionSizes]) {
        assert!(sizes.len() == self.ranks() && self.memories.get().is_none(), "every rank attaches once");
        self.make_memories(sizes);
    }

    /// The traffic of the hub so far.
    pub fn traffic(&self) -> Traffic {
        self.network().traffic()
    }

    /// Number of messages and transfers in flight or not handed out yet.
    pub fn in_flight(&self) -> usize {
        self.network().in_flight()
    }

    /// Whether something in flight needs polls of `rank`; it does not sleep then.
    pub fn has_arrivals(&self, rank: Rank) -> bool {
        self.network().has_arrivals(rank)
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn ranks(&self) -> usize {
        self.settings.hosts.len()
    }

    pub(crate) fn network(&self) -> MutexGuard<'_, Network> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn sleepers(&self, rank: Rank) -> &Sleepers {
        &self.sleepers[rank.index()]
    }

    pub(crate) fn rendezvous(&self) -> &Rendezvous {
        &self.rendezvous
    }

    /// The first caller creates the regions; all callers pass the same sizes.
    pub(crate) fn make_memories(&self, sizes: &[RegionSizes]) {
        self.memories.get_or_init(|| {
            let memory = |sizes: &RegionSizes| RankMemory {
                pool: Memory::new(sizes.pool_bytes),
                table: Memory::new(sizes.table_bytes),
            };
            sizes.iter().map(memory).collect()
        });
    }

    pub(crate) fn memory(&self, rank: Rank) -> Option<&RankMemory> {
        self.memories.get()?.get(rank.index())
    }
}

//! The transport of one rank in virtual time. It carries no bytes of pages: pools are addresses without memory.

use crate::world::{Arrived, World};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;
use vgasnet_conduit::{
    Arrival, Busy, Capabilities, Conduit, ConduitError, Rank, Region, RegionSizes, Sleeper, Transfer, Urgency,
};

/// Maximum number of arrivals in one poll.
const POLL_MAX: usize = 64;

/// The memory of a rank.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Never read or written.
    pub pool: Region,
    /// Real memory, zero at first.
    pub table: Region,
}

/// A rank's endpoint.
pub struct VirtualConduit {
    pub world: Arc<World>,
    pub rank: Rank,
    /// The memory of each rank.
    pub memories: Arc<[Memory]>,
}

impl VirtualConduit {
    fn memory(&self, rank: Rank) -> Option<&Memory> {
        (self.world.node_of(rank) == self.world.node_of(self.rank)).then(|| &self.memories[rank.index()])
    }
}

impl Conduit for VirtualConduit {
    fn name(&self) -> &str {
        "virtual"
    }

    fn rank(&self) -> Rank {
        self.rank
    }

    fn ranks(&self) -> u32 {
        self.memories.len() as u32
    }

    fn host_of(&self, rank: Rank) -> u32 {
        self.world.node_of(rank)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { peer_memory: true, wakes_on_arrival: true, second_mapping: false, signal_safe: true }
    }

    fn exchange(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, ConduitError> {
        Ok(vec![mine.to_vec(); self.memories.len()])
    }

    fn attach(&self, _sizes: RegionSizes) -> Result<(), ConduitError> {
        Ok(())
    }

    fn pool(&self, rank: Rank) -> Option<Region> {
        self.memory(rank).map(|memory| memory.pool)
    }

    fn table(&self, rank: Rank) -> Option<Region> {
        self.memory(rank).map(|memory| memory.table)
    }

    fn message_bytes_max(&self) -> usize {
        32 << 10
    }

    fn send(&self, to: Rank, head: &[u8], body: &[u8], _urgency: Urgency) -> Result<(), Busy> {
        self.world.send(self.rank, to, [head, body].concat().into());
        Ok(())
    }

    fn put(&self, transfer: &Transfer) -> Result<(), Busy> {
        self.world.put(self.rank, transfer);
        Ok(())
    }

    fn get(&self, transfer: &Transfer) -> Result<(), Busy> {
        self.world.get(self.rank, transfer);
        Ok(())
    }

    fn poll(&self, sink: &mut dyn FnMut(Arrival<'_>)) -> bool {
        let mut arrivals = 0;
        while arrivals < POLL_MAX {
            let Some(arrived) = self.world.take_arrival(self.rank) else { break };
            arrivals += 1;
            match arrived {
                Arrived::Message { from, bytes } => sink(Arrival::Message { from, bytes: &bytes }),
                Arrived::Complete(token) => sink(Arrival::Complete(token)),
            }
        }
        arrivals > 0
    }

    fn has_arrivals(&self) -> bool {
        self.world.has_arrivals(self.rank)
    }

    fn set_driving(&self, _driving: bool) -> bool {
        false
    }

    fn sleep(&self, _: Sleeper, _: Option<BorrowedFd<'_>>, _: Option<Duration>, _: &dyn Fn() -> bool) {}

    fn wake(&self, rank: Rank) {
        self.world.call(rank);
    }

    fn wake_helper(&self) {}

    fn close(&self) {}

    fn note_exit(&self, _status: i32) -> bool {
        true
    }

    fn exit(&self, status: i32) -> ! {
        std::process::exit(status)
    }
}

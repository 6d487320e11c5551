//! One rank's conduit.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use vgasnet_conduit::{
    Arrival, Busy, Capabilities, Conduit, ConduitError, EXCHANGE_BYTES_MAX, Rank, Region, RegionSizes, Sleeper,
    Transfer, Urgency,
};

use crate::hub::Hub;
use crate::network::{Move, OwnedArrival};

/// Maximum message size. Small, so that longer contents must be split.
const MESSAGE_BYTES_MAX: usize = 1024;

/// A rank's end of a [`Hub`].
pub struct SimConduit {
    hub: Arc<Hub>,
    rank: Rank,
    attached: AtomicBool,
}

impl SimConduit {
    pub(crate) fn new(hub: Arc<Hub>, rank: Rank) -> SimConduit {
        let attached = AtomicBool::new(hub.memory(rank).is_some());
        SimConduit { hub, rank, attached }
    }

    /// Whether the memory of `rank` is mapped here.
    fn has_memory_of(&self, rank: Rank) -> bool {
        let is_neighbour = || self.host_of(rank) == self.host_of(self.rank) && self.hub.settings().peer_memory;
        self.attached.load(Ordering::Acquire) && (rank == self.rank || is_neighbour())
    }

    /// One end of a transfer, on any rank.
    fn end(&self, rank: Rank, offset_bytes: usize, len_bytes: usize) -> Region {
        let pool = self.hub.memory(rank).expect("attach comes before any transfer").pool.region();
        Region { address: pool.part(offset_bytes, len_bytes).expose_provenance(), len_bytes }
    }

    /// This rank's end and the peer's.
    fn ends(&self, transfer: &Transfer) -> (Region, Region) {
        let own = self.end(self.rank, transfer.own_offset_bytes, transfer.len_bytes);
        (own, self.end(transfer.peer, transfer.peer_offset_bytes, transfer.len_bytes))
    }

    fn start(&self, transfer: &Transfer, from: Region, to: Region) -> Result<(), Busy> {
        let what = Move { rank: self.rank, from, to, token: transfer.token };
        // SAFETY: `ends` checked both regions against the pools, which live as long as the hub and thus longer than its
        // network. By the contract of put and get they are untouched until completion.
        unsafe { self.hub.network().transfer(what)? };
        self.hub.sleepers(self.rank).ring();
        Ok(())
    }
}

impl Conduit for SimConduit {
    fn name(&self) -> &str {
        "sim"
    }

    fn rank(&self) -> Rank {
        self.rank
    }

    fn ranks(&self) -> u32 {
        self.hub.ranks() as u32
    }

    fn host_of(&self, rank: Rank) -> u32 {
        self.hub.settings().hosts[rank.index()]
    }

    fn capabilities(&self) -> Capabilities {
        let peer_memory = self.hub.settings().peer_memory;
        Capabilities { peer_memory, wakes_on_arrival: true, second_mapping: false, signal_safe: true }
    }

    fn exchange(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, ConduitError> {
        assert!(mine.len() <= EXCHANGE_BYTES_MAX, "{} bytes are too many to exchange", mine.len());
        self.hub.rendezvous().exchange(self.rank, mine)
    }

    fn attach(&self, sizes: RegionSizes) -> Result<(), ConduitError> {
        assert!(!self.attached.load(Ordering::Acquire), "attach was called before");
        self.hub.make_memories(&sizes.of_all(self)?);
        self.attached.store(true, Ordering::Release);
        Ok(())
    }

    fn pool(&self, rank: Rank) -> Option<Region> {
        self.hub.memory(rank).filter(|_| self.has_memory_of(rank)).map(|memory| memory.pool.region())
    }

    fn table(&self, rank: Rank) -> Option<Region> {
        self.hub.memory(rank).filter(|_| self.has_memory_of(rank)).map(|memory| memory.table.region())
    }

    fn message_bytes_max(&self) -> usize {
        MESSAGE_BYTES_MAX
    }

    fn send(&self, to: Rank, head: &[u8], body: &[u8], urgency: Urgency) -> Result<(), Busy> {
        let message = [head, body].concat();
        assert!(message.len() <= MESSAGE_BYTES_MAX, "a message of {} bytes", message.len());
        let sent = self.hub.network().send(self.rank, to, message, urgency);
        match urgency {
            Urgency::WhenCalled if sent.is_ok() => self.hub.sleepers(to).ring_caller(),
            _ => self.hub.sleepers(to).ring(),
        }
        sent
    }

    fn put(&self, transfer: &Transfer) -> Result<(), Busy> {
        let (own, peer) = self.ends(transfer);
        self.start(transfer, own, peer)
    }

    fn get(&self, transfer: &Transfer) -> Result<(), Busy> {
        let (own, peer) = self.ends(transfer);
        self.start(transfer, peer, own)
    }

    fn poll(&self, sink: &mut dyn FnMut(Arrival<'_>)) -> bool {
        let due = self.hub.network().poll(self.rank);
        for arrival in &due {
            sink(match arrival {
                OwnedArrival::Message { from, bytes } => Arrival::Message { from: *from, bytes },
                OwnedArrival::Complete(token) => Arrival::Complete(*token),
            });
        }
        !due.is_empty()
    }

    fn has_arrivals(&self) -> bool {
        self.hub.has_arrivals(self.rank)
    }

    fn set_driving(&self, driving: bool) -> bool {
        self.hub.sleepers(self.rank).set_driving(driving);
        self.hub.has_arrivals(self.rank)
    }

    fn sleep(
        &self,
        sleeper: Sleeper,
        also: Option<BorrowedFd<'_>>,
        timeout: Option<Duration>,
        stay_awake: &dyn Fn() -> bool,
    ) {
        // `stay_awake` comes first: by contract it is called even when something has arrived.
        let stay = |arrivals_matter| stay_awake() || (arrivals_matter && self.hub.has_arrivals(self.rank));
        self.hub.sleepers(self.rank).sleep(sleeper, also, timeout, stay);
    }

    fn wake(&self, rank: Rank) {
        self.hub.sleepers(rank).ring();
    }

    fn wake_helper(&self) {
        self.hub.sleepers(self.rank).ring_helper();
    }

    fn close(&self) {}

    fn note_exit(&self, _status: i32) -> bool {
        true
    }

    /// Ends the process, and with it all ranks.
    fn exit(&self, status: i32) -> ! {
        std::process::exit(status)
    }
}

//! The conduit itself.

use std::os::fd::BorrowedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use vgasnet_conduit::{
    Arrival, Busy, Capabilities, Conduit, ConduitError, Rank, Region, RegionSizes, SLOW, Sleeper, Transfer, Urgency,
    agree, give_way,
};
use vgasnet_protocol::RankState;
use vgasnet_smp::SmpConduit;

use crate::agent_link::{self, Passed, open_agent_link, pass_descriptor, report};
use crate::backoff::{self, Backoff, Pause};
use crate::network::{Network, PoolMemory};
use crate::start::{Hosts, meet};

/// Shared memory within hosts, a network between them.
pub struct HybridConduit<N> {
    network: N,
    host: SmpConduit,
    hosts: Hosts,
    backoff: Backoff,
    /// This rank's pool, if it lies in the network's memory, and whether it is a shared mapping.
    network_pool: OnceLock<(Region, bool)>,
    /// A client thread drives, and polls the network.
    is_driven: AtomicBool,
    tell_slow: OnceLock<fn(&[Rank], Duration)>,
}

impl<N: Network> HybridConduit<N> {
    /// Makes this process a rank of the job started by `network`. Without `share_hosts`, the ranks of a host use the
    /// network too.
    ///
    /// # Errors
    /// The ranks of a host cannot share memory.
    pub fn start(network: N, share_hosts: bool) -> Result<Self, ConduitError> {
        open_agent_link();
        report(RankState::Initialised, Some(network.rank().0));
        let hosts = Hosts::find(&network, share_hosts)?;
        let host = meet(&network, &hosts.members)?;
        let (backoff, network_pool, is_driven, tell_slow) = Default::default();
        Ok(HybridConduit { network, host, hosts, backoff, network_pool, is_driven, tell_slow })
    }

    /// The network.
    pub fn network(&self) -> &N {
        &self.network
    }

    /// A rank sharing memory, by its number on the host.
    fn neighbour(&self, rank: Rank) -> Option<Rank> {
        self.hosts.members.binary_search(&rank).ok().map(|place| Rank(place as u32))
    }

    fn needs_network(&self) -> bool {
        (self.hosts.members.len() as u32) < self.network.ranks()
    }

    /// The source of pools other than shared memory. A job without need of the network needs none of its memory.
    fn pool_memory(&self) -> Option<&dyn PoolMemory> {
        self.network.pool_memory().filter(|_| self.needs_network())
    }

    /// Sends a message another host will answer soon.
    fn far(&self, send: impl FnOnce(&N) -> Result<(), Busy>) -> Result<(), Busy> {
        self.backoff.reset();
        send(&self.network)
    }

    /// The neighbour sharing the pages of `rank`. Pools in the network's memory are reached by the network, even a
    /// neighbour's.
    fn neighbour_for_pages(&self, rank: Rank) -> Option<Rank> {
        self.neighbour(rank).filter(|_| self.network_pool.get().is_none())
    }
}

impl<N: Network> Conduit for HybridConduit<N> {
    fn name(&self) -> &str {
        self.network.name()
    }

    fn rank(&self) -> Rank {
        self.network.rank()
    }

    fn ranks(&self) -> u32 {
        self.network.ranks()
    }

    fn host_of(&self, rank: Rank) -> u32 {
        self.hosts.of_rank[rank.index()]
    }

    fn capabilities(&self) -> Capabilities {
        let is_mapped = |rank: &Rank| self.pool_memory().is_none_or(|memory| memory.is_mapped(*rank));
        let shares_hosts = self.hosts.members.len() > 1 || self.network.ranks() == 1;
        Capabilities {
            peer_memory: shares_hosts && self.hosts.members.iter().all(is_mapped),
            wakes_on_arrival: !self.needs_network(),
            // The network's locks and memory may be held by the program's own calls of it. A job on one host makes
            // none.
            signal_safe: !self.needs_network(),
            second_mapping: match self.network_pool.get() {
                Some((_, is_shared_mapping)) => *is_shared_mapping,
                None => self.host.capabilities().second_mapping,
            },
        }
    }

    fn exchange(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, ConduitError> {
        self.note_step();
        let (begin, mut times) = (Instant::now(), 1);
        self.network.exchange(mine, &mut || {
            let took = begin.elapsed();
            let Some(tell) = self.tell_slow.get().filter(|_| took >= SLOW * times) else { return };
            times = match self.to_tell(times) {
                Some(awaited) => {
                    tell(&awaited, SLOW * times);
                    u32::MAX
                }
                None => times + 1,
            };
        })
    }

    fn call_when_slow(&self, tell: fn(&[Rank], Duration)) {
        self.tell_slow.get_or_init(|| tell);
    }

    fn entrust(&self, file: BorrowedFd<'_>) {
        pass_descriptor(file, Passed::File);
    }

    fn note_step(&self) {
        self.host.note_step();
    }

    /// The awaited ranks of this host, if any. If all have arrived, its first rank does not know of others.
    fn awaited(&self) -> Option<Vec<Rank>> {
        let members = &self.hosts.members;
        let here: Vec<Rank> = self.host.awaited()?.iter().map(|place| members[place.index()]).collect();
        let may_be_elsewhere = self.needs_network() && here.is_empty() && members[0] == self.rank();
        (!may_be_elsewhere).then_some(here)
    }

    fn attach(&self, sizes: RegionSizes) -> Result<(), ConduitError> {
        let given = self.pool_memory().map(|memory| memory.allocate(sizes.pool_bytes)).transpose();
        agree(|told| self.network.exchange(told, &mut || {}), &given, &[])?;
        let given = given?;
        let attached = self.host.attach(given.map_or(sizes, |_| RegionSizes { pool_bytes: 0, ..sizes }));
        agree(|told| self.network.exchange(told, &mut || {}), &attached, &[])?;
        let own = given.or_else(|| self.pool(self.rank())).expect("the host has attached");
        self.network.attach(own)?;
        if let Some(given) = given {
            self.network_pool.get_or_init(|| (given, given.is_shared_mapping()));
        }
        report(RankState::Attached, Some(self.rank().0));
        Ok(())
    }

    fn pool(&self, rank: Rank) -> Option<Region> {
        let neighbour = self.neighbour(rank)?;
        match (self.network_pool.get(), self.pool_memory()) {
            (Some((own, _)), _) if rank == self.rank() => Some(*own),
            (Some(_), Some(memory)) => memory.of(rank).filter(|_| self.capabilities().peer_memory),
            _ => self.host.pool(neighbour),
        }
    }

    fn table(&self, rank: Rank) -> Option<Region> {
        let is_mapped = rank == self.rank() || self.capabilities().peer_memory;
        self.host.table(self.neighbour(rank).filter(|_| is_mapped)?)
    }

    fn message_bytes_max(&self) -> usize {
        let on_host = self.host.message_bytes_max();
        if self.needs_network() { on_host.min(self.network.message_bytes_max()) } else { on_host }
    }

    fn send(&self, to: Rank, head: &[u8], body: &[u8], urgency: Urgency) -> Result<(), Busy> {
        match self.neighbour(to) {
            Some(place) => self.host.send(place, head, body, urgency),
            None => self.far(|network| network.send(to, head, body, urgency)),
        }
    }

    fn put(&self, transfer: &Transfer) -> Result<(), Busy> {
        match self.neighbour_for_pages(transfer.peer) {
            Some(peer) => self.host.put(&Transfer { peer, ..*transfer }),
            None => self.far(|network| network.put(transfer)),
        }
    }

    fn get(&self, transfer: &Transfer) -> Result<(), Busy> {
        match self.neighbour_for_pages(transfer.peer) {
            Some(peer) => self.host.get(&Transfer { peer, ..*transfer }),
            None => self.far(|network| network.get(transfer)),
        }
    }

    fn poll(&self, sink: &mut dyn FnMut(Arrival<'_>)) -> bool {
        let near = self.host.poll(&mut |arrival| match arrival {
            Arrival::Message { from, bytes } => {
                sink(Arrival::Message { from: self.hosts.members[from.index()], bytes })
            }
            other => sink(other),
        });
        let far = self.needs_network() && self.network.poll(sink);
        if far {
            self.backoff.reset();
        }
        near || far
    }

    fn has_arrivals(&self) -> bool {
        self.host.has_arrivals()
    }

    fn set_driving(&self, driving: bool) -> bool {
        self.is_driven.store(driving, Ordering::SeqCst);
        self.host.set_driving(driving)
    }

    fn sleep(
        &self,
        sleeper: Sleeper,
        also: Option<BorrowedFd<'_>>,
        timeout: Option<Duration>,
        stay_awake: &dyn Fn() -> bool,
    ) {
        if !self.needs_network() {
            return self.host.sleep(sleeper, also, timeout, stay_awake);
        }
        let pause = match sleeper {
            Sleeper::Helper if self.is_driven.load(Ordering::SeqCst) => Pause::Sleep(backoff::WHILE_DRIVEN),
            _ => self.backoff.next(self.network.is_active(), timeout),
        };
        let limit = match pause {
            Pause::GiveWay if give_way() => return,
            Pause::GiveWay => backoff::FIRST,
            Pause::Sleep(limit) => limit,
        };
        let limit = timeout.map_or(limit, |timeout| timeout.min(limit));
        self.host.sleep(sleeper, also, Some(limit), stay_awake);
    }

    fn wake(&self, rank: Rank) {
        if let Some(place) = self.neighbour(rank) {
            self.host.wake(place);
        }
    }

    fn wake_caller(&self, rank: Rank) {
        if let Some(place) = self.neighbour(rank) {
            self.host.wake_caller(place);
        }
    }

    fn wake_helper(&self) {
        self.host.wake_helper();
    }

    fn call_under_way(&self) -> Option<u64> {
        self.network.call_under_way()
    }

    fn call_before_end(&self, leave: fn()) {
        self.network.call_before_end(leave);
    }

    fn is_abandoned(&self) -> bool {
        self.network.is_abandoned()
    }

    fn close(&self) {
        // The rank has done its part, whatever happens to the network.
        report(RankState::Exiting(0), Some(self.rank().0));
        self.network.close();
    }

    fn expect_failure(&self) {
        agent_link::keep_connections();
    }

    fn note_exit(&self, status: i32) -> bool {
        agent_link::note_exit(&self.network, status)
    }

    fn exit(&self, status: i32) -> ! {
        agent_link::exit(&self.network, status)
    }
}

//! One job on a machine, and its outcome.

use crate::hints::Hints;
use crate::job::{VirtualJob, Ways};
use crate::lcc;
use crate::machine::Machine;
use crate::program::{Data, Order, Program, false_sharing, rewrite};
use crate::rank::{CALL_NANOS, VirtualRank};
use crate::shared_files::Shared;
use serde::Serialize;
use vgasnet_engine::{EngineOptions, Optimisations};
use vgasnet_protocol::coherence::AsInPaper;
use vgasnet_protocol::guests::offers_max;
use vgasnet_protocol::replacement::PolicyKind;
use vgasnet_protocol::shipping::REQUEST_BYTES;

/// The ranks' protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ProtocolKind {
    /// The library's protocol.
    Ours,
    /// The paper's protocol: eager eviction notices, no read-ahead, no shipped operations, whole pages, and writers
    /// that do not wait for invalidations.
    Paper,
}

/// The place of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Homes {
    /// In the segment of the first rank.
    First,
    /// The same amount in each segment.
    All,
    /// In the segment of the first rank, with homes of the pages round robin on all ranks.
    Cyclic,
}

/// The accesses of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Each rank reads or writes as many pieces as all data has, or fewer.
    All {
        /// The order of accesses.
        order: Order,
        /// The length of a piece.
        len_bytes: usize,
        /// Puts instead of gets.
        is_put: bool,
        /// Maximum number of pieces.
        pieces_max: u64,
    },
    /// Each rank puts single bytes to its own places in one page, then waits at a barrier, repeatedly.
    FalseSharing {
        /// Number of rounds.
        rounds: u32,
        /// Puts of a rank between two barriers.
        puts: u32,
    },
    /// All ranks read one page in a pass, and the last rank overwrites it in the next. The put waits until no other
    /// rank has the page.
    Rewrite,
    /// In the first pass `first`, if any, reads all data, one page per get. In the next pass the second rank does, in
    /// random order.
    AfterOther {
        /// The reader of the first pass.
        first: Option<u32>,
    },
    /// All ranks use a shared file. Its pages have homes round robin.
    Shared(Shared),
    /// All ranks get neighbour lists of a graph distributed over all of them.
    Lcc,
}

/// The way of a page requested by many ranks, and of its invalidation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Spread {
    /// A holder serves all readers, and the home tells all holders itself to drop the page.
    AtOnce,
    /// As a tree, and invalidations are passed on from holder to holder.
    Tree,
    /// As a tree, in which the page goes to each node once: homes know the ranks of each node.
    TreeOfNodes,
}

/// A job on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Number of ranks.
    pub ranks: u32,
    /// Their protocol.
    pub protocol: ProtocolKind,
    /// Ranks use each other's pools.
    pub cooperative: bool,
    /// The way of a page to many ranks. At once in the paper's protocol.
    pub spread: Spread,
    /// Eviction prefers pages with copies on other ranks. In the paper's protocol it does not.
    pub spares: bool,
    /// Notices of clean evictions wait for other messages to the home, or until there are many, and messages to one
    /// rank are bundled. In the paper's protocol notices go out at once and each message separately.
    pub notices_wait: bool,
    /// Pages leaving their last pool are offered to ranks with spare frames, as with `VGASNET_IDLE_POOLS=1`. Never in
    /// the paper's protocol.
    pub guests: bool,
    /// Read requests that reach their homes in no time.
    pub hints: Hints,
    /// A home keeps a copy of a page read from its disk for another rank.
    pub home_keeps: bool,
    /// The accesses.
    pub pattern: Pattern,
    /// Number of ranks that access the data, starting with the second; the pools of the others are idle. `None`: all
    /// ranks.
    pub readers: Option<u32>,
    /// The size of all data, in pools of one rank.
    pub data_pools: f64,
    /// The place of the data.
    pub homes: Homes,
    /// Factor by which pools and data are smaller than the machine's.
    pub scale: u64,
    /// Number of passes. The pools are empty before the first.
    pub passes: u32,
    /// Seed of everything random.
    pub seed: u64,
}

/// The outcome of one pass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Time until the last rank was done, in seconds.
    pub seconds: f64,
    /// Throughput of a rank, in MB a second.
    pub megabytes_a_second_each: f64,
    /// Accesses to a page already in a usable pool.
    pub hits: u64,
    /// All other accesses.
    pub misses: u64,
    /// Mean latency of a miss, in microseconds.
    pub miss_us: f64,
    /// Messages of the whole job per miss.
    pub messages_a_miss: f64,
    /// Pages received by ranks, with or without an access waiting for them. Reads of a rank's own disk are not counted.
    pub pages: u64,
    /// Messages of the whole job per received page; `None` if accesses go to the pages.
    pub messages_a_page: Option<f64>,
    /// Orders to serve a page sent to ranks that had given it up. Each costs two messages, the order and the answer.
    pub bounces: u64,
    /// Messages containing only notices of given-up pages.
    pub notices: u64,
    /// Pages and parts of pages transferred between ranks.
    pub transfers: u64,
    /// Reads of the disks.
    pub disk_reads: u64,
    /// Writes of the disks.
    pub disk_writes: u64,
}

/// The reader in the second pass of [`Pattern::AfterOther`].
const READER: u32 = 1;

impl Outcome {
    /// A count per received page.
    pub fn a_page(&self, count: u64) -> f64 {
        count as f64 / self.pages.max(1) as f64
    }
}

impl Point {
    /// Whether pages are only requested for reading.
    pub fn only_reads(&self) -> bool {
        matches!(self.pattern, Pattern::All { is_put: false, .. } | Pattern::AfterOther { .. } | Pattern::Lcc)
    }

    /// Cold reads of all data by all ranks, with the library's protocol and cooperation.
    pub fn reads(ranks: u32, order: Order, data_pools: f64, page_bytes: usize) -> Point {
        Point {
            ranks,
            protocol: ProtocolKind::Ours,
            cooperative: true,
            spread: Spread::TreeOfNodes,
            spares: true,
            notices_wait: true,
            guests: false,
            hints: Hints::None,
            readers: None,
            home_keeps: false,
            pattern: Pattern::All { order, len_bytes: page_bytes, is_put: false, pieces_max: u64::MAX },
            data_pools,
            homes: Homes::First,
            scale: 64,
            passes: 1,
            seed: 1,
        }
    }

    /// Runs the job. Returns the outcome of each pass.
    ///
    /// # Errors
    /// An engine has failed, or no event is left although a program has not ended. One line.
    pub fn run(&self, machine: &Machine) -> Result<Vec<Outcome>, String> {
        machine.check_scale(self.scale)?;
        let mut machine = machine.clone();
        let data = self.data(&machine);
        let frames = machine.frames_at(self.scale);
        machine.node.pool = frames * machine.node.page;
        let is_ours = self.protocol == ProtocolKind::Ours;
        let Point { spares, notices_wait, hints, home_keeps, .. } = *self;
        let optimisations = Optimisations {
            works_ahead: is_ours,
            spares_only_copies: is_ours && spares,
            bundles: is_ours && notices_wait,
        };
        let options = EngineOptions {
            policy: if is_ours { PolicyKind::default() } else { PolicyKind::Clock },
            cooperative: self.cooperative,
            ships: is_ours.then_some(REQUEST_BYTES),
            offers_max: if is_ours && self.guests { offers_max(frames as u32) } else { 0 },
            optimisations,
        };
        let as_in_paper = AsInPaper {
            notices_at_once: !is_ours || !notices_wait,
            invalidations_unawaited: !is_ours,
            readers_at_once: !is_ours || self.spread == Spread::AtOnce,
        };
        let cyclic_homes = self.homes == Homes::Cyclic;
        let hosts_are_known = is_ours && self.spread == Spread::TreeOfNodes;
        let ways = Ways { options, as_in_paper, is_ours, hints, hosts_are_known, home_keeps, cyclic_homes };
        let mut job = VirtualJob::new(&machine, self.ranks, data, ways)?;
        job.empty()?;
        (0..self.passes).map(|pass| self.pass(&mut job, data, pass)).collect()
    }

    fn data(&self, machine: &Machine) -> Data {
        let homes = if self.homes == Homes::All { self.ranks } else { 1 };
        let frames = machine.frames_at(self.scale) as f64;
        let pages_each = match self.pattern {
            Pattern::Shared(shared) => pages_each(shared.bytes(self.ranks), machine, homes),
            Pattern::Lcc => pages_each(lcc::bytes(self.ranks), machine, homes),
            _ => ((frames * self.data_pools / f64::from(homes)).round() as u32).max(1),
        };
        Data { homes, pages_each, page_bytes: machine.node.page as usize }
    }

    /// Bytes of all data on this machine.
    pub fn data_bytes(&self, machine: &Machine) -> u64 {
        self.data(machine).pages() * machine.node.page
    }

    fn pass(&self, job: &mut VirtualJob, data: Data, pass: u32) -> Result<Outcome, String> {
        if matches!(self.pattern, Pattern::Rewrite) {
            // The page's home may still be handling acknowledgements from the last readers.
            job.settle()?;
        }
        let before = job.world.traffic();
        let took = job.run(|rank| self.program(data, rank, pass))?;
        let after = job.world.traffic();
        let sum = |of: fn(&VirtualRank) -> u64| job.ranks.iter().map(of).sum::<u64>();
        let (hits, misses, waited) = (sum(|rank| rank.hits), sum(|rank| rank.misses), sum(|rank| rank.waited));
        let seconds = took as f64 / 1e9;
        let a_miss = |what: u64| what as f64 / misses.max(1) as f64;
        let messages = after.messages - before.messages;
        let pages = after.pages - before.pages;
        Ok(Outcome {
            seconds,
            megabytes_a_second_each: self.bytes_each(data) / seconds / 1e6,
            hits,
            misses,
            miss_us: a_miss(waited) / 1e3,
            messages_a_miss: a_miss(messages),
            pages,
            messages_a_page: (pages > 0).then(|| messages as f64 / pages as f64),
            bounces: after.bounces - before.bounces,
            notices: after.notices - before.notices,
            transfers: after.transfers - before.transfers,
            disk_reads: after.disk_reads - before.disk_reads,
            disk_writes: after.disk_writes - before.disk_writes,
        })
    }

    fn program(&self, data: Data, rank: u32, pass: u32) -> Program {
        match self.pattern {
            Pattern::All { .. } if self.readers.is_some_and(|readers| !(1..=readers).contains(&rank)) => {
                Box::new(std::iter::empty())
            }
            Pattern::All { order, len_bytes, is_put, pieces_max } => {
                let own = (u64::from(rank) << 16) + u64::from(pass);
                let seed = self.seed.wrapping_mul(1_000_003).wrapping_add(own);
                Box::new(
                    data.all(order, len_bytes, is_put, seed).take(usize::try_from(pieces_max).unwrap_or(usize::MAX)),
                )
            }
            Pattern::AfterOther { first } if pass == 0 && first == Some(rank) => {
                data.all(Order::Sequential, data.page_bytes, false, self.seed)
            }
            Pattern::AfterOther { .. } if pass > 0 && rank == READER => data.shuffled(self.seed),
            Pattern::AfterOther { .. } => Box::new(std::iter::empty()),
            Pattern::Shared(shared) => shared.program(data, rank, self.ranks),
            Pattern::Lcc => lcc::program(data, rank, self.ranks),
            Pattern::Rewrite => rewrite(rank + 1 == self.ranks, pass, data.page_bytes),
            Pattern::FalseSharing { rounds, puts } => false_sharing(rank, rounds, puts, data.page_bytes),
        }
    }

    fn bytes_each(&self, data: Data) -> f64 {
        match self.pattern {
            Pattern::All { len_bytes, pieces_max, .. } => {
                data.pieces(len_bytes).min(pieces_max) as f64 * len_bytes as f64
            }
            Pattern::Rewrite => data.page_bytes as f64,
            Pattern::AfterOther { .. } => (data.pages() * data.page_bytes as u64) as f64,
            Pattern::Shared(shared) => shared.moved_bytes() as f64,
            Pattern::Lcc => {
                let all: u64 = (0..self.ranks).map(|rank| lcc::moved_bytes(rank, self.ranks)).sum();
                all as f64 / f64::from(self.ranks)
            }
            Pattern::FalseSharing { rounds, puts } => f64::from(rounds * puts),
        }
    }
}

/// Pages of a home for this number of bytes in all.
fn pages_each(bytes: u64, machine: &Machine, homes: u32) -> u32 {
    bytes.div_ceil(machine.node.page).div_ceil(u64::from(homes)) as u32
}

/// Duration in seconds of a blocking one-byte RDMA put while this number of ranks put to one target: a round trip, and
/// the wait for the target's link.
pub(crate) fn rdma_put_seconds(machine: &Machine, ranks: u32) -> f64 {
    if ranks == 1 {
        return CALL_NANOS as f64 / 1e9;
    }
    let wire_bytes = crate::world::MESSAGE_HEAD_BYTES as f64 + 1.0;
    let queued = f64::from(ranks - 1) * wire_bytes / machine.link.bandwidth as f64;
    2.0 * machine.link.latency_us / 1e6 + machine.node.message_us / 2.0 / 1e6 + queued
}

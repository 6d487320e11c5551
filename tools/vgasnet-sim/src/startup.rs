//! The costs of init and attach: the ranks' contributions to exchanges, their transport, and the memory kept of them.
//!
//! All ranks do the same at the same time, so the cost of one rank is the cost of all. The startup of MPI or GASNet and
//! the reservation of files on disks are not counted.

use crate::{HANDLINGS, Machine, Table};
use serde::Serialize;
use vgasnet_memory::{Shape, all_frames, table_bytes};

/// The network for exchanges between hosts: messages, by Bruck's algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// MPI.
    Mpi,
    /// GASNet.
    Gasnet,
}

/// A collective step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An exchange in the job. Each rank contributes this many bytes, and the first rank of a host this many more.
    Job(&'static str, usize, usize),
    /// An exchange on the host. Each rank contributes this many bytes.
    Host(&'static str, usize),
    /// The first rank of a host hands out descriptors to the other ranks one by one: two for each rank and one for all.
    HandOut(&'static str),
}

/// Bytes at the start of a contribution: the rank's status.
const WELL: usize = 1;

/// Bytes of the address sent by the first rank of a host to the others.
const ADDRESS_BYTES: usize = 73;

const STEPS: [Step; 14] = [
    Step::Job("versions and hosts", 8 + 1 + 16, 0),
    Step::Job("addresses of shared memory", WELL, ADDRESS_BYTES),
    Step::HandOut("shared memory"),
    Step::Job("all have shared memory", WELL, 0),
    Step::Job("settings", WELL + 40, 0),
    Step::Job("settings agree", WELL, 0),
    Step::Job("sizes", WELL + size_of::<Shape>(), 0),
    Step::Job("pools of the network", WELL, 0),
    Step::Host("sizes of the host's memory", 16),
    Step::Host("all have mapped it", WELL),
    Step::Job("memory is there", WELL, 0),
    Step::Job("free places", WELL + 4, 0),
    Step::Job("segments", WELL + 16, 0),
    Step::Job("runtimes are there", WELL, 0),
];

impl Network {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Network::Mpi => "MPI",
            Network::Gasnet => "GASNet",
        }
    }

    /// The collective steps from the start of the network to the end of attach, in order.
    pub fn steps(self) -> Vec<Step> {
        let mut steps = STEPS.to_vec();
        // The network learns of the pool after the pool has been mapped.
        let after =
            steps.iter().position(|step| matches!(step, Step::Job("memory is there", ..))).expect("it is a step");
        match self {
            Network::Mpi => steps.insert(after + 1, Step::Job("pools", 0, 0)),
            Network::Gasnet => {
                steps.insert(after + 1, Step::Job("pools", WELL + 24, 0));
                steps.insert(0, Step::Job("versions", 8 + 1, 0));
            }
        }
        steps
    }

    /// The largest message, if GASNet accepts the library's preferred size.
    fn message_bytes(self) -> u64 {
        match self {
            Network::Mpi => 8 << 10,
            Network::Gasnet => (32 << 10) + 256,
        }
    }

    /// Memory kept by a rank per rank of the job: its purpose, and its bytes.
    pub fn kept(self) -> Vec<(&'static str, u64)> {
        let mut kept = vec![
            ("place of its segment", 16),
            ("its pages and frames", 8),
            ("its windows of Active Messages", 17),
            ("its place in the team of all", 4),
            ("its declared ranges", 4),
            ("its host", 4),
        ];
        if self == Network::Gasnet {
            kept.push(("place of its pool", 10));
        }
        kept
    }
}

/// A starting job.
#[derive(Clone, Copy, Debug)]
pub struct StartingJob {
    /// Number of hosts.
    pub hosts: u32,
    /// Ranks on each host.
    pub ranks_a_host: u32,
    /// The network for exchanges between hosts.
    pub network: Network,
}

/// The cost of a step for each rank.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Exchange {
    /// The subject of the step.
    pub what: &'static str,
    /// The bytes contributed by a rank. The first rank of a host may contribute more.
    pub told_bytes: u64,
    /// Their transport.
    pub way: &'static str,
    /// Messages sent, and also received, by a rank.
    pub messages: u64,
    /// Bytes sent, and also received, by a rank.
    pub bytes: u64,
    /// Bytes over the link of a host, in each direction.
    pub link_bytes: u64,
    /// Temporary memory of a rank for the contributions of all ranks, in bytes.
    pub passing_bytes: u64,
    /// Duration in seconds.
    pub seconds: f64,
}

/// The cost of startup.
#[derive(Clone, Debug, Serialize)]
pub struct StartUp {
    /// Number of hosts.
    pub hosts: u32,
    /// Number of ranks.
    pub ranks: u64,
    /// The network for exchanges between hosts.
    pub network: Network,
    /// Messages sent, and also received, by a rank.
    pub messages: u64,
    /// Bytes sent, and also received, by a rank.
    pub bytes: u64,
    /// Bytes over the link of a host, in each direction.
    pub link_bytes: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Memory kept by a rank per rank of the job, in bytes.
    pub kept_bytes_a_rank: u64,
    /// Memory kept by a rank for all ranks, in bytes.
    pub kept_bytes: u64,
    /// Peak of a rank's temporary memory for contributions, in bytes.
    pub passing_bytes: u64,
    /// Addresses for the memory of all ranks of a host, in bytes.
    pub mapped_bytes: u64,
    /// The costs of each step.
    pub exchanges: Vec<Exchange>,
}

/// The header of a part of an exchange.
const HEADER_BYTES: u64 = 16;

/// Maximum number of descriptors in one message over a socket.
const DESCRIPTORS_A_MESSAGE: u64 = 253;

impl StartingJob {
    /// The cost of startup on this machine, for ranks with the machine's pools.
    pub fn start(&self, machine: &Machine) -> StartUp {
        let ranks = self.ranks();
        let exchanges: Vec<_> = self.network.steps().into_iter().map(|step| self.step(machine, step)).collect();
        let sum = |of: fn(&Exchange) -> u64| exchanges.iter().map(of).sum();
        let kept_bytes_a_rank = self.network.kept().iter().map(|(_, bytes)| bytes).sum();
        let page_bytes = machine.node.page as usize;
        let shape = Shape { pages: 0, frames: (machine.node.pool / machine.node.page) as u32 };
        let pool_bytes = u64::from(all_frames(shape.frames, page_bytes)) * machine.node.page;
        StartUp {
            hosts: self.hosts,
            ranks,
            network: self.network,
            messages: sum(|one| one.messages),
            bytes: sum(|one| one.bytes),
            link_bytes: sum(|one| one.link_bytes),
            seconds: exchanges.iter().map(|one| one.seconds).sum(),
            kept_bytes_a_rank,
            kept_bytes: kept_bytes_a_rank * ranks,
            passing_bytes: exchanges.iter().map(|one| one.passing_bytes).max().unwrap_or_default(),
            mapped_bytes: u64::from(self.ranks_a_host) * (pool_bytes + table_bytes(shape, page_bytes) as u64),
            exchanges,
        }
    }

    fn ranks(&self) -> u64 {
        u64::from(self.hosts) * u64::from(self.ranks_a_host)
    }

    fn step(&self, machine: &Machine, step: Step) -> Exchange {
        let here = u64::from(self.ranks_a_host);
        let message = machine.node.message_us * 1e-6;
        match step {
            Step::Job(what, told, more) => {
                let (told, more) = (told as u64, more as u64);
                let exchange = self.exchange(machine, told, more);
                // Each contribution becomes a separate vector.
                let vectors = self.ranks() * (size_of::<Vec<u8>>() as u64 + told) + u64::from(self.hosts) * more;
                Exchange { what, told_bytes: told, passing_bytes: exchange.passing_bytes + vectors, ..exchange }
            }
            Step::Host(what, told) => {
                // Two barriers, which the ranks enter one after another.
                let seconds = 2.0 * here as f64 * message + (here * told as u64) as f64 / machine.node.copy as f64;
                Exchange { what, told_bytes: told as u64, way: "shared memory", seconds, ..Exchange::default() }
            }
            Step::HandOut(what) => {
                let messages = 2 + (2 * here + 1).div_ceil(DESCRIPTORS_A_MESSAGE);
                let seconds = ((here - 1) * messages) as f64 * HANDLINGS * message;
                Exchange { what, way: "a socket", seconds, ..Exchange::default() }
            }
        }
    }

    /// An exchange. Each rank contributes `told` bytes, and the first rank of a host `more` in addition.
    fn exchange(&self, machine: &Machine, told: u64, more: u64) -> Exchange {
        let (ranks, here) = (self.ranks(), u64::from(self.ranks_a_host));
        let all_of = |blocks: u64| blocks * (2 + told) + blocks.div_ceil(here) * more;
        let mut exchange = Exchange { way: "network", passing_bytes: all_of(ranks), ..Exchange::default() };
        for round in 0..ranks.next_power_of_two().trailing_zeros() {
            // Each rank sends its accumulated contributions to the rank `distance` below.
            let distance = 1 << round;
            let bytes = all_of(distance.min(ranks - distance));
            let parts = bytes.div_ceil(self.network.message_bytes() - HEADER_BYTES);
            let crossing = if here == ranks { 0 } else { distance.min(here) };
            exchange.add(self.round(machine, bytes + parts * HEADER_BYTES, parts, crossing));
        }
        exchange
    }

    /// A round in which each rank sends `bytes` in this number of messages, and `crossing` ranks of a host send to
    /// another host.
    fn round(&self, machine: &Machine, bytes: u64, messages: u64, crossing: u64) -> Exchange {
        let handling = HANDLINGS * messages as f64 * machine.node.message_us * 1e-6;
        let link_bytes = crossing * bytes;
        let link = match crossing {
            0 => 0.0,
            _ => machine.link.latency_us * 1e-6 + link_bytes as f64 / machine.link.bandwidth as f64,
        };
        let seconds = handling + link + bytes as f64 / machine.node.copy as f64;
        Exchange { messages, bytes, link_bytes, seconds, ..Exchange::default() }
    }
}

impl Exchange {
    /// Adds the costs of a round.
    fn add(&mut self, round: Exchange) {
        self.messages += round.messages;
        self.bytes += round.bytes;
        self.link_bytes += round.link_bytes;
        self.seconds += round.seconds;
    }
}

/// A row for each number of hosts.
pub fn table(all: &[StartUp]) -> Table {
    let mut table = Table::new(&[
        "hosts",
        "ranks",
        "messages",
        "MB a rank",
        "MB a link",
        "seconds",
        "kept a rank",
        "kept MB",
        "passing MB",
        "mapped GB",
    ]);
    for one in all {
        table.row(vec![
            one.hosts.to_string(),
            one.ranks.to_string(),
            one.messages.to_string(),
            format!("{:.1}", one.bytes as f64 / 1e6),
            format!("{:.1}", one.link_bytes as f64 / 1e6),
            format!("{:.3}", one.seconds),
            one.kept_bytes_a_rank.to_string(),
            format!("{:.1}", one.kept_bytes as f64 / 1e6),
            format!("{:.1}", one.passing_bytes as f64 / 1e6),
            format!("{:.1}", one.mapped_bytes as f64 / 1e9),
        ]);
    }
    table
}

/// A row for each step of one job.
pub fn steps_table(one: &StartUp) -> Table {
    let mut table = Table::new(&["step", "told", "way", "messages", "MB a rank", "MB a link", "seconds"]);
    for step in &one.exchanges {
        table.row(vec![
            step.what.to_string(),
            step.told_bytes.to_string(),
            step.way.to_string(),
            step.messages.to_string(),
            format!("{:.1}", step.bytes as f64 / 1e6),
            format!("{:.1}", step.link_bytes as f64 / 1e6),
            format!("{:.6}", step.seconds),
        ]);
    }
    table
}

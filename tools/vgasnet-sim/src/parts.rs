//! The gain of each part of the library's protocol that the paper's protocol lacks, alone and together.

use crate::paper::{PUTS, ROUNDS};
use crate::point::rdma_put_seconds;
use crate::{Machine, Order, Outcome, Pattern, Point, Progress, ProtocolKind, Spread, Table, short};
use serde::Serialize;

/// Number of ranks.
const RANKS: u32 = 32;

/// The parts of a protocol.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Parts {
    /// Its name.
    pub name: &'static str,
    /// Its base protocol.
    pub protocol: ProtocolKind,
    /// See [`Point::spread`].
    pub spread: Spread,
    /// See [`Point::spares`].
    pub spares: bool,
    /// See [`Point::notices_wait`].
    pub notices_wait: bool,
    /// See [`Point::guests`].
    pub guests: bool,
}

const NONE: Parts = Parts {
    name: "none of the four",
    protocol: ProtocolKind::Ours,
    spread: Spread::AtOnce,
    spares: false,
    notices_wait: false,
    guests: false,
};

/// The paper's protocol, and the library's with no part, one part, and all of them.
pub const VARIANTS: [Parts; 8] = [
    Parts { name: "paper's protocol", protocol: ProtocolKind::Paper, ..NONE },
    NONE,
    Parts { name: "trees", spread: Spread::TreeOfNodes, ..NONE },
    Parts { name: "only copies stay", spares: true, ..NONE },
    Parts { name: "messages together", notices_wait: true, ..NONE },
    Parts { name: "idle pools", guests: true, ..NONE },
    Parts { name: "all but idle pools", spread: Spread::TreeOfNodes, spares: true, notices_wait: true, ..NONE },
    Parts { name: "all", spread: Spread::TreeOfNodes, spares: true, notices_wait: true, guests: true, ..NONE },
];

/// A job, and the numbers compared.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// All ranks read the first rank's data of these sizes, in pools. With several sizes the first pass of each counts,
    /// with one size both passes.
    Reads(Order, &'static [f64]),
    /// All ranks put single bytes to one page.
    FalseSharing,
}

const WORK: [(&str, Work); 6] = [
    ("in order, just below a pool, just past it", Work::Reads(Order::Sequential, &[0.9, 1.1])),
    ("at random, the same", Work::Reads(Order::Random, &[0.9, 1.1])),
    ("in order, data of 16 pools, first and second time", Work::Reads(Order::Sequential, &[16.0])),
    ("at random, the same", Work::Reads(Order::Random, &[16.0])),
    ("at random, data of 28 pools, first and second time", Work::Reads(Order::Random, &[28.0])),
    ("false sharing: times as long as RDMA puts", Work::FalseSharing),
];

/// The results of a job for each of [`VARIANTS`].
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The job.
    pub what: &'static str,
    /// Throughput of 32 ranks relative to one, or another number described by the job.
    pub numbers: Vec<Vec<f64>>,
}

impl Compared {
    /// The results of the library with default settings: all parts but idle pools.
    pub fn by_default(&self) -> &[f64] {
        let is_default =
            |parts: &Parts| parts.spread != Spread::AtOnce && parts.spares && parts.notices_wait && !parts.guests;
        let at = VARIANTS.iter().position(is_default).expect("it is one of them");
        &self.numbers[at]
    }
}

/// Runs all jobs.
///
/// # Errors
/// As [`Point::run`].
pub fn run(machine: &Machine, scale: u64, seed: u64) -> Result<Vec<Compared>, String> {
    let mut progress = Progress::new("comparisons", WORK.len() * VARIANTS.len());
    let mut all = Vec::new();
    for (what, work) in WORK {
        let mut numbers = Vec::new();
        for parts in &VARIANTS {
            numbers.push(work.compare(machine, parts, scale, seed)?);
            progress.step();
        }
        all.push(Compared { what, numbers });
    }
    Ok(all)
}

/// A row for each job.
pub fn table(all: &[Compared]) -> Table {
    let first = format!("{RANKS} ranks, times as much as one rank");
    let heads: Vec<&str> = [first.as_str()].into_iter().chain(VARIANTS.iter().map(|parts| parts.name)).collect();
    let mut table = Table::new(&heads);
    let cell = |numbers: &Vec<f64>| numbers.iter().map(|number| short(*number)).collect::<Vec<_>>().join(", ");
    for Compared { what, numbers } in all {
        table.row([(*what).to_owned()].into_iter().chain(numbers.iter().map(cell)).collect());
    }
    table
}

/// Numbers of other holders of an overwritten page.
const HOLDERS: [u32; 5] = [16, 64, 256, 1024, 4096];

/// The additional latency of a put that overwrites a page with this number of other holders, compared with one.
///
/// # Errors
/// As [`Point::run`].
pub fn overwriting_table(machine: &Machine) -> Result<Table, String> {
    let miss_us = |holders: u32, spread| -> Result<f64, String> {
        let reads = Point::reads(holders + 1, Order::Sequential, 0.25, machine.node.page as usize);
        let point = Point { passes: 2, scale: machine.scale_max(), pattern: Pattern::Rewrite, spread, ..reads };
        Ok(point.run(machine)?[1].miss_us)
    };
    let heads = HOLDERS.map(|holders| holders.to_string());
    let heads: Vec<&str> =
        ["other ranks that have the page"].into_iter().chain(heads.iter().map(String::as_str)).collect();
    let mut table = Table::new(&heads);
    let ways = [
        ("the home tells all of them", Spread::AtOnce),
        ("they tell each other where they are more than 16", Spread::TreeOfNodes),
    ];
    for (name, spread) in ways {
        let alone = miss_us(1, spread)?;
        let waits = HOLDERS.map(|holders| Ok(format!("{:.0} us", miss_us(holders, spread)? - alone)));
        let cells = [Ok(name.to_owned())].into_iter().chain(waits).collect::<Result<_, String>>()?;
        table.row(cells);
    }
    Ok(table)
}

impl Work {
    fn compare(self, machine: &Machine, parts: &Parts, scale: u64, seed: u64) -> Result<Vec<f64>, String> {
        let Parts { protocol, spread, spares, notices_wait, guests, .. } = *parts;
        let page_bytes = machine.node.page as usize;
        let run =
            |point: Point| Point { protocol, spread, spares, notices_wait, guests, scale, seed, ..point }.run(machine);
        match self {
            Work::Reads(order, data) => {
                let passes = if data.len() == 1 { 2 } else { 1 };
                let reads = |ranks, pools| run(Point { passes, ..Point::reads(ranks, order, pools, page_bytes) });
                let times = |(all, one): (&Outcome, &Outcome)| {
                    f64::from(RANKS) * all.megabytes_a_second_each / one.megabytes_a_second_each
                };
                let mut numbers = Vec::new();
                for pools in data {
                    let (all, one) = (reads(RANKS, *pools)?, reads(1, *pools)?);
                    numbers.extend(all.iter().zip(&one).map(times));
                }
                Ok(numbers)
            }
            Work::FalseSharing => {
                let pattern = Pattern::FalseSharing { rounds: ROUNDS, puts: PUTS };
                let outcome = run(Point { pattern, ..Point::reads(RANKS, Order::Sequential, 0.25, page_bytes) })?[0];
                let puts = f64::from(ROUNDS * PUTS);
                Ok(vec![outcome.seconds / puts / rdma_put_seconds(machine, RANKS)])
            }
        }
    }
}

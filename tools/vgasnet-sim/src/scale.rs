//! The same work for more and more nodes: what of the throughput of a node is left.
//!
//! A node is one rank with the pools of all its ranks.

use crate::point::{Homes, Outcome, Pattern, Point};
use crate::program::Order;
use crate::{Machine, Progress, Shared, Table};
use serde::Serialize;

/// Of the benchmark of false sharing.
const ROUNDS: u32 = 3;
/// As the paper has it.
const PUTS: u32 = 10;

/// Accesses of a node where data grows with the nodes.
const PIECES: u64 = 64;

/// Bytes of a small access.
const SMALL_BYTES: usize = 64;

/// Pages where files are shared, as MPI's programs have them, and how much smaller than elsewhere pools are.
const FILE_PAGE_BYTES: u64 = 256 << 10;
const FILE_SCALE: u64 = 64;

/// What came of a pattern with so many nodes.
#[derive(Clone, Debug, Serialize)]
pub struct Scaled {
    /// The pattern.
    pub what: &'static str,
    /// The job.
    pub point: Point,
    /// What came of it.
    pub outcome: Outcome,
    /// The throughput of a node, as a part of that with the fewest nodes.
    pub part: f64,
}

/// What is the same for all points.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Pools and data are so many times smaller than the machine's.
    pub scale: u64,
    /// For what is random.
    pub seed: u64,
    /// See [`Point::holders_are_known`].
    pub holders_are_known: bool,
}

/// Runs each pattern with each of these numbers of nodes, ascending.
///
/// # Errors
/// As [`Point::run`].
pub fn run(machine: &Machine, nodes: &[u32], choice: Choice) -> Result<Vec<Scaled>, String> {
    let Choice { scale, seed, holders_are_known } = choice;
    let mut machine = machine.clone();
    machine.node.pool *= u64::from(machine.node.ranks);
    machine.node.ranks = 1;
    let mut progress = Progress::new("points", nodes.len() * PATTERNS.len());
    let mut all = Vec::new();
    for (what, point) in PATTERNS {
        let mut first = None;
        let mut machine = machine.clone();
        for ranks in nodes {
            let mut point = Point { scale, seed, holders_are_known, ..point(*ranks, machine.node.page as usize) };
            if let Pattern::Shared(_) = point.pattern {
                // Files have small pages. What they have is not much, and pools are small with it.
                (machine.node.page, point.scale) = (FILE_PAGE_BYTES, scale * FILE_SCALE);
            }
            let outcome = point.run(&machine)?[0];
            let rate = outcome.megabytes_a_second_each;
            let part = rate / *first.get_or_insert(rate);
            all.push(Scaled { what, point, outcome, part });
            progress.step();
        }
    }
    Ok(all)
}

type PointOf = fn(u32, usize) -> Point;

const PATTERNS: [(&str, PointOf); 9] = [
    ("all data of the first node, in order", |ranks, page| Point::reads(ranks, Order::Sequential, 0.9, page)),
    ("data of all nodes, all of it, in order", |ranks, page| Point {
        homes: Homes::All,
        ..Point::reads(ranks, Order::Sequential, 0.9, page)
    }),
    ("data of all nodes, pages at random", |ranks, page| of_all_nodes(ranks, page, page)),
    ("data of all nodes, 64 bytes at random", |ranks, page| of_all_nodes(ranks, page, SMALL_BYTES)),
    ("false sharing", |ranks, page| Point {
        pattern: Pattern::FalseSharing { rounds: ROUNDS, puts: PUTS },
        ..Point::reads(ranks, Order::Sequential, 0.25, page)
    }),
    ("lists of neighbours in a graph (LCC)", |ranks, page| of_all(ranks, page, Pattern::Lcc)),
    ("a shared file: sliding window", |ranks, page| of_all(ranks, page, Pattern::Shared(Shared::SlidingWindow))),
    ("a shared file: rows of all nodes in turns", |ranks, page| of_all(ranks, page, Pattern::Shared(Shared::Rows))),
    ("a shared file: checkpoint", |ranks, page| of_all(ranks, page, Pattern::Shared(Shared::Checkpoint))),
];

/// Data of all nodes, as much as the pattern has.
fn of_all(ranks: u32, page_bytes: usize, pattern: Pattern) -> Point {
    Point { homes: Homes::All, pattern, ..Point::reads(ranks, Order::Sequential, 1.0, page_bytes) }
}

/// Half a pool of data of each node.
fn of_all_nodes(ranks: u32, page_bytes: usize, len_bytes: usize) -> Point {
    let pattern = Pattern::All { order: Order::Random, len_bytes, is_put: false, pieces_max: PIECES };
    let data_pools = 0.5 * f64::from(ranks);
    Point { homes: Homes::All, pattern, ..Point::reads(ranks, Order::Random, data_pools, page_bytes) }
}

/// A row for each pattern and number of nodes.
pub fn table(all: &[Scaled]) -> Table {
    let mut table = Table::new(&["", "nodes", "MB/s a node", "of the fewest", "us a miss", "messages a miss"]);
    for Scaled { what, point, outcome, part } in all {
        table.row(vec![
            (*what).to_string(),
            point.ranks.to_string(),
            format!("{:.3}", outcome.megabytes_a_second_each),
            format!("{part:.2}"),
            format!("{:.1}", outcome.miss_us),
            format!("{:.2}", outcome.messages_a_miss),
        ]);
    }
    table
}

//! The same work for growing numbers of nodes: the remaining throughput of a node, and the messages per page.
//!
//! A node is one rank with the pools of all its ranks, except in one pattern.

use crate::paper::PUTS;
use crate::point::{Homes, Outcome, Pattern, Point};
use crate::program::Order;
use crate::{Hints, Machine, Progress, Shared, Table, short};
use serde::Serialize;

/// Rounds of the false-sharing benchmark.
const ROUNDS: u32 = 3;

/// Accesses per node if the data grows with the nodes.
const PIECES: u64 = 64;

/// Bytes of a small access.
const SMALL_BYTES: usize = 64;

/// For sequential reads: a node's data is this fraction of its pool, and a node reads the data of at most this many
/// nodes.
const PARTS_OF_POOL: u64 = 32;
const NODES_READ_MAX: u64 = 512;

/// Page size of shared files, as MPI programs use it, and the additional factor by which their pools are smaller.
const FILE_PAGE_BYTES: u64 = 256 << 10;
const FILE_SCALE: u64 = 64;

/// Target for the remaining throughput of a node.
pub const PART_TARGET: f64 = 0.8;
/// Target for the mean number of messages per page received for reading.
pub const MESSAGES_TARGET: f64 = 4.5;

/// The outcome of a pattern with a number of nodes.
#[derive(Clone, Debug, Serialize)]
pub struct Scaled {
    /// The pattern.
    pub what: &'static str,
    /// Number of nodes.
    pub nodes: u32,
    /// The job, with the scale used.
    pub point: Point,
    /// Pages in a rank's pool at this scale, and bytes of a page.
    pub frames: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// All data, in bytes.
    pub data_bytes: u64,
    /// The outcome of the job.
    pub outcome: Outcome,
    /// The throughput of a node.
    pub rate: f64,
    /// Unit of the throughput.
    pub unit: Unit,
    /// The throughput of a node relative to the smallest number of nodes.
    pub part: f64,
}

/// The unit of throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Bytes, in MB a second.
    Megabytes,
    /// Accesses a second, for bytes that grow with the nodes.
    Gets,
}

impl Unit {
    /// The unit as written behind a number.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Megabytes => "MB/s",
            Unit::Gets => "gets/s",
        }
    }
}

/// Options common to all points.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Factor by which pools and data are smaller than the machine's.
    pub scale: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// See [`Point::hints`].
    pub hints: Hints,
    /// Limit on the ranks of a job with all ranks of each node.
    pub ranks_max: u32,
}

/// [`Choice::ranks_max`] for jobs of about a minute.
pub const RANKS_MAX: u32 = 8192;

/// Runs each pattern with each of these numbers of nodes, which are ascending.
///
/// # Errors
/// As [`Point::run`].
pub fn run(machine: &Machine, nodes: &[u32], choice: Choice) -> Result<Vec<Scaled>, String> {
    run_only("", machine, nodes, choice)
}

/// The same for patterns with this text in their name.
///
/// # Errors
/// As [`run`]; also if no pattern matches.
pub fn run_only(text: &str, machine: &Machine, nodes: &[u32], choice: Choice) -> Result<Vec<Scaled>, String> {
    let patterns = || PATTERNS.iter().filter(|work| work.what.contains(text));
    if patterns().count() == 0 {
        let names = PATTERNS.map(|work| work.what).join("; ");
        return Err(format!("no pattern has \"{text}\" in its name; they are: {names}"));
    }
    let mut progress = Progress::new("points", nodes.len() * patterns().count());
    let mut all: Vec<Scaled> = Vec::new();
    for work in patterns() {
        let mut first = None;
        for count in nodes {
            if work.can_run(machine, *count, choice) {
                let mut scaled = work.run(machine, *count, choice)?;
                scaled.part = scaled.rate / *first.get_or_insert(scaled.rate);
                all.push(scaled);
            }
            progress.step();
        }
    }
    Ok(all)
}

/// A pattern of accesses.
struct Work {
    what: &'static str,
    unit: Unit,
    /// Nodes have all their ranks, instead of one with the pools of all.
    has_all_ranks: bool,
    /// The job for a number of ranks, bytes of a page, and pages of a pool.
    point: fn(u32, usize, u64) -> Point,
}

const fn work(what: &'static str, point: fn(u32, usize, u64) -> Point) -> Work {
    Work { what, unit: Unit::Megabytes, has_all_ranks: false, point }
}

const PATTERNS: [Work; 10] = [
    work("all data of the first node, in order", |ranks, page, _| Point::reads(ranks, Order::Sequential, 0.9, page)),
    work("data of all nodes, in order", of_all_in_order),
    work("data of all nodes, pages at random", |ranks, page, _| of_all_nodes(ranks, page, page)),
    Work {
        has_all_ranks: true,
        ..work("the same, with all ranks of a node", |ranks, page, _| of_all_nodes(ranks, page, page))
    },
    work("data of all nodes, 64 bytes at random", |ranks, page, _| of_all_nodes(ranks, page, SMALL_BYTES)),
    work("false sharing of one page", |ranks, page, _| Point {
        pattern: Pattern::FalseSharing { rounds: ROUNDS, puts: PUTS },
        ..Point::reads(ranks, Order::Sequential, 0.25, page)
    }),
    Work {
        unit: Unit::Gets,
        ..work("lists of neighbours in a graph", |ranks, page, _| of_all(ranks, page, Pattern::Lcc))
    },
    work("a shared file: sliding window", |ranks, page, _| shared(ranks, page, Shared::SlidingWindow)),
    work("a shared file: rows of all nodes in turns", |ranks, page, _| shared(ranks, page, Shared::Rows)),
    work("a shared file: checkpoint", |ranks, page, _| shared(ranks, page, Shared::Checkpoint)),
];

impl Work {
    fn can_run(&self, machine: &Machine, nodes: u32, choice: Choice) -> bool {
        !self.has_all_ranks || nodes.saturating_mul(machine.node.ranks) <= choice.ranks_max
    }

    fn run(&self, machine: &Machine, nodes: u32, choice: Choice) -> Result<Scaled, String> {
        let Choice { scale, seed, hints, .. } = choice;
        let mut machine = machine.clone();
        if !self.has_all_ranks {
            machine.node.pool *= u64::from(machine.node.ranks);
            machine.node.ranks = 1;
        }
        let mut scale = scale;
        let ranks = nodes * machine.node.ranks;
        let of = |machine: &Machine, scale| (self.point)(ranks, machine.node.page as usize, machine.frames_at(scale));
        if let Pattern::Shared(_) = of(&machine, scale).pattern {
            // Files have small pages. Their data is small, so pools are scaled down with it.
            (machine.node.page, scale) = (FILE_PAGE_BYTES, scale.saturating_mul(FILE_SCALE));
        }
        let scale = scale.min(machine.scale_max());
        let point = Point { scale, seed, hints, ..of(&machine, scale) };
        let outcome = point.run(&machine)?[0];
        let each = match self.unit {
            Unit::Megabytes => outcome.megabytes_a_second_each,
            Unit::Gets => (outcome.hits + outcome.misses) as f64 / f64::from(ranks) / outcome.seconds,
        };
        Ok(Scaled {
            what: self.what,
            nodes,
            point,
            frames: machine.frames_at(scale),
            page_bytes: machine.node.page,
            data_bytes: point.data_bytes(&machine),
            outcome,
            rate: each * f64::from(machine.node.ranks),
            unit: self.unit,
            part: 1.0,
        })
    }
}

/// Data on all nodes, of a size given by the pattern.
fn of_all(ranks: u32, page_bytes: usize, pattern: Pattern) -> Point {
    Point { homes: Homes::All, pattern, ..Point::reads(ranks, Order::Sequential, 1.0, page_bytes) }
}

fn shared(ranks: u32, page_bytes: usize, shared: Shared) -> Point {
    of_all(ranks, page_bytes, Pattern::Shared(shared))
}

/// The same amount of data on each node. All nodes read the first part of it, or all of it.
fn of_all_in_order(ranks: u32, page_bytes: usize, frames: u64) -> Point {
    let pages_each = (frames / PARTS_OF_POOL).max(1);
    let data_pools = (u64::from(ranks) * pages_each) as f64 / frames as f64;
    let pieces_max = NODES_READ_MAX * pages_each;
    let pattern = Pattern::All { order: Order::Sequential, len_bytes: page_bytes, is_put: false, pieces_max };
    Point { homes: Homes::All, pattern, ..Point::reads(ranks, Order::Sequential, data_pools, page_bytes) }
}

/// Half a pool of data on each node.
fn of_all_nodes(ranks: u32, page_bytes: usize, len_bytes: usize) -> Point {
    let pattern = Pattern::All { order: Order::Random, len_bytes, is_put: false, pieces_max: PIECES };
    let data_pools = 0.5 * f64::from(ranks);
    Point { homes: Homes::All, pattern, ..Point::reads(ranks, Order::Random, data_pools, page_bytes) }
}

/// A row for each pattern and number of nodes.
pub fn table(all: &[Scaled]) -> Table {
    let mut table = Table::new(&[
        "",
        "nodes",
        "ranks",
        "scale",
        "pages a pool",
        "data, pools of a rank",
        "of a node",
        "part of the fewest",
        "us a miss",
        "messages a miss",
        "messages a page",
        "notices",
        "bounces",
    ]);
    for one in all {
        table.row(vec![
            one.what.to_owned(),
            one.nodes.to_string(),
            one.point.ranks.to_string(),
            one.point.scale.to_string(),
            one.frames.to_string(),
            short(one.data_pools()),
            format!("{} {}", short(one.rate), one.unit.name()),
            one.part_cell(),
            short(one.outcome.miss_us),
            format!("{:.2}", one.outcome.messages_a_miss),
            one.messages_cell(),
            format!("{:.2}", one.outcome.a_page(one.outcome.notices)),
            format!("{:.2}", one.outcome.a_page(one.outcome.bounces)),
        ]);
    }
    table
}

/// A row for each pattern, with a cell for each number of nodes.
fn by_nodes(all: &[Scaled], cell: impl Fn(&Scaled) -> String) -> Table {
    let mut nodes: Vec<u32> = all.iter().map(|one| one.nodes).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let heads = [String::new()].into_iter().chain(nodes.iter().map(|nodes| format!("{nodes} nodes")));
    let heads: Vec<String> = heads.collect();
    let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    for Work { what, .. } in PATTERNS.iter().filter(|work| all.iter().any(|one| one.what == work.what)) {
        let of = |nodes: &u32| all.iter().find(|one| one.what == *what && one.nodes == *nodes);
        let cells = nodes.iter().map(|nodes| of(nodes).map_or_else(|| "not run".to_owned(), &cell));
        table.row([(*what).to_owned()].into_iter().chain(cells).collect());
    }
    table
}

/// The remaining throughput of a node, by pattern and nodes.
pub fn parts_table(all: &[Scaled]) -> Table {
    by_nodes(all, Scaled::part_cell)
}

/// Messages per received page, by pattern and nodes, with the notices and bounces among them.
pub fn messages_table(all: &[Scaled]) -> Table {
    by_nodes(all, messages_cell)
}

/// A cell of [`messages_table`].
pub fn messages_cell(one: &Scaled) -> String {
    if one.outcome.messages_a_page.is_none() || one.is_mostly_shipped() {
        return one.messages_cell();
    }
    let [notices, bounces] = [one.outcome.notices, one.outcome.bounces].map(|count| one.outcome.a_page(count));
    format!("{}; {notices:.2}, {bounces:.2}", one.messages_cell())
}

/// The gain in throughput if requests reach their homes in no time, for the same patterns and nodes.
pub fn hints_table(asked: &[Scaled], known: &[Scaled]) -> Table {
    let mut table = Table::new(&["", "nodes", "asked", "known", "more"]);
    for (asked, known) in asked.iter().zip(known) {
        let rate = |one: &Scaled| format!("{} {}", short(one.rate), one.unit.name());
        let more = format!("{:.0} %", 100.0 * known.more_than(asked));
        table.row(vec![asked.what.to_owned(), asked.nodes.to_string(), rate(asked), rate(known), more]);
    }
    table
}

impl Scaled {
    /// The gain in throughput over another point, as a fraction.
    pub fn more_than(&self, other: &Scaled) -> f64 {
        self.rate / other.rate - 1.0
    }

    /// All data, in pools of a rank.
    pub fn data_pools(&self) -> f64 {
        self.data_bytes as f64 / (self.frames * self.page_bytes) as f64
    }

    /// The remaining throughput, and whether it misses the target.
    pub fn part_cell(&self) -> String {
        let missed = if self.part < PART_TARGET - 0.005 { ", missed" } else { "" };
        format!("{:.2}{missed}", self.part)
    }

    /// Whether most misses were served by shipping the operation, so most messages belong to no page.
    fn is_mostly_shipped(&self) -> bool {
        self.point.only_reads() && self.outcome.pages * 4 < self.outcome.misses
    }

    /// Messages per received page, for reads in which most misses fetch pages.
    pub fn messages_a_page_read(&self) -> Option<f64> {
        self.outcome.messages_a_page.filter(|_| self.point.only_reads() && !self.is_mostly_shipped())
    }

    /// Messages per received page, and whether they miss the target for reads.
    pub fn messages_cell(&self) -> String {
        let is_missed = self.messages_a_page_read().is_some_and(|messages| messages > MESSAGES_TARGET + 0.005);
        match self.outcome.messages_a_page {
            None => "no page comes".to_owned(),
            Some(_) if self.is_mostly_shipped() => "few pages come".to_owned(),
            Some(messages) if is_missed => format!("{messages:.2}, missed"),
            Some(messages) => format!("{messages:.2}"),
        }
    }
}

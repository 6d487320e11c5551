//! The paper's measurements in the model: Matsumiya and Endo, "vGASNet" (2017), Figures 4 to 7, with what the paper says of them.
//!
//! Data is on the first rank. All ranks read all of it at once, from empty pools, a page a get.

use crate::page_size::{self, PageSize};
use crate::point::rdma_put_seconds;
use crate::{Machine, Order, Outcome, Pattern, Point, Progress, ProtocolKind, Table};
use serde::Serialize;

/// How many ranks.
pub const RANKS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// All data, in pools of a rank.
pub const DATA_POOLS: [f64; 7] = [0.25, 0.5, 0.9, 1.1, 1.5, 2.0, 4.0];

/// Of the benchmark of false sharing.
const ROUNDS: u32 = 5;
/// As the paper has it.
const PUTS: u32 = 10;

/// A point of a figure, and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The figure of the paper.
    pub figure: u32,
    /// The point.
    pub point: Point,
    /// Its outcome.
    pub outcome: Outcome,
}

/// What the paper says, and what the model has.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// Of what.
    pub what: &'static str,
    /// The paper's number.
    pub paper: f64,
    /// The model's.
    pub model: f64,
    /// The paper says that it is at least that.
    pub is_bound: bool,
    /// Why the model is off by more than a third, if it is.
    pub because: Option<&'static str>,
}

impl Claim {
    /// The model's number is so much more than the paper's, as a part of that. Of a bound only what it lacks counts.
    pub fn error(&self) -> f64 {
        let error = self.model / self.paper - 1.0;
        if self.is_bound { error.min(0.0) } else { error }
    }
}

/// Figures 4 to 7.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// The machine's name.
    pub machine: String,
    /// Pools and data are so many times smaller than the machine's.
    pub scale: u64,
    /// For what is random.
    pub seed: u64,
    /// Figure 4.
    pub page_sizes: Vec<PageSize>,
    /// All points of the others.
    pub measured: Vec<Measured>,
    /// What the paper says of them.
    pub claims: Vec<Claim>,
}

/// Which points are run.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Whose protocol.
    pub protocol: ProtocolKind,
    /// Pools and data are so many times smaller than the machine's.
    pub scale: u64,
    /// For what is random.
    pub seed: u64,
    /// Only 1 and 32 ranks.
    pub ends_only: bool,
}

/// Runs all points.
///
/// # Errors
/// As [`Point::run`].
pub fn run(machine: &Machine, choice: Choice) -> Result<Figures, String> {
    let page_sizes = page_size::run(machine, choice)?;
    let points = points(machine, choice);
    let mut progress = Progress::new("points", points.len());
    let mut measured = Vec::new();
    for (figure, point) in points {
        let outcome = point.run(machine)?;
        measured.push(Measured { figure, point, outcome: *outcome.last().expect("there is a pass") });
        progress.step();
    }
    drop(progress);
    let claims = claims(machine, &measured, choice.protocol);
    let name = machine.name.clone();
    Ok(Figures { machine: name, scale: choice.scale, seed: choice.seed, page_sizes, measured, claims })
}

fn points(machine: &Machine, choice: Choice) -> Vec<(u32, Point)> {
    let Choice { protocol, scale, seed, ends_only } = choice;
    let page_bytes = machine.node.page as usize;
    let base = Point { protocol, scale, seed, ..Point::reads(1, Order::Sequential, 1.0, page_bytes) };
    let mut points = Vec::new();
    for ranks in RANKS.into_iter().filter(|ranks| !ends_only || [1, 32].contains(ranks)) {
        for cooperative in [true, false] {
            for (figure, order) in [(5, Order::Sequential), (6, Order::Random)] {
                let pattern = Pattern::All { order, len_bytes: page_bytes, is_put: false, pieces_max: u64::MAX };
                points.extend(
                    DATA_POOLS.map(|data_pools| (figure, Point { ranks, cooperative, pattern, data_pools, ..base })),
                );
            }
            let pattern = Pattern::FalseSharing { rounds: ROUNDS, puts: PUTS };
            points.push((7, Point { ranks, cooperative, pattern, data_pools: 0.25, ..base }));
        }
    }
    points
}

/// The throughput of all ranks together of one figure's points, by data: of so many ranks.
fn rates(measured: &[Measured], figure: u32, ranks: u32, cooperative: bool) -> Vec<(f64, f64)> {
    let is_it =
        |one: &&Measured| one.figure == figure && one.point.ranks == ranks && one.point.cooperative == cooperative;
    let rate = |one: &Measured| one.outcome.megabytes_a_second_each * f64::from(ranks);
    measured.iter().filter(is_it).map(|one| (one.point.data_pools, rate(one))).collect()
}

/// How many times as fast the first ones are as the others, by data.
fn ratios(fast: &[(f64, f64)], slow: &[(f64, f64)]) -> Vec<(f64, f64)> {
    fast.iter().zip(slow).map(|((data, fast), (_, slow))| (*data, fast / slow)).collect()
}

fn least(ratios: &[(f64, f64)]) -> f64 {
    ratios.iter().map(|(_, ratio)| *ratio).fold(f64::INFINITY, f64::min)
}

fn most(ratios: &[(f64, f64)]) -> f64 {
    ratios.iter().map(|(_, ratio)| *ratio).fold(0.0, f64::max)
}

fn claims(machine: &Machine, measured: &[Measured], protocol: ProtocolKind) -> Vec<Claim> {
    let speedup = |figure| ratios(&rates(measured, figure, 32, true), &rates(measured, figure, 1, true));
    let gain = |figure| ratios(&rates(measured, figure, 32, true), &rates(measured, figure, 32, false));
    let (sequential, random) = (speedup(5), speedup(6));
    let (sequential_gain, random_gain) = (gain(5), gain(6));
    let beyond: Vec<(f64, f64)> = random_gain.iter().copied().filter(|(data, _)| *data > 1.0).collect();
    let round = |ranks, cooperative| {
        let [(_, rate)] = rates(measured, 7, ranks, cooperative)[..] else { return f64::NAN };
        f64::from(PUTS * ranks) / (rate * 1e6)
    };
    let rdma = |ranks| f64::from(PUTS) * rdma_put_seconds(machine, ranks);
    let claim = |what, paper, model| Claim { what, paper, model, is_bound: false, because: None };
    let bound = |what, paper, model| Claim { is_bound: true, ..claim(what, paper, model) };
    let claims = [
        claim("sequential, 32 ranks against 1, least", 6.78, least(&sequential)),
        claim("sequential, 32 ranks against 1, most", 17.9, most(&sequential)),
        claim("random, 32 ranks against 1, least", 4.52, least(&random)),
        claim("random, 32 ranks against 1, most", 17.7, most(&random)),
        claim("sequential, 32 ranks, with cooperation against without, least", 1.17, least(&sequential_gain)),
        claim("sequential, 32 ranks, with cooperation against without, most", 2.93, most(&sequential_gain)),
        bound("random, 32 ranks, with cooperation against without", 2.28, least(&random_gain)),
        bound("random, the same beyond a pool", 4.04, least(&beyond)),
        claim("false sharing, time with cooperation of that without", 0.0089, round(32, true) / round(32, false)),
        claim("false sharing, time of that by put_bulk, 32 ranks", 2.59, round(32, true) / rdma(32)),
        bound("false sharing, the same, 1 rank", 1000.0, round(1, true) / rdma(1)),
    ];
    claims.into_iter().map(|claim| explained(claim, protocol)).collect()
}

/// Why the paper's own protocol on the paper's machine is off by more than a third, where it is.
const REASONS: [(&str, &str); 6] = [
    (
        "sequential, 32 ranks against 1, most",
        "In the model all ranks miss the same page at the same time, the one that has read it serves the 31 others, and its link is \
         the limit. Ranks that drift apart find pages at many: where a message takes 50 us in place of 0.5 they do, and it is 11.6.",
    ),
    (
        "sequential, 32 ranks, with cooperation against without, most",
        "The same: ranks in step find a page at the home only, which serves them so without cooperation, too. Where a message takes \
         200 us it is 1.9.",
    ),
    (
        "random, 32 ranks against 1, least",
        "The paper's speed falls where data outgrows one pool, and the model's does not: the home handles a notice of an eviction in \
         0.5 us. Where a message takes 500 us it is 5.1: in the paper's runtime a notice must have cost that much.",
    ),
    (
        "random, the same beyond a pool",
        "The model's least is at 1.1 pools, just beyond; at 1.5 pools it is 6. The paper does not say at which sizes it looked.",
    ),
    (
        "false sharing, time with cooperation of that without",
        "In the model a rank that got the page does its ten puts before it gives the page up, with cooperation and without. If the \
         paper's ranks did one put a turn without cooperation, the model's part is a tenth: 0.0059.",
    ),
    (
        "false sharing, time of that by put_bulk, 32 ranks",
        "The model's put_bulk is one RDMA of 3.7 us. The paper's ratio and a page that visits 32 ranks (38 ms at the link's speed) \
         make a put_bulk of 1.5 ms there, which is no time of the link: its target must have been polled for.",
    ),
];

/// The reasons hold for the paper's protocol; ours is to differ.
fn explained(claim: Claim, protocol: ProtocolKind) -> Claim {
    let is_off = claim.error().abs() > 1.0 / 3.0;
    let reason = REASONS.iter().find(|(what, _)| *what == claim.what).map(|(_, because)| *because);
    let because = reason.filter(|_| is_off && protocol == ProtocolKind::Paper);
    Claim { because, ..claim }
}

impl Figures {
    /// The throughput of all ranks together, in MB/s, by data in pools: of one figure, with so many ranks.
    pub fn rates(&self, figure: u32, ranks: u32, cooperative: bool) -> Vec<(f64, f64)> {
        rates(&self.measured, figure, ranks, cooperative)
    }

    /// How long a round of false sharing takes, in microseconds, if it was run with so many ranks.
    pub fn sharing_us(&self, ranks: u32, cooperative: bool) -> Option<f64> {
        let is_it =
            |one: &&Measured| one.figure == 7 && one.point.ranks == ranks && one.point.cooperative == cooperative;
        let one = self.measured.iter().find(is_it)?;
        Some(one.outcome.seconds / f64::from(ROUNDS) * 1e6)
    }

    /// The figures' points, as tables of the throughput of a rank in MB/s.
    pub fn tables(&self) -> String {
        let by_size = page_size::table(&self.page_sizes);
        let mut text = format!("Figure 4, pages by their size and by where they are: MB/s of one rank\n{by_size}\n");
        for (figure, what) in [(5, "sequential"), (6, "random")] {
            for (cooperative, with) in [(true, "with"), (false, "without")] {
                let heads: Vec<String> = DATA_POOLS.iter().map(|pools| format!("{pools} pools")).collect();
                let heads: Vec<&str> = ["ranks"].into_iter().chain(heads.iter().map(String::as_str)).collect();
                let mut table = Table::new(&heads);
                for ranks in RANKS {
                    let rates = rates(&self.measured, figure, ranks, cooperative);
                    if !rates.is_empty() {
                        let each = rates.iter().map(|(_, rate)| format!("{:.0}", rate / f64::from(ranks)));
                        table.row([ranks.to_string()].into_iter().chain(each).collect());
                    }
                }
                text += &format!("Figure {figure}, {what}, {with} cooperation: MB/s a rank\n{table}\n");
            }
        }
        let mut table = Table::new(&["ranks", "with cooperation", "without"]);
        for ranks in RANKS {
            let us = |cooperative| self.sharing_us(ranks, cooperative).map(|us| format!("{us:.1}"));
            if let (Some(with), Some(without)) = (us(true), us(false)) {
                table.row(vec![ranks.to_string(), with, without]);
            }
        }
        text += &format!("Figure 7, false sharing: us for {PUTS} puts of a byte by each rank and a barrier\n{table}\n");
        text
    }

    /// What the paper says beside the model.
    pub fn claims_table(&self) -> String {
        let mut table = Table::new(&["", "paper", "model", "error"]);
        for claim in &self.claims {
            let sign = if claim.is_bound { ">= " } else { "" };
            let (paper, model) = (format!("{sign}{}", short(claim.paper)), short(claim.model));
            table.row(vec![claim.what.to_string(), paper, model, format!("{:+.0} %", claim.error() * 100.0)]);
        }
        let reasons = self.claims.iter().filter_map(|claim| Some(format!("{}: {}\n", claim.what, claim.because?)));
        format!("{table}\n{}", reasons.collect::<String>())
    }
}

/// A number with three digits.
fn short(number: f64) -> String {
    match number {
        _ if number >= 100.0 => format!("{number:.0}"),
        _ if number >= 1.0 => format!("{number:.2}"),
        _ => format!("{number:.4}"),
    }
}

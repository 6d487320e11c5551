//! The paper's measurements in the model: Matsumiya and Endo, "vGASNet" (2017), Figures 4 to 7, compared with the
//! paper's numbers.
//!
//! The first rank has the data. All ranks read all of it at the same time, starting from empty pools, one page per get.

mod reasons;

pub use reasons::Dearer;

use crate::page_size::{self, PageSize};
use crate::point::rdma_put_seconds;
use crate::{Machine, Order, Outcome, Pattern, Point, Progress, ProtocolKind, Table, short};
use serde::Serialize;

/// Numbers of ranks.
pub const RANKS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Sizes of all data, in pools of a rank.
pub const DATA_POOLS: [f64; 7] = [0.25, 0.5, 0.9, 1.1, 1.5, 2.0, 4.0];

/// Rounds of the false-sharing benchmark.
pub(crate) const ROUNDS: u32 = 5;
/// Puts of a rank in a round, as in the paper.
pub const PUTS: u32 = 10;

/// A point of a figure, and its outcome.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The figure of the paper.
    pub figure: u32,
    /// The point.
    pub point: Point,
    /// Its outcome.
    pub outcome: Outcome,
}

/// A number from the paper, and the model's.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// The quantity.
    pub what: &'static str,
    /// The paper's number.
    pub paper: f64,
    /// The model's.
    pub model: f64,
    /// The paper gives a lower bound.
    pub is_bound: bool,
    /// The reason for a deviation of the model by more than a third.
    pub because: Option<String>,
}

impl Claim {
    /// The relative deviation of the model from the paper. For a bound only a shortfall counts.
    pub fn error(&self) -> f64 {
        let error = self.model / self.paper - 1.0;
        if self.is_bound { error.min(0.0) } else { error }
    }

    /// Whether the model deviates by more than a third.
    pub fn is_off(&self) -> bool {
        self.error().abs() > 1.0 / 3.0
    }

    /// The paper's number in a table.
    pub fn paper_cell(&self) -> String {
        let sign = if self.is_bound { "at least " } else { "" };
        format!("{sign}{}", short(self.paper))
    }
}

/// Figures 4 to 7.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// The machine's name.
    pub machine: String,
    /// Whether the machine is the paper's. Another machine may differ from the paper without the model being wrong.
    pub is_papers: bool,
    /// Factor by which pools and data are smaller than the machine's.
    pub scale: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Figure 4.
    pub page_sizes: Vec<PageSize>,
    /// All points of the other figures.
    pub measured: Vec<Measured>,
    /// Comparisons of these points with the paper.
    pub claims: Vec<Claim>,
    /// The same with more expensive messages, for the deviations of the paper's protocol on the paper's machine.
    pub dearer: Vec<Dearer>,
}

/// The points to run.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The protocol.
    pub protocol: ProtocolKind,
    /// Factor by which pools and data are smaller than the machine's.
    pub scale: u64,
    /// Seed of everything random.
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
    let measured = measure(machine, choice)?;
    let claims = claims(machine, &measured);
    let is_papers = *machine == Machine::paper();
    let figures = Figures {
        machine: machine.name.clone(),
        is_papers,
        scale: choice.scale,
        seed: choice.seed,
        page_sizes,
        measured,
        claims,
        dearer: vec![],
    };
    if choice.protocol == ProtocolKind::Paper && is_papers {
        return figures.explained(machine, choice);
    }
    Ok(figures)
}

fn measure(machine: &Machine, choice: Choice) -> Result<Vec<Measured>, String> {
    let points = points(machine, choice);
    let mut progress = Progress::new("points", points.len());
    let mut measured = Vec::new();
    for (figure, point) in points {
        let outcome = point.run(machine)?;
        measured.push(Measured { figure, point, outcome: *outcome.last().expect("there is a pass") });
        progress.step();
    }
    Ok(measured)
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

/// The total throughput of all ranks by size of data, for one figure and number of ranks.
fn rates(measured: &[Measured], figure: u32, ranks: u32, cooperative: bool) -> Vec<(f64, f64)> {
    let is_it =
        |one: &&Measured| one.figure == figure && one.point.ranks == ranks && one.point.cooperative == cooperative;
    let rate = |one: &Measured| one.outcome.megabytes_a_second_each * f64::from(ranks);
    measured.iter().filter(is_it).map(|one| (one.point.data_pools, rate(one))).collect()
}

/// The ratio of the first throughputs to the second, by size of data.
fn ratios(fast: &[(f64, f64)], slow: &[(f64, f64)]) -> Vec<(f64, f64)> {
    fast.iter().zip(slow).map(|((data, fast), (_, slow))| (*data, fast / slow)).collect()
}

fn least(ratios: &[(f64, f64)]) -> f64 {
    ratios.iter().map(|(_, ratio)| *ratio).fold(f64::INFINITY, f64::min)
}

fn most(ratios: &[(f64, f64)]) -> f64 {
    ratios.iter().map(|(_, ratio)| *ratio).fold(0.0, f64::max)
}

/// Duration of a round of false sharing, in seconds.
fn round_seconds(measured: &[Measured], ranks: u32, cooperative: bool) -> Option<f64> {
    let is_it = |one: &&Measured| one.figure == 7 && one.point.ranks == ranks && one.point.cooperative == cooperative;
    measured.iter().find(is_it).map(|one| one.outcome.seconds / f64::from(ROUNDS))
}

/// Duration of the paper's put_bulk benchmark, in seconds: as many blocking RDMA puts as a rank does in one round.
fn puts_seconds(machine: &Machine, ranks: u32) -> f64 {
    f64::from(PUTS) * rdma_put_seconds(machine, ranks)
}

/// The gain in random-read throughput with cooperation, by size of data.
fn random_gain(measured: &[Measured]) -> Vec<(f64, f64)> {
    ratios(&rates(measured, 6, 32, true), &rates(measured, 6, 32, false))
}

const SEQUENTIAL_LEAST: &str = "sequential, 32 ranks against 1, least";
const SEQUENTIAL_MOST: &str = "sequential, 32 ranks against 1, most";
const RANDOM_LEAST: &str = "random, 32 ranks against 1, least";
const SEQUENTIAL_GAIN_MOST: &str = "sequential, 32 ranks, with cooperation against without, most";
const RANDOM_GAIN_BEYOND: &str = "random, the same beyond a pool";
const SHARING_PART: &str = "false sharing, time with cooperation of that without";
const SHARING_TIMES: &str = "false sharing, time of that by put_bulk, 32 ranks";

fn claims(machine: &Machine, measured: &[Measured]) -> Vec<Claim> {
    let speedup = |figure| ratios(&rates(measured, figure, 32, true), &rates(measured, figure, 1, true));
    let (sequential, random) = (speedup(5), speedup(6));
    let sequential_gain = ratios(&rates(measured, 5, 32, true), &rates(measured, 5, 32, false));
    let random_gain = random_gain(measured);
    let beyond: Vec<(f64, f64)> = random_gain.iter().copied().filter(|(data, _)| *data > 1.0).collect();
    let round = |ranks, cooperative| round_seconds(measured, ranks, cooperative).unwrap_or(f64::NAN);
    let times = |ranks| round(ranks, true) / puts_seconds(machine, ranks);
    let claim = |what, paper, model| Claim { what, paper, model, is_bound: false, because: None };
    let bound = |what, paper, model| Claim { is_bound: true, ..claim(what, paper, model) };
    vec![
        claim(SEQUENTIAL_LEAST, 6.78, least(&sequential)),
        claim(SEQUENTIAL_MOST, 17.9, most(&sequential)),
        claim(RANDOM_LEAST, 4.52, least(&random)),
        claim("random, 32 ranks against 1, most", 17.7, most(&random)),
        claim("sequential, 32 ranks, with cooperation against without, least", 1.17, least(&sequential_gain)),
        claim(SEQUENTIAL_GAIN_MOST, 2.93, most(&sequential_gain)),
        bound("random, 32 ranks, with cooperation against without", 2.28, least(&random_gain)),
        bound(RANDOM_GAIN_BEYOND, 4.04, least(&beyond)),
        claim(SHARING_PART, 0.0089, round(32, true) / round(32, false)),
        claim(SHARING_TIMES, 2.59, times(32)),
        bound("false sharing, the same, 1 rank", 1000.0, times(1)),
    ]
}

impl Figures {
    /// The total throughput of all ranks in MB/s, by size of data in pools, for one figure and number of ranks.
    pub fn rates(&self, figure: u32, ranks: u32, cooperative: bool) -> Vec<(f64, f64)> {
        rates(&self.measured, figure, ranks, cooperative)
    }

    /// Duration of a round of false sharing in microseconds, if it was run with this number of ranks.
    pub fn sharing_us(&self, ranks: u32, cooperative: bool) -> Option<f64> {
        round_seconds(&self.measured, ranks, cooperative).map(|seconds| seconds * 1e6)
    }

    /// The same, relative to the duration of as many RDMA puts as a rank does.
    pub fn sharing_times(&self, machine: &Machine, ranks: u32) -> Option<f64> {
        round_seconds(&self.measured, ranks, true).map(|seconds| seconds / puts_seconds(machine, ranks))
    }

    /// Tables of the throughput of a rank in MB/s, for all figures.
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

    /// The paper's numbers next to the model's.
    pub fn claims_table(&self) -> String {
        let heads: &[&str] =
            if self.is_papers { &["", "paper", "model", "error"] } else { &["", "paper, on its machine", "model"] };
        let mut table = Table::new(heads);
        for claim in &self.claims {
            let error = self.is_papers.then(|| format!("{:+.0} %", claim.error() * 100.0));
            let cells = [claim.what.to_string(), claim.paper_cell(), short(claim.model)];
            table.row(cells.into_iter().chain(error).collect());
        }
        let mut text = format!("{table}\n");
        if !self.dearer.is_empty() {
            text += &format!("{}\n{}\n", self.dearer_table(), self.dearer_says());
        }
        let reasons = self.claims.iter().filter_map(|claim| Some((claim.what, claim.because.as_ref()?)));
        text + &reasons.map(|(what, why)| format!("{what}: {why}\n")).collect::<String>()
    }
}

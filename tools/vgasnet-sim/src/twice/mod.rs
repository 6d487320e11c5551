//! Ranks of one machine read data twice: the gain of a setting in the first and second pass.

pub mod homes;
pub mod idle_pools;
pub mod kept_copies;
pub mod known_holders;

use crate::{Machine, Order, Outcome, Point, Table};
use std::array;

/// Number of ranks.
const RANKS: u32 = 32;

/// Options common to all jobs.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Factor by which pools and data are smaller than the machine's.
    pub scale: u64,
    /// Seed of everything random.
    pub seed: u64,
}

impl Choice {
    /// A number of ranks read this much data twice, with the settings made by `changed`.
    fn read(
        self,
        machine: &Machine,
        (ranks, order, data_pools): (u32, Order, f64),
        changed: impl FnOnce(Point) -> Point,
    ) -> Result<[Outcome; 2], String> {
        let Choice { scale, seed } = self;
        let reads = Point::reads(ranks, order, data_pools, machine.node.page as usize);
        let outcomes = changed(Point { passes: 2, scale, seed, ..reads }).run(machine)?;
        Ok([outcomes[0], outcomes[1]])
    }
}

/// Throughput of a rank in MB/s, in each pass.
fn rates(outcomes: [Outcome; 2]) -> [f64; 2] {
    outcomes.map(|outcome| outcome.megabytes_a_second_each)
}

/// The tables of all comparisons.
///
/// # Errors
/// As [`Point::run`].
pub fn tables(machine: &Machine, choice: Choice) -> Result<[Table; 4], String> {
    Ok([
        homes::table(machine, choice)?,
        idle_pools::table(machine, choice)?,
        kept_copies::table(machine, choice)?,
        known_holders::table(machine, choice)?,
    ])
}

/// A row for each kind of job and a column for each entry of `columns`, mostly sizes of data. `cell` computes a cell.
fn table<K: Copy, C: Copy, const N: usize>(
    first: &str,
    columns: [(String, C); N],
    kinds: &[(String, K)],
    cell: impl Fn(K, C) -> Result<[String; 2], String>,
) -> Result<Table, String> {
    let heads: Vec<&str> = [first].into_iter().chain(columns.iter().map(|(head, _)| head.as_str())).collect();
    let mut table = Table::new(&heads);
    for (name, kind) in kinds {
        let cells: [_; N] = array::from_fn(|at| Ok::<_, String>(cell(*kind, columns[at].1)?.join(", ")));
        table.row([Ok(name.clone())].into_iter().chain(cells).collect::<Result<_, _>>()?);
    }
    Ok(table)
}

/// A column for each size of data, in pools of one rank.
fn columns<const N: usize>(data_pools: [f64; N]) -> [(String, f64); N] {
    data_pools.map(|pools| (format!("data of {pools} pools"), pools))
}

/// A kind of job for each order and each of `kinds`.
fn kinds<K: Copy>(kinds: &[(&str, K)]) -> Vec<(String, (Order, K))> {
    let orders = [(Order::Sequential, "in order"), (Order::Random, "at random")];
    let of = |(order, in_words)| kinds.iter().map(move |(what, kind)| (format!("{in_words}, {what}"), (order, *kind)));
    orders.into_iter().flat_map(of).collect()
}

//! The possible gain of hints about the holders of pages.

use super::{Choice, RANKS, rates};
use crate::{Hints, Homes, Machine, Order, Point, Table, short};

/// Place, order and size of the data, in pools of one rank.
const JOBS: [(&str, Homes, Order, f64); 5] = [
    ("all ranks have 0.9 pools, in order", Homes::All, Order::Sequential, 0.9),
    ("all ranks have 16 pools, at random", Homes::All, Order::Random, 16.0),
    ("one home of 16 pools, at random", Homes::First, Order::Random, 16.0),
    ("homes in turns, 4 pools, in order", Homes::Cyclic, Order::Sequential, 4.0),
    ("homes in turns, 4 pools, at random", Homes::Cyclic, Order::Random, 4.0),
];

/// Throughput of a rank in MB/s, in the first and second pass.
///
/// # Errors
/// As [`Point::run`].
pub fn table(machine: &Machine, choice: Choice) -> Result<Table, String> {
    let first = format!("MB/s a rank, {RANKS} ranks, first and second time");
    let columns = JOBS.map(|job| (job.0.to_owned(), job));
    let kinds = [("homes are asked", Hints::None), ("own hints", Hints::Own), ("all are known", Hints::All)];
    super::table(&first, columns, &kinds.map(|(name, hints)| (name.to_owned(), hints)), |hints, job| {
        let (_, homes, order, pools) = job;
        let changed = |point| Point { homes, hints, ..point };
        Ok(rates(choice.read(machine, (RANKS, order, pools), changed)?).map(short))
    })
}

//! The gain if a home keeps a copy of a page read from its disk for another rank.

use super::{Choice, RANKS, columns, rates};
use crate::{Homes, Machine, Order, Point, Table, short};

/// Sizes of all data, in pools of one rank.
const DATA_POOLS: [f64; 4] = [0.9, 4.0, 16.0, 28.0];

/// Throughput of a rank in MB/s, in the first and second pass.
///
/// # Errors
/// As [`Point::run`].
pub fn table(machine: &Machine, choice: Choice) -> Result<Table, String> {
    let mut kinds = Vec::new();
    for (homes, whose) in [(Homes::First, "one rank has all data"), (Homes::All, "all ranks have data")] {
        for (order, in_words) in [(Order::Sequential, "in order"), (Order::Random, "at random")] {
            for (home_keeps, what) in [(false, "no copies"), (true, "copies kept")] {
                kinds.push((format!("{whose}, {in_words}, {what}"), (homes, order, home_keeps)));
            }
        }
    }
    let first = format!("MB/s a rank, {RANKS} ranks, first and second time");
    super::table(&first, columns(DATA_POOLS), &kinds, |(homes, order, home_keeps), pools| {
        let changed = |point| Point { homes, home_keeps, ..point };
        Ok(rates(choice.read(machine, (RANKS, order, pools), changed)?).map(short))
    })
}

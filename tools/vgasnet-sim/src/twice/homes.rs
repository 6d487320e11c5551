//! The gain of round-robin homes if all data is in the segment of one rank.

use super::{Choice, RANKS, columns, kinds, rates};
use crate::{Homes, Machine, Order, Point, Table, short};

/// Sizes of all data, in pools of one rank.
pub const DATA_POOLS: [f64; 4] = [0.9, 4.0, 16.0, 28.0];

/// The throughput of 32 ranks relative to one, in the first and second pass.
///
/// # Errors
/// As [`Point::run`].
pub fn times(
    machine: &Machine,
    choice: Choice,
    homes: Homes,
    order: Order,
    data_pools: f64,
) -> Result<[f64; 2], String> {
    let run = |homes, ranks| choice.read(machine, (ranks, order, data_pools), |point| Point { homes, ..point });
    let (all, one) = (rates(run(homes, RANKS)?), rates(run(Homes::First, 1)?));
    Ok([0, 1].map(|pass| f64::from(RANKS) * all[pass] / one[pass]))
}

/// A row for each order and kind of homes.
///
/// # Errors
/// As [`Point::run`].
pub fn table(machine: &Machine, choice: Choice) -> Result<Table, String> {
    let first = format!("{RANKS} ranks, times as much as one rank, first and second time");
    let whose = kinds(&[("one home", Homes::First), ("homes in turns", Homes::Cyclic)]);
    super::table(&first, columns(DATA_POOLS), &whose, |(order, homes), pools| {
        Ok(times(machine, choice, homes, order, pools)?.map(short))
    })
}

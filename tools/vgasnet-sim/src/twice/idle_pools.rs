//! The gain of idle ranks' pools for the reading ranks.

use super::{Choice, RANKS, kinds, rates};
use crate::{Machine, Point, Table, short};

/// Number of reading ranks, and the size of all data in pools of one rank. The data fits into the pools of all ranks.
const JOBS: [(u32, f64); 4] = [(1, 2.0), (1, 8.0), (4, 16.0), (16, 28.0)];

/// Throughput of a reading rank in MB/s in the first and second pass, while the other ranks are idle. Pages leaving
/// their last pool are offered to the idle ranks, or not.
///
/// # Errors
/// As [`Point::run`].
pub fn table(machine: &Machine, choice: Choice) -> Result<Table, String> {
    let plural = |readers| if readers == 1 { "reads" } else { "read" };
    let columns =
        JOBS.map(|job @ (readers, pools)| (format!("{readers} {} data of {pools} pools", plural(readers)), job));
    let first = format!("MB/s a rank that reads, of {RANKS} ranks, first and second time");
    let what = kinds(&[("what is given up is gone", false), ("it goes to idle pools", true)]);
    super::table(&first, columns, &what, |(order, guests), (readers, pools)| {
        let changed = |point| Point { readers: Some(readers), guests, ..point };
        Ok(rates(choice.read(machine, (RANKS, order, pools), changed)?).map(short))
    })
}

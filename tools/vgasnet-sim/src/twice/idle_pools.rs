//! What the pools of idle ranks bring to those that read.

use super::{Choice, RANKS, kinds, rates};
use crate::{Machine, Point, Table, short};

/// How many ranks read, and all data, in pools of one rank: less than the pools of all hold.
const JOBS: [(u32, f64); 4] = [(1, 2.0), (1, 8.0), (4, 16.0), (16, 28.0)];

/// MB a second that a rank reads the first and the second time, where some ranks read and the others are idle. The pages that leave the
/// last pool are offered to these, or not.
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

//! What the pools of idle ranks bring to those that read.

use crate::homes::Choice;
use crate::{Machine, Order, Point, Table, short};

/// How many ranks.
const RANKS: u32 = 32;

/// How many of them read, and all data, in pools of one rank: less than the pools of all hold.
const JOBS: [(u32, f64); 4] = [(1, 2.0), (1, 8.0), (4, 16.0), (16, 28.0)];

/// MB a second that a rank reads the first and the second time, where so many ranks read and the others are idle. The pages that leave
/// the last pool are offered to these, or not.
///
/// # Errors
/// As [`Point::run`].
pub fn rates(
    machine: &Machine,
    Choice { scale, seed }: Choice,
    (readers, data_pools): (u32, f64),
    order: Order,
    guests: bool,
) -> Result<[f64; 2], String> {
    let all = Point::reads(RANKS, order, data_pools, machine.node.page as usize);
    let outcomes = Point { readers: Some(readers), guests, passes: 2, scale, seed, ..all }.run(machine)?;
    Ok([0, 1].map(|pass| outcomes[pass].megabytes_a_second_each))
}

/// A row for each order, with and without.
///
/// # Errors
/// As [`Point::run`].
pub fn table(machine: &Machine, choice: Choice) -> Result<Table, String> {
    let plural = |readers| if readers == 1 { "reads" } else { "read" };
    let heads = JOBS.map(|(readers, pools)| format!("{readers} {} data of {pools} pools", plural(readers)));
    let first = format!("MB/s a rank that reads, of {RANKS} ranks, first and second time");
    let heads: Vec<&str> = [first.as_str()].into_iter().chain(heads.iter().map(String::as_str)).collect();
    let mut table = Table::new(&heads);
    for (order, in_words) in [(Order::Sequential, "in order"), (Order::Random, "at random")] {
        for (guests, what) in [(false, "what is given up is gone"), (true, "it goes to idle pools")] {
            let cells = JOBS.map(|job| {
                let both = rates(machine, choice, job, order, guests)?;
                Ok(both.map(short).join(", "))
            });
            let name = [Ok(format!("{in_words}, {what}"))];
            table.row(name.into_iter().chain(cells).collect::<Result<_, String>>()?);
        }
    }
    Ok(table)
}

//! What homes in turns bring where all data is in the segment of one rank.

use crate::{Homes, Machine, Order, Outcome, Point, Table, short};

/// How many ranks.
const RANKS: u32 = 32;

/// All data, in pools of one rank.
pub const DATA_POOLS: [f64; 4] = [0.9, 4.0, 16.0, 28.0];

/// What is the same for all jobs.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Pools and data are so many times smaller than the machine's.
    pub scale: u64,
    /// For what is random.
    pub seed: u64,
}

/// How many times as much 32 ranks read as one does, the first and the second time.
///
/// # Errors
/// As [`Point::run`].
pub fn times(
    machine: &Machine,
    Choice { scale, seed }: Choice,
    homes: Homes,
    order: Order,
    data_pools: f64,
) -> Result<[f64; 2], String> {
    let page_bytes = machine.node.page as usize;
    let run = |homes, ranks| {
        Point { homes, passes: 2, scale, seed, ..Point::reads(ranks, order, data_pools, page_bytes) }.run(machine)
    };
    let (all, one) = (run(homes, RANKS)?, run(Homes::First, 1)?);
    let rate = |outcomes: &[Outcome], pass: usize| outcomes[pass].megabytes_a_second_each;
    Ok([0, 1].map(|pass| f64::from(RANKS) * rate(&all, pass) / rate(&one, pass)))
}

/// A row for each order and kind of homes.
///
/// # Errors
/// As [`Point::run`].
pub fn table(machine: &Machine, choice: Choice) -> Result<Table, String> {
    let heads = DATA_POOLS.map(|pools| format!("data of {pools} pools"));
    let first = format!("{RANKS} ranks, times as much as one rank, first and second time");
    let heads: Vec<&str> = [first.as_str()].into_iter().chain(heads.iter().map(String::as_str)).collect();
    let mut table = Table::new(&heads);
    for (order, in_words) in [(Order::Sequential, "in order"), (Order::Random, "at random")] {
        for (homes, whose) in [(Homes::First, "one home"), (Homes::Cyclic, "homes in turns")] {
            let cells = DATA_POOLS.map(|pools| {
                let both = times(machine, choice, homes, order, pools)?;
                Ok(both.map(short).join(", "))
            });
            let name = [Ok(format!("{in_words}, {whose}"))];
            table.row(name.into_iter().chain(cells).collect::<Result<_, String>>()?);
        }
    }
    Ok(table)
}

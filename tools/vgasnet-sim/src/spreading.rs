//! A page requested by all ranks at once.

use crate::{Machine, Order, Pattern, Point, Spread, Table};

/// Numbers of ranks.
const RANKS: [u32; 6] = [4, 16, 64, 256, 1024, 4096];

/// A way of spreading the page.
struct Way {
    name: &'static str,
    /// A node has as many ranks as possible, instead of one.
    has_all_ranks: bool,
    spread: Spread,
}

const fn way(name: &'static str, has_all_ranks: bool, spread: Spread) -> Way {
    Way { name, has_all_ranks, spread }
}

const WAYS: [Way; 5] = [
    way("one rank a node, one holder serves all", false, Spread::AtOnce),
    way("one rank a node, a tree", false, Spread::Tree),
    way("all ranks of a node, one holder serves all", true, Spread::AtOnce),
    way("all ranks of a node, a tree", true, Spread::Tree),
    way("all ranks of a node, a tree, hosts known", true, Spread::TreeOfNodes),
];

/// The time for all ranks in excess of one rank reading the page from its disk, in page times. A page time is the time
/// of a page on the link.
///
/// # Errors
/// As [`Point::run`].
pub fn page_times(machine: &Machine, ranks: u32) -> Result<Vec<f64>, String> {
    WAYS.iter().map(|way| way.page_times(machine, ranks)).collect()
}

impl Way {
    fn page_times(&self, machine: &Machine, ranks: u32) -> Result<f64, String> {
        let mut machine = machine.clone();
        if !self.has_all_ranks {
            machine.node.ranks = 1;
        }
        let seconds = |ranks| -> Result<f64, String> {
            let reads = Point::reads(ranks, Order::Sequential, 0.25, machine.node.page as usize);
            let scale = machine.scale_max();
            let point = Point { pattern: Pattern::Rewrite, spread: self.spread, scale, ..reads };
            Ok(point.run(&machine)?[0].seconds)
        };
        let page_time = machine.link.latency_us / 1e6 + machine.node.page as f64 / machine.link.bandwidth as f64;
        Ok((seconds(ranks)? - seconds(1)?) / page_time)
    }
}

/// A row for each way, with a cell for each number of ranks.
///
/// # Errors
/// As [`Point::run`].
pub fn table(machine: &Machine) -> Result<Table, String> {
    let heads = RANKS.map(|ranks| format!("{ranks} ranks"));
    let first = "page times until all ranks have a page";
    let heads: Vec<&str> = [first].into_iter().chain(heads.iter().map(String::as_str)).collect();
    let mut table = Table::new(&heads);
    for way in &WAYS {
        let cells = RANKS.map(|ranks| way.page_times(machine, ranks).map(|times| format!("{times:.1}")));
        let name = [Ok(way.name.to_owned())];
        table.row(name.into_iter().chain(cells).collect::<Result<_, String>>()?);
    }
    Ok(table)
}

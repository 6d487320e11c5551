//! Throughput by size and location of pages: Matsumiya and Endo, "vGASNet" (2017), Figure 4.
//!
//! One of three ranks reads pages of another rank's segment, each once and in random order. The pages are in the pool
//! of their home, in the pool of the third rank, or on the disk of their home.

use crate::paper::Choice;
use crate::{Machine, Order, Pattern, Point, Progress, Table};
use serde::Serialize;

/// Page sizes as powers of two, and a selection of them.
const SHIFTS: [u32; 12] = [13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24];
const SELECTED_SHIFTS: [u32; 3] = [13, 18, 22];

/// Number of pages read, if they fit into half of a pool.
const PAGES: f64 = 128.0;

/// The home, the reader, and the third rank.
const RANKS: u32 = 3;
const HOME: u32 = 0;
const THIRD: u32 = 2;

/// Read throughput, in MB a second.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PageSize {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// For pages in the pool of their home.
    pub home_pool: f64,
    /// For pages in the pool of the third rank.
    pub third_pool: f64,
    /// For pages on the disk of their home.
    pub home_disk: f64,
}

/// Runs all sizes, or a selection.
///
/// # Errors
/// As [`Point::run`].
pub(crate) fn run(machine: &Machine, choice: Choice) -> Result<Vec<PageSize>, String> {
    let Choice { protocol, scale, seed, ends_only } = choice;
    let shifts = if ends_only { &SELECTED_SHIFTS[..] } else { &SHIFTS };
    let sizes = shifts.iter().map(|shift| 1_u64 << shift).filter(|bytes| machine.can_have_pages_of(*bytes));
    let sizes: Vec<u64> = sizes.collect();
    let mut progress = Progress::new("sizes", sizes.len());
    let mut all = Vec::new();
    for page_bytes in sizes {
        let mut machine = machine.clone();
        machine.node.page = page_bytes;
        // With large pages a pool has a smaller number of them.
        let scale = scale.min(machine.scale_max());
        let frames = machine.frames_at(scale);
        let data_pools = (PAGES / frames as f64).min(0.5);
        let rate = |first| -> Result<f64, String> {
            let pattern = Pattern::AfterOther { first };
            let reads = Point::reads(RANKS, Order::Sequential, data_pools, page_bytes as usize);
            let outcomes = Point { protocol, scale, seed, pattern, passes: 2, ..reads }.run(&machine)?;
            Ok(outcomes[1].megabytes_a_second_each)
        };
        let (home_pool, third_pool, home_disk) = (rate(Some(HOME))?, rate(Some(THIRD))?, rate(None)?);
        all.push(PageSize { page_bytes, home_pool, third_pool, home_disk });
        progress.step();
    }
    Ok(all)
}

/// A row for each size.
pub(crate) fn table(all: &[PageSize]) -> Table {
    let mut table = Table::new(&["page", "home's pool", "third rank's pool", "home's disk"]);
    for PageSize { page_bytes, home_pool, third_pool, home_disk } in all {
        let rates = [home_pool, third_pool, home_disk].map(|rate| format!("{rate:.0}"));
        table.row([vgasnet_settings::format_size(*page_bytes)].into_iter().chain(rates).collect());
    }
    table
}

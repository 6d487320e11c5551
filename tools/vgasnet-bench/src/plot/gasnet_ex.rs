//! A chart for each number of ranks of `gasnet-ex`.

use super::{Bar, Chart, draw};
use crate::report::{GasnetExReport, OperationRow};

/// Times of each operation, next to the other GASNet-EX.
pub fn gasnet_ex(report: &GasnetExReport<'_>) -> Result<String, String> {
    let bar = |row: &OperationRow| Bar { label: row.label(), value: row.ns, reference: row.other_ns.unwrap_or(0.0) };
    let charts = report.rows.chunk_by(|one, other| one.ranks == other.ranks).map(|rows| Chart {
        title: format!("GASNet-EX, {} ranks; in grey the other one", rows[0].ranks),
        unit: "ns",
        bars: rows.iter().map(bar).collect(),
    });
    draw(&charts.collect::<Vec<_>>())
}

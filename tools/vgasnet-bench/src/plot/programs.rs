//! A chart of an example in all its ways.

use super::{Bar, Chart, draw};
use crate::report::ProgramReport;

/// Times of all ways, each next to the uncached way of its kind.
pub fn programs(report: &ProgramReport<'_>) -> Result<String, String> {
    let bars = report.rows.iter().map(|row| {
        let part = row.part.map_or_else(String::new, |part| format!(", {part}"));
        let label = format!("{}{part}", row.way.name());
        Bar { label, value: row.seconds, reference: row.seconds * report.speedup(row) }
    });
    let title = format!("{}, by memory over the bytes of others; in grey uncached", report.program);
    draw(&[Chart { title, unit: "s", bars: bars.collect() }])
}

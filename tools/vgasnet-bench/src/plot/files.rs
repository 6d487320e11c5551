//! A chart for each case of `files`.

use super::{Bar, Chart, draw};
use crate::report::FilesReport;

/// Times of all ways, each next to vgasnet with the same end.
pub fn files(report: &FilesReport<'_>) -> Result<String, String> {
    let charts = report.cases.iter().map(|figures| {
        let bars = figures.rows.iter().map(|row| {
            let end = if row.ends_with_sync { "sync" } else { "close" };
            let ratio = figures.to_vgasnet(row.way, row.ends_with_sync).unwrap_or(f64::NAN);
            Bar { label: format!("{}, {end}", row.way.name()), value: row.seconds, reference: row.seconds / ratio }
        });
        let (pattern, ranks, label) = (figures.case.pattern.name(), figures.case.ranks, &figures.case.label);
        let title = format!("{pattern}, {ranks} ranks, {label}; in grey vgasnet");
        Chart { title, unit: "s", bars: bars.collect() }
    });
    draw(&charts.collect::<Vec<_>>())
}

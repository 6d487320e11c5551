//! Results of `operations`.

use super::{Figures, SETTING_HEAD, Setting};
use crate::baseline::median;
use crate::operations::{Cell, Found, Kind};
use crate::plan::Job;
use serde::Serialize;
use vgasnet_settings::format_size;

#[derive(Serialize)]
pub struct OperationFigures {
    data_bytes: u64,
    operations: Vec<OperationRow>,
}

/// An operation, by number of threads and owner of the pages.
#[derive(Serialize)]
struct OperationRow {
    kind: Kind,
    size_bytes: usize,
    threads: u32,
    neighbour: bool,
    ns: f64,
    copy_ns: f64,
    to_copy: f64,
    ns_each: Vec<f64>,
}

impl OperationRow {
    fn new(cell: Cell) -> OperationRow {
        let Cell { kind, size_bytes, threads, neighbour, ns_each, copy_ns_each } = cell;
        let (ns, copy_ns) = (median(&ns_each), median(&copy_ns_each));
        OperationRow { kind, size_bytes, threads, neighbour, ns, copy_ns, to_copy: ns / copy_ns, ns_each }
    }
}

impl OperationFigures {
    pub fn new(_job: &Job, found: Found) -> OperationFigures {
        let operations = found.cells.into_iter().map(OperationRow::new).collect();
        OperationFigures { data_bytes: found.data_bytes, operations }
    }
}

impl Figures for OperationFigures {
    fn rows(&self, setting: &Setting) -> String {
        let mut text = format!("{SETTING_HEAD}\n{}\n", setting.columns());
        text += &format!(
            "ns of an operation at random places of {}, and of a copy; by threads of each rank\n",
            format_size(self.data_bytes)
        );
        for of_kind in self.operations.chunk_by(|a, b| (a.kind, a.size_bytes) == (b.kind, b.size_bytes)) {
            text += &format!("  {:<8} {:>4} bytes", of_kind[0].kind.name(), of_kind[0].size_bytes);
            for row in of_kind {
                let whose = if row.neighbour { "neighbour" } else { "own" };
                text += &format!("  {whose} {}: {:>5.1} {:>5.1}", row.threads, row.ns, row.copy_ns);
            }
            text.push('\n');
        }
        text
    }
}

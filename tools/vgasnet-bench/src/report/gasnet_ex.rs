//! Results of `gasnet-ex`.

use super::Verdict;
use crate::baseline::median;
use crate::options::Network;
use serde::Serialize;
use std::path::Path;
use vgasnet_settings::format_size_about;

/// One operation with this number of ranks. Times are medians, in nanoseconds.
#[derive(Debug, Serialize)]
pub struct OperationRow {
    /// The operation, the owner of the word, and the kind of place: for example `get_own_random`.
    pub name: String,
    pub ranks: u32,
    pub ns: f64,
    ns_each: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_ns: Option<f64>,
    other_ns_each: Vec<f64>,
}

impl OperationRow {
    pub fn new(name: &str, ranks: u32) -> OperationRow {
        let name = name.to_owned();
        OperationRow { name, ranks, ns: f64::NAN, ns_each: Vec::new(), other_ns: None, other_ns_each: Vec::new() }
    }

    /// Adds a round.
    pub fn add(&mut self, ns: f64, other_ns: Option<f64>) {
        self.ns_each.push(ns);
        self.ns = median(&self.ns_each);
        self.other_ns_each.extend(other_ns);
        self.other_ns = (!self.other_ns_each.is_empty()).then(|| median(&self.other_ns_each));
    }

    /// The name for people.
    pub fn label(&self) -> String {
        self.name.replace('_', " ")
    }
}

#[derive(Serialize)]
pub struct GasnetExReport<'a> {
    pub benchmark: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<&'a Path>,
    pub network: Network,
    pub spread_bytes: u64,
    pub pool_bytes: u64,
    pub repeat: u32,
    pub rows: Vec<OperationRow>,
    /// The reasons for missing comparisons.
    pub not_run: Vec<String>,
    #[serde(flatten)]
    pub verdict: Verdict,
}

impl GasnetExReport<'_> {
    pub fn table(&self) -> String {
        let (spread, pool) = (format_size_about(self.spread_bytes), format_size_about(self.pool_bytes));
        let mut text = format!("gasnet-ex, {spread} of places, pools of {pool}; nanoseconds\n");
        text += &format!(
            "  {:>5}  {:<26} {:>10} {:>10} {:>8} {:>8}\n",
            "ranks", "operation", "vgasnet", "other", "more", "times"
        );
        for row in &self.rows {
            text += &format!("  {:>5}  {:<26} {:>10.1}", row.ranks, row.label(), row.ns);
            if let Some(other_ns) = row.other_ns {
                text += &format!(" {other_ns:>10.1} {:>8.1} {:>8.2}", row.ns - other_ns, row.ns / other_ns);
            }
            text.push('\n');
        }
        for why in &self.not_run {
            text += &format!("NOT RUN: the other GASNet-EX: {why}\n");
        }
        text + &self.verdict.table()
    }
}

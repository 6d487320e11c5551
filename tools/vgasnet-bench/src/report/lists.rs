//! Results of `lists`.

use super::{Figures, SETTING_HEAD, Setting, Verdict};
use crate::baseline::median;
use crate::lists::{Found, PIECE_BYTES};
use crate::plan::Job;
use crate::targets::judge_lists;
use serde::Serialize;

#[derive(Serialize)]
pub struct ListFigures {
    pub kinds: Vec<ListKind>,
}

/// A kind of transfer.
#[derive(Serialize)]
pub struct ListKind {
    pub name: String,
    pub list_ns: f64,
    pub copy_ns: f64,
    pub to_copy: f64,
    list_ns_each: Vec<f64>,
}

impl ListFigures {
    pub fn new(_job: &Job, found: Found) -> ListFigures {
        let figures = |kind: crate::lists::Kind| {
            let (list_ns, copy_ns) = (median(&kind.list_ns_each), median(&kind.copy_ns_each));
            ListKind { name: kind.name, list_ns, copy_ns, to_copy: list_ns / copy_ns, list_ns_each: kind.list_ns_each }
        };
        ListFigures { kinds: found.kinds.into_iter().map(figures).collect() }
    }
}

impl Figures for ListFigures {
    fn judge(&self, _job: &Job) -> Option<Verdict> {
        Some(Verdict::new(judge_lists(&self.kinds), true))
    }

    fn rows(&self, setting: &Setting) -> String {
        let head = format!("pieces of {PIECE_BYTES} bytes, ns");
        let mut text = format!(
            "{SETTING_HEAD}\n{}\n  {head:<34} {:>6} {:>8} {:>6}\n",
            setting.columns(),
            "list",
            "copies",
            "ratio"
        );
        for kind in &self.kinds {
            text += &format!("  {:<34} {:>6.2} {:>8.2} {:>6.2}\n", kind.name, kind.list_ns, kind.copy_ns, kind.to_copy);
        }
        text
    }
}

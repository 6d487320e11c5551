//! Results of `table`.

use super::{Figures, MAPPED_MEMORY, Run, SETTING_HEAD, Setting, Verdict};
use crate::baseline::median;
use crate::plan::Job;
use crate::table::Found;
use crate::targets::judge_table;
use serde::Serialize;

#[derive(Serialize)]
pub struct TableFigures {
    puts_per_second: f64,
    stores_per_second: f64,
    mapped_per_second: Option<f64>,
    /// Rates divided by the rate of the mapped file.
    puts_to_mapped: Option<f64>,
    stores_to_mapped: Option<f64>,
    /// The same at the best page size, after the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<Best>,
    #[serde(flatten)]
    found: Found,
}

/// Results at the best page size.
#[derive(Clone, Copy, Serialize)]
pub struct Best {
    pub puts_to_mapped: f64,
    pub stores_to_mapped: f64,
}

impl TableFigures {
    /// `before` are the results of the same ranks with other pages. With the last page size all are judged.
    pub fn new(found: Found, before: &[Run<TableFigures>], is_last: bool) -> TableFigures {
        let [puts, stores] = [&found.puts_per_second_each, &found.stores_per_second_each].map(|each| median(each));
        let mapped = found.mapped_not_run.is_none().then(|| median(&found.mapped_per_second_each));
        let to_mapped = |rate: f64| mapped.map(|mapped| rate / mapped);
        let (puts_to_mapped, stores_to_mapped) = (to_mapped(puts), to_mapped(stores));
        let best_of = |own: Option<f64>, other: fn(&TableFigures) -> Option<f64>| {
            own.map(|own| before.iter().filter_map(|run| other(&run.figures)).fold(own, f64::max))
        };
        let best_puts = best_of(puts_to_mapped, |figures| figures.puts_to_mapped);
        let best_stores = best_of(stores_to_mapped, |figures| figures.stores_to_mapped);
        let best = best_puts.zip(best_stores).filter(|_| is_last);
        TableFigures {
            puts_per_second: puts,
            stores_per_second: stores,
            mapped_per_second: mapped,
            puts_to_mapped,
            stores_to_mapped,
            best: best.map(|(puts_to_mapped, stores_to_mapped)| Best { puts_to_mapped, stores_to_mapped }),
            found,
        }
    }
}

impl Figures for TableFigures {
    fn judge(&self, _job: &Job) -> Option<Verdict> {
        let targets = self.best.map_or_else(Vec::new, judge_table);
        Some(Verdict::new(targets, self.found.mapped_not_run.is_none()))
    }

    fn head() -> String {
        format!(
            "{SETTING_HEAD} {:>10} {:>10} {:>10} {:>13} {:>15}\n",
            "puts: 1/s", "stores", "mmap", "puts to mmap", "stores to mmap"
        )
    }

    fn rows(&self, setting: &Setting) -> String {
        let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".into());
        format!(
            "{} {:>10.0} {:>10.0} {:>10} {:>13} {:>15}\n",
            setting.columns(),
            self.puts_per_second,
            self.stores_per_second,
            or_none(self.mapped_per_second.map(|rate| format!("{rate:.0}"))),
            or_none(self.puts_to_mapped.map(|ratio| format!("{ratio:.2}"))),
            or_none(self.stores_to_mapped.map(|ratio| format!("{ratio:.2}"))),
        )
    }

    fn remarks(runs: &[Run<Self>]) -> String {
        let why = runs.iter().find_map(|run| run.figures.found.mapped_not_run.as_ref());
        why.map_or_else(|| format!("{MAPPED_MEMORY}\n"), |why| format!("no mmap beside it: {why}\n"))
    }
}

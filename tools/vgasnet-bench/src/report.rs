//! The one renderer: a table for people and JSON for programs, from the same rows. [`crate::plot`] draws them.

use crate::benchmark::Benchmark;
use crate::plan::Job;
use crate::plot;
use crate::rows::{Json, Row, digits, head};
use crate::{Stop, rows};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use vgasnet_conduit::whole_file;

/// The good side of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    AtMost,
    AtLeast,
}

/// One figure, in the unit at the end of its name, and its bound.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Target {
    name: String,
    meaning: String,
    /// `None` if it is not a number.
    measured: Option<f64>,
    bound: Bound,
    target: f64,
}

impl Target {
    /// The degree of success: 1 reaches the target exactly, more is better.
    fn ratio(&self) -> f64 {
        let measured = self.measured.unwrap_or(f64::NAN);
        if self.bound == Bound::AtMost { self.target / measured } else { measured / self.target }
    }

    fn is_reached(&self) -> bool {
        self.ratio() >= 1.0
    }

    fn row(&self) -> Row {
        let bound = if self.bound == Bound::AtMost { "at most" } else { "at least" };
        Row::labelled(&*self.meaning)
            .keep("name", &self.name)
            .show("measured", self.measured)
            .show("wanted", format!("{bound} {}", digits(self.target)))
            .keep("bound", self.bound)
            .keep("target", self.target)
            .show("ratio", self.ratio())
            .keep("reached", self.is_reached())
            .show("verdict", if self.is_reached() { "reached" } else { "worse" })
    }
}

/// The figures of a job, or of a benchmark without jobs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    pub row: Row,
    pub targets: Vec<Target>,
    /// Reasons for missing figures. Without all figures not all targets are reached.
    pub not_run: Vec<String>,
    /// Lines below the table.
    pub remarks: Vec<String>,
}

impl Figures {
    pub fn of(row: Row) -> Figures {
        Figures { row, ..Figures::default() }
    }

    /// Judges a figure, if it was measured.
    pub fn target(
        mut self,
        name: &str,
        meaning: &str,
        measured: impl Into<Option<f64>>,
        bound: Bound,
        target: f64,
    ) -> Figures {
        if let Some(measured) = measured.into() {
            let measured = Some(measured).filter(|measured| measured.is_finite());
            self.targets.push(Target { name: name.into(), meaning: meaning.into(), measured, bound, target });
        }
        self
    }

    pub fn remark(mut self, line: impl Into<String>) -> Figures {
        self.remarks.push(line.into());
        self
    }

    /// Adds a value to JSON.
    pub fn with(self, name: &str, value: impl Serialize) -> Figures {
        Figures { row: self.row.keep(name, value), ..self }
    }

    /// Whether plain I/O bypassed the page cache.
    pub fn with_direct(self, is_direct: bool) -> Figures {
        self.with("plain_is_direct", is_direct)
    }

    pub fn not_run(mut self, why: impl IntoIterator<Item = String>) -> Figures {
        self.not_run.extend(why);
        self
    }

    fn has_reached_all(&self) -> bool {
        self.not_run.is_empty() && self.targets.iter().all(Target::is_reached)
    }
}

/// A job and its figures.
pub struct Run {
    pub setting: Row,
    pub figures: Figures,
}

/// The results of a benchmark.
pub struct Report {
    head: Row,
    pub runs: Vec<Run>,
    kind: Kind,
}

/// The form of a benchmark's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A list of jobs.
    Jobs,
    /// The same, without targets.
    JobsWithoutTargets,
    /// A single job.
    OneJob,
    /// No job of this program's ranks.
    NoJob,
}

impl Report {
    pub fn of_jobs<B: Benchmark>(options: &B, jobs: &[Job]) -> Report {
        let storage_dir = jobs.first().map(|job| &*job.config.storage_dir);
        let head = Row::default().keep("benchmark", options.mode()).keep_some("storage_dir", storage_dir);
        Report { head, runs: Vec::new(), kind: B::KIND }
    }

    /// The report of a benchmark without jobs.
    pub fn of_figures(name: &str, figures: Figures) -> Report {
        let figures = Figures { row: figures.row.keep("not_run", &figures.not_run), ..figures };
        let head = Row::default().keep("benchmark", name);
        Report { head, runs: vec![Run { setting: Row::default(), figures }], kind: Kind::NoJob }
    }

    /// For targets, and for pairs with and without cooperative caching: whether all are reached, if there are any.
    pub fn has_reached_all(&self) -> Option<bool> {
        let judged = self.runs.iter().filter(|_| self.kind != Kind::JobsWithoutTargets);
        let judged = judged.map(|run| run.figures.has_reached_all());
        let pairs = self.pairs();
        let compared = (!pairs.is_empty()).then(|| !pairs.iter().any(Pair::is_behind));
        judged.chain(compared).reduce(|all, one| all && one)
    }

    /// Adjacent runs that differ only in cooperative caching, of benchmarks that measure a time.
    fn pairs(&self) -> Vec<Pair<'_>> {
        let pairs = self.runs.windows(2).map(|pair| Pair { with: &pair[0], without: &pair[1] });
        pairs.filter(Pair::is_comparable).collect()
    }

    fn json(&self) -> Row {
        let run = |run: &Run| {
            let row = run.setting.clone().and(&run.figures.row);
            if self.kind == Kind::JobsWithoutTargets {
                return row;
            }
            let targets = run.figures.targets.iter().map(Target::row).collect();
            row.rows("targets", targets).keep("reached_all", run.figures.has_reached_all())
        };
        if matches!(self.kind, Kind::OneJob | Kind::NoJob) {
            return self.runs.iter().map(run).fold(self.head.clone(), |all, row| all.and(&row));
        }
        let row = self.head.clone().rows("runs", self.runs.iter().map(run).collect());
        let pairs: Vec<Row> = self.pairs().iter().map(Pair::row).collect();
        let row = if pairs.is_empty() { row } else { row.rows("cooperative", pairs) };
        row.keep_some("reached_all", self.has_reached_all())
    }

    /// The table for people.
    fn text(&self) -> String {
        let mut text = String::new();
        let has_lists = |run: &Run| run.figures.row.lists().next().is_some();
        // Jobs without lists are the rows of one table.
        for runs in self.runs.chunk_by(|one, other| !has_lists(one) && !has_lists(other)) {
            let row = |run: &Run| run.setting.clone().and(&run.figures.row).relabelled(run.figures.row.label.clone());
            text += &lists("", &runs.iter().map(row).collect::<Vec<_>>(), 0);
            let mut lines = Vec::new();
            for figures in runs.iter().map(|run| &run.figures) {
                let cached = figures.row.is("plain_is_direct", false);
                lines.extend(cached.then(|| NOT_DIRECT.to_owned()));
                lines.extend(figures.not_run.iter().map(|why| format!("NOT RUN: {why}")));
                lines.extend_from_slice(&figures.remarks);
            }
            lines.dedup();
            lines.iter().for_each(|line| text += &format!("{line}\n"));
            // Between the rows of a table only bad verdicts are worth a line.
            let is_shown = |run: &&Run| runs.len() == 1 || !run.figures.has_reached_all();
            let targets = runs.iter().filter(is_shown).flat_map(|run| &run.figures.targets);
            text += &table("figure", &targets.map(Target::row).collect::<Vec<_>>(), 0);
        }
        text + &table("cooperative caching", &self.pairs().iter().map(Pair::row).collect::<Vec<_>>(), 0)
    }
}

const NOT_DIRECT: &str = "the directory has no O_DIRECT: plain reads and writes went through the page cache";

/// The value that cooperative caching is to lower.
const TIME: &str = "time_seconds";

/// The same job with and without cooperative caching.
struct Pair<'a> {
    with: &'a Run,
    without: &'a Run,
}

impl Pair<'_> {
    fn is_comparable(&self) -> bool {
        let is_same = |name: &str| self.with.setting.number(name) == self.without.setting.number(name);
        let [with, without] = [self.with, self.without].map(|run| &run.setting);
        let is_pair = with.is("cooperative", true) && without.is("cooperative", false);
        let peer_memory = with.is("peer_memory", true) == without.is("peer_memory", true);
        is_pair && peer_memory && is_same("ranks") && !self.speedup().is_nan()
    }

    /// The time without, divided by the time with it: more than 1 is a gain.
    fn speedup(&self) -> f64 {
        self.without.figures.row.number(TIME) / self.with.figures.row.number(TIME)
    }

    /// Times of the same work differ by a few percent. For a single rank both jobs are equal.
    fn is_behind(&self) -> bool {
        const NOISE: f64 = 1.05;
        self.with.setting.number("ranks") > 1.0 && self.speedup() * NOISE < 1.0
    }

    fn row(&self) -> Row {
        let (setting, label) = (&self.with.setting, &self.with.figures.row.label);
        let row = Row::labelled(&**label).show("ranks", setting.number("ranks") as u64);
        let row = row.show("peer_memory", setting.is("peer_memory", true));
        let row = row.keep_some("subject", (!label.is_empty()).then_some(label)).show("speedup", self.speedup());
        if self.is_behind() { row.show("verdict", "behind") } else { row }
    }
}

/// Rows as tables, each followed by the tables of lists in its rows.
fn lists(name: &str, rows: &[Row], indent: usize) -> String {
    let has_lists = |row: &Row| row.lists().next().is_some();
    let mut text = String::new();
    for rows in rows.chunk_by(|one, other| !has_lists(one) && !has_lists(other)) {
        text += &if rows[0].column.is_empty() { table(name, rows, indent) } else { matrix(name, rows, indent) };
        for (name, rows) in rows.iter().flat_map(Row::lists) {
            text += &lists(name, rows, indent + 2);
        }
    }
    text
}

/// A line for each row, and a column for each value.
fn table(name: &str, rows: &[Row], indent: usize) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(Row::cells) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let is_labelled = rows.iter().any(|row| !row.label.is_empty());
    let label = |text: String| is_labelled.then_some(text);
    let heads = label(head(name)).into_iter().chain(names.iter().map(|name| head(name))).collect();
    let line = |row: &Row| {
        let cells: Vec<(&str, String)> = row.cells().collect();
        let of =
            |name: &&str| cells.iter().find(|(other, _)| other == name).map_or_else(String::new, |cell| cell.1.clone());
        label(row.label.clone()).into_iter().chain(names.iter().map(of)).collect()
    };
    aligned(&std::iter::once(heads).chain(rows.iter().map(line)).collect::<Vec<_>>(), indent)
}

/// A line for each label, with the values of each column together.
fn matrix(name: &str, rows: &[Row], indent: usize) -> String {
    let mut columns: Vec<&str> = Vec::new();
    let mut labels: Vec<&str> = Vec::new();
    for row in rows {
        for (all, one) in [(&mut columns, &*row.column), (&mut labels, &*row.label)] {
            if !all.contains(&one) {
                all.push(one);
            }
        }
    }
    let values = rows[0].cells().map(|(name, _)| rows::head(name)).collect::<Vec<_>>().join(", ");
    let heads = std::iter::once(format!("{}: {values}", head(name)));
    let mut lines = vec![heads.chain(columns.iter().map(ToString::to_string)).collect::<Vec<_>>()];
    for label in labels {
        let of = |column: &&str| {
            let row = rows.iter().find(|row| row.label == label && row.column == *column);
            row.map_or_else(String::new, |row| row.cells().map(|(_, cell)| cell).collect::<Vec<_>>().join(" "))
        };
        lines.push(std::iter::once(label.to_owned()).chain(columns.iter().map(of)).collect());
    }
    aligned(&lines, indent)
}

/// A single row wider than this is a column.
const WIDTH_MAX: usize = 120;

/// Columns of equal width: the first to the left, the others to the right.
fn aligned(lines: &[Vec<String>], indent: usize) -> String {
    let is_wide = |line: &Vec<String>| line.iter().map(|cell| cell.chars().count() + 2).sum::<usize>() > WIDTH_MAX;
    if lines.len() == 2 && lines[0].len() > 2 && lines.iter().any(is_wide) {
        let pairs = lines[0].iter().zip(&lines[1]).map(|(head, cell)| vec![head.clone(), cell.clone()]);
        return aligned(&pairs.collect::<Vec<_>>(), indent);
    }
    let width = |at: usize| lines.iter().filter_map(|line| line.get(at)).map(|cell| cell.chars().count()).max();
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    if lines.len() < 2 || columns == 0 {
        return String::new();
    }
    let mut text = String::new();
    for line in lines {
        let mut row = " ".repeat(indent);
        for (at, cell) in line.iter().enumerate() {
            let width = width(at).unwrap_or(0);
            row += &if at == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
        }
        text += &format!("{}\n", row.trim_end());
    }
    text
}

/// The destinations of the results.
pub struct Output {
    json: Option<PathBuf>,
    plot: Option<PathBuf>,
}

impl Output {
    /// Tries to open all files, so an unwritable one is reported before any long work.
    pub fn open(json: Option<PathBuf>, plot: Option<PathBuf>) -> Result<Output, Stop> {
        if let Some(path) = plot.as_ref().filter(|path| path.extension().is_none_or(|extension| extension != "svg")) {
            return Err(Stop::usage(format!("--plot {}: it draws SVG; give a name that ends in .svg", path.display())));
        }
        let output = Output { json, plot };
        let json = output.json.as_deref().filter(|_| !output.is_json_to_stdout());
        for (option, path) in [("--plot", output.plot.as_deref()), ("--json", json)] {
            let tried = path.map_or(Ok(()), whole_file::try_path);
            tried.map_err(|error| Stop::usage(failed(option, path, error)))?;
        }
        Ok(output)
    }

    /// The table then goes to stderr.
    fn is_json_to_stdout(&self) -> bool {
        self.json.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// Writes the results, and draws the image if requested.
    pub fn show(&self, benchmark: &str, report: &Report) -> Result<(), Stop> {
        let written = |error: io::Error| Stop::failure(format!("writing the results: {error}"));
        let json = serde_json::to_string_pretty(&Json(&report.json())).map_err(|error| written(error.into()))? + "\n";
        let text = report.text();
        if self.is_json_to_stdout() {
            let all = io::stdout().write_all(json.as_bytes());
            all.and_then(|()| io::stderr().write_all(text.as_bytes())).map_err(written)?;
        } else {
            replace("--json", self.json.as_deref(), || Ok(json))?;
            io::stdout().write_all(text.as_bytes()).map_err(written)?;
        }
        replace("--plot", self.plot.as_deref(), || plot::draw(benchmark, &report.runs))
    }
}

fn failed(option: &str, path: Option<&Path>, error: impl std::fmt::Display) -> String {
    format!("{option} {}: {error}", path.unwrap_or(Path::new("")).display())
}

/// Writes the file of an option, if it was given.
fn replace(option: &str, path: Option<&Path>, text: impl FnOnce() -> Result<String, String>) -> Result<(), Stop> {
    let Some(file) = path else { return Ok(()) };
    let written = text().and_then(|text| {
        let written = whole_file::replace(file, |file| file.write_all(text.as_bytes()));
        written.map_err(|error| error.to_string())
    });
    written.map_err(|error| Stop::failure(failed(option, path, error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(ranks: u32, cooperative: bool, seconds: f64) -> Run {
        let setting = Row::default().show("ranks", ranks).show("cooperative", cooperative).keep("peer_memory", true);
        Run { setting, figures: Figures::of(Row::default().show(TIME, seconds)) }
    }

    #[test]
    fn cooperative_caching_is_behind_nowhere_or_the_target_is_missed() {
        let judge = |speedups: &[f64]| {
            let runs = speedups.iter().flat_map(|speedup| [run(2, true, 1.0), run(2, false, *speedup)]).collect();
            Report { head: Row::default(), runs, kind: Kind::JobsWithoutTargets }.has_reached_all()
        };
        assert_eq!([judge(&[]), judge(&[1.0, 0.97, 3.0]), judge(&[2.0, 0.9])], [None, Some(true), Some(false)]);
    }

    #[test]
    fn jobs_are_rows_of_one_table_and_lists_are_tables_below() {
        let report =
            Report { head: Row::default(), runs: vec![run(1, true, 2.0), run(2, true, 1.0)], kind: Kind::Jobs };
        assert_eq!(
            report.text(),
            "ranks  cooperative  time s\n1               on    2.00\n2               on    1.00\n"
        );
        let kinds = vec![Row::labelled("get").show("list_ns", 7.5), Row::labelled("put").show("list_ns", 12.25)];
        let figures = Figures::of(Row::default().rows("kinds", kinds)).target("x", "a hit", 9.0, Bound::AtMost, 6.0);
        let report = Report::of_figures("lists", figures);
        let table = "  kinds  list ns\n  get       7.50\n  put      12.25\n";
        let target = "figure  measured        wanted  ratio  verdict\na hit       9.00  at most 6.00  0.667    worse\n";
        assert_eq!((report.text(), report.has_reached_all()), (format!("{table}{target}"), Some(false)));
    }

    #[test]
    fn cells_with_the_same_label_are_a_line() {
        let cell = |label: &str, column: &str, us: f64| Row::cell(label, column).show("us", us);
        let rows = [cell("get", "8", 1.0), cell("get", "64", 2.0), cell("put", "64", 3.0)];
        assert_eq!(matrix("rows", &rows, 0), "rows: us     8    64\nget       1.00  2.00\nput             3.00\n");
    }
}

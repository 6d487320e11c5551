//! The statistics of a job as a table for a terminal: 100 columns with four ranks.

use super::advice::advice;
use super::numbers::{count, duration, shown};
use super::rows::{Declared, ROWS, Row, sections};
use super::snapshot::Snapshot;
use std::fmt::Write;

/// With more ranks only the least and the most of them are shown.
const RANKS_SHOWN_MAX: usize = 8;

/// Width of the names of rows.
const NAME: usize = 32;

/// The table, with the advice and a newline at its end. Rows of zeros are left out. `ranks` are the ranks from `first`
/// on.
pub fn table(title: &str, first: u32, ranks: &[Snapshot]) -> String {
    let sum = Snapshot::sum(ranks);
    let mut text = format!("{title}\n{:NAME$}", "");
    push(&mut text, &headings(first, ranks.len()));
    // A pending wait has a time before it is counted.
    let is_shown = |declared: &&Declared| sum.shown(declared.row) > 0;
    for section in sections() {
        let rows: Vec<_> = Row::of_section(section).filter(is_shown).collect();
        if !rows.is_empty() {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{section}");
        }
        for declared in rows {
            let _ = write!(text, "  {:1$}", declared.label, NAME - 2);
            push(&mut text, &cells(declared, &sum, first, ranks));
        }
    }
    push_times(&mut text, &sum);
    text + &advice(ranks) + "\n"
}

fn push(text: &mut String, cells: &[String]) {
    cells.iter().for_each(|cell| {
        let _ = write!(text, " {cell:>10}");
    });
    text.push('\n');
}

fn headings(first: u32, ranks: usize) -> Vec<String> {
    let rank = |rank: usize| format!("rank {}", first as usize + rank);
    match ranks {
        1 => vec![rank(0)],
        2..=RANKS_SHOWN_MAX => std::iter::once("all".to_owned()).chain((0..ranks).map(rank)).collect(),
        _ => ["all", "least", "by rank", "most", "by rank"].map(str::to_owned).to_vec(),
    }
}

fn cells(declared: &Declared, sum: &Snapshot, first: u32, ranks: &[Snapshot]) -> Vec<String> {
    let cell = |snapshot: &Snapshot| shown(declared.kind, snapshot.shown(declared.row));
    let mut cells = vec![cell(sum)];
    if ranks.len() <= RANKS_SHOWN_MAX {
        if ranks.len() > 1 {
            cells.extend(ranks.iter().map(cell));
        }
        return cells;
    }
    let by = |at: &usize| ranks[*at].shown(declared.row);
    // The lowest of several ranks with equal numbers.
    let least = (0..ranks.len()).min_by_key(by);
    let most = (0..ranks.len()).rev().max_by_key(by);
    for at in least.into_iter().chain(most) {
        cells.extend([cell(&ranks[at]), (first as usize + at).to_string()]);
    }
    cells
}

/// Appends the durations of the timed rows.
fn push_times(text: &mut String, sum: &Snapshot) {
    let timed = ROWS.iter().filter_map(|declared| Some((declared, sum.times_of(declared.row)?)));
    let timed: Vec<_> = timed.filter(|(_, times)| times.count() > 0).collect();
    if timed.is_empty() {
        return;
    }
    let _ = write!(text, "{:NAME$}", "times");
    push(text, &["number", "in all", "half <", "90 % <", "99 % <", "longest"].map(str::to_owned));
    for (declared, times) in timed {
        let name = format!("{}: {}", declared.section, declared.label);
        let _ = write!(text, "  {name:0$}", NAME - 2);
        let [p50, p90, p99] = [50, 90, 99].map(|percent| duration(times.percentile_ns(percent)));
        push(text, &[count(times.count()), duration(times.sum_ns), p50, p90, p99, duration(times.max_ns)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(count: usize) -> Vec<Snapshot> {
        let rank = |rank: usize| {
            let mut snapshot = Snapshot::default();
            snapshot.set(Row::Elapsed, 2_000_000_000);
            snapshot.set(Row::HitGets, 10 * rank as u64 + 5);
            let times = &mut snapshot.times[Row::MissNeighbour.timed_index()];
            (times.buckets[30], times.sum_ns, times.max_ns) = (3, 60_000, 25_000);
            snapshot
        };
        (0..count).map(rank).collect()
    }

    #[test]
    fn four_ranks_fit_a_terminal_and_columns_are_aligned() {
        let text = table("statistics", 0, &ranks(4));
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
        let line = |start: &str| text.lines().find(|line| line.starts_with(start)).expect("a line").to_owned();
        assert_eq!(
            line("  gets, own pool"),
            format!("{:32}{:>11}{:>11}{:>11}{:>11}{:>11}", "  gets, own pool", 80, 5, 15, 25, 35)
        );
        assert_eq!(
            line("  rank of this host").split_whitespace().skip(4).collect::<Vec<_>>(),
            ["12", "3", "3", "3", "3"]
        );
        assert!(line("  misses: rank of this host").contains("240 us"), "{text}");
        assert!(!text.contains("puts"), "rows of zeros are left out: {text}");
    }

    #[test]
    fn a_wait_is_shown_before_it_ends() {
        let mut snapshot = Snapshot::default();
        snapshot.times[Row::WaitBarrier.timed_index()].sum_ns = 4_000_000_000;
        let text = table("statistics", 0, &[snapshot]);
        assert!(text.contains("\nwaits\n  barriers") && text.contains(" 4 s\n") && !text.contains("\ntimes"), "{text}");
    }

    #[test]
    fn of_many_ranks_the_least_and_the_most_are_shown() {
        let text = table("statistics", 0, &ranks(12));
        let line = text.lines().find(|line| line.starts_with("  gets, own pool")).expect("a line");
        assert_eq!(line.split_whitespace().skip(3).collect::<Vec<_>>(), ["720", "5", "0", "115", "11"]);
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    }

    #[test]
    fn one_rank_has_one_column() {
        let text = table("statistics", 7, &ranks(1));
        assert!(text.lines().nth(1).is_some_and(|line| line.trim() == "rank 7"), "{text}");
    }
}

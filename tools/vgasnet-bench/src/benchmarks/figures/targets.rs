//! Targets of the model, and its results.

use super::Results;
use vgasnet_sim::scale::{MESSAGES_TARGET, PART_TARGET, Scaled};
use vgasnet_sim::{Table, short};

/// A row: the measurement, the target, the result, and whether the target is met.
type Row = (String, String, String, bool);

/// The table.
pub fn table(results: &Results) -> Table {
    let mut table = Table::new(&["measurement", "target", "figure", ""]);
    let rows = ranks(results).into_iter().chain(nodes(&results.scaled)).chain(kept(results));
    for (what, target, figure, is_met) in rows.chain(super::measured::targets(&results.measured)) {
        table.row(vec![what, target, figure, if is_met { "met" } else { "missed" }.into()]);
    }
    table
}

/// Results for the paper's machine, 32 ranks.
fn ranks(results: &Results) -> Vec<Row> {
    let ratios = |figure| -> Vec<(f64, f64)> {
        let rates = |ranks| results.ours.rates(figure, ranks, true);
        rates(32).into_iter().zip(rates(1)).map(|((data, all), (_, one))| (data, all / one)).collect()
    };
    let least = |ratios: &[(f64, f64)]| ratios.iter().map(|(_, times)| *times).fold(f64::INFINITY, f64::min);
    let at = |ratios: &[(f64, f64)], pools| {
        ratios.iter().find(|(data, _)| *data == pools).map_or(f64::NAN, |(_, times)| *times)
    };
    let times = |what: &str, times: f64| {
        (what.to_owned(), "at least 28 times one rank".to_owned(), short(times), times >= 28.0)
    };
    let mut rows = Vec::new();
    for (figure, order) in [(5, "in order"), (6, "at random")] {
        let ratios = ratios(figure);
        rows.push(times(&format!("32 ranks, {order}, data up to four pools"), least(&ratios)));
        let kept = at(&ratios, 1.1) / at(&ratios, 0.9);
        rows.push((
            format!("the same, just past a pool to just below it, {order}"),
            "at least 0.8".into(),
            short(kept),
            kept >= 0.8,
        ));
    }
    for one in &results.parts {
        let numbers = one.by_default();
        match one.what {
            what if what.contains("data of 28 pools") => {
                rows.push(times("32 ranks, at random, data of 28 pools, first time", numbers[0]));
            }
            what if what.starts_with("false sharing") => {
                let target = "at most 2 times puts by RDMA".to_owned();
                rows.push(("32 ranks, false sharing".into(), target, short(numbers[0]), numbers[0] <= 2.0));
            }
            _ => {}
        }
    }
    rows
}

/// Results for the machine of today, with the largest number of nodes.
fn nodes(all: &[Scaled]) -> Vec<Row> {
    let most = all.iter().map(|one| one.nodes).max().unwrap_or_default();
    let mut rows: Vec<Row> = Vec::new();
    for one in all.iter().filter(|one| one.nodes == most) {
        let is_met = !one.part_cell().contains("missed");
        let what = format!("{most} nodes, {}", one.what);
        rows.push((what, format!("at least {PART_TARGET} of the fewest nodes'"), format!("{:.2}", one.part), is_met));
    }
    let worst = all.iter().filter_map(Scaled::messages_a_page_read).fold(0.0, f64::max);
    let target = format!("at most {MESSAGES_TARGET}");
    rows.push((
        "messages for each page that is read, worst pattern".into(),
        target,
        short(worst),
        worst <= MESSAGES_TARGET,
    ));
    let without_notices = |one: &Scaled| {
        let outcome = &one.outcome;
        let counted = outcome.a_page(outcome.notices) + 2.0 * outcome.a_page(outcome.bounces);
        one.messages_a_page_read().map(|messages| messages - counted)
    };
    let worst = all.iter().filter_map(without_notices).fold(0.0, f64::max);
    rows.push((
        "the same without notices of evictions and bounces".into(),
        "at most 4".into(),
        short(worst),
        worst <= 4.005,
    ));
    rows
}

/// Memory kept for other ranks.
fn kept(results: &Results) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for one in results.startups.iter().step_by(super::HOSTS.len()) {
        let (what, bytes) = (format!("memory of a rank for each other, {}", one.network.name()), one.kept_bytes_a_rank);
        rows.push((what, "at most 64 bytes".into(), format!("{bytes} bytes"), bytes <= 64));
    }
    rows
}

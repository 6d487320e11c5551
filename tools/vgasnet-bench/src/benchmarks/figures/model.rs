//! Results of the model beyond the paper: parts of the protocol, more nodes, hints, startup.

use super::lines::{Chart, Line};
use super::page::Page;
use super::{Results, SCALE_LARGER, SCALE_TODAY};
use vgasnet_sim::scale::{self, Scaled};
use vgasnet_sim::{parts, startup};

/// Captions of the tables in [`vgasnet_sim::twice::tables`].
const TWICE: [&str; 4] = [
    "Homes round robin (VGASNET_HOMES=cyclic), all data in one segment",
    "Idle pools (VGASNET_IDLE_POOLS=1), some ranks read and the others are idle",
    "Copies at the home (VGASNET_HOME_KEEPS=1)",
    "Hints naming a rank that has the page; the library has none",
];

/// Adds all sections.
pub fn show(page: &mut Page, results: &Results) {
    page.section("nodes");
    more_nodes(page, results);
    page.section("parts");
    page.sim_table("Parts of the protocol, 32 ranks", &parts::table(&results.parts));
    page.sim_table("Wait of a put that overwrites a page held by others", &results.overwriting);
    for (caption, table) in TWICE.iter().zip(&results.twice) {
        page.sim_table(*caption, table);
    }
    page.section("hints");
    page.sim_table("Throughput if every holder were known", &scale::hints_table(&asked(results), &results.known));
    page.section("start-up");
    for chunk in results.startups.chunks(super::HOSTS.len()) {
        let ranks = chunk[0].ranks / u64::from(chunk[0].hosts);
        page.sim_table(
            format!("Start-up over {}, hosts of {ranks} ranks", chunk[0].network.name()),
            &startup::table(chunk),
        );
    }
}

/// The points that were also run with known holders.
fn asked(results: &Results) -> Vec<Scaled> {
    let is_known = |one: &&Scaled| results.known.iter().any(|known| known.what == one.what && known.nodes == one.nodes);
    results.scaled.iter().filter(is_known).cloned().collect()
}

fn more_nodes(page: &mut Page, results: &Results) {
    let all = &results.scaled;
    let mut lines: Vec<Line> = Vec::new();
    for one in all {
        let point = (f64::from(one.nodes), one.part);
        match lines.last_mut().filter(|line| line.name == one.what) {
            Some(line) => line.points.push(point),
            None => lines.push(Line::new(one.what, vec![point])),
        }
    }
    let second = lines.split_off(lines.len() / 2);
    for lines in [lines, second] {
        let title = "Throughput of a node as nodes are added".to_owned();
        let (x, y) = ("nodes", "part of the throughput with the fewest nodes");
        page.chart(Chart { title, x, y, x_is_log: true, y_is_log: false, lines });
    }
    page.sim_table(format!("Patterns and nodes, pools and data {SCALE_TODAY} times smaller"), &scale::table(all));
    page.sim_table(format!("The same, {SCALE_LARGER} times smaller: larger pools"), &scale::table(&results.larger));
}

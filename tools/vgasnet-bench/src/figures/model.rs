//! What the model finds beyond the paper: parts of the protocol, more nodes, hints, start-up.

use super::lines::{Chart, Line};
use super::page::Page;
use super::{Results, SCALE, SCALE_LARGER, SCALE_TODAY};
use vgasnet_sim::scale::{self, PART_TARGET, Scaled};
use vgasnet_sim::{parts, startup};

/// What the tables of [`vgasnet_sim::twice::tables`] compare.
const TWICE: [&str; 4] = [
    "Pages of the one segment that has all data may have their homes in turns (VGASNET_HOMES=cyclic):",
    "Where some ranks read and the others are idle, pages that leave the last pool may go to theirs (VGASNET_IDLE_POOLS=1):",
    "A home may keep a copy of what it reads from its disk for another rank (VGASNET_HOME_KEEPS=1):",
    "Hints would name a rank that has the page. Own hints: each request reaches its home in no time if what the asking rank has sent and \
     received names such a rank. All are known: each request does, which no hints can exceed.",
];

/// All sections.
pub fn show(page: &mut Page, results: &Results) -> Result<(), String> {
    page.head("What the parts of the protocol bring");
    page.sim_table(&parts::table(&results.parts));
    page.paragraph(&format!(
        "The paper's machine, {SCALE} times smaller; all data on one rank, read by all from empty pools. Trees: a page that many ask for \
         spreads as a tree, and those who have it tell each other that they lose it. Only copies stay: pages go first that other ranks \
         have, too. Messages together: notices of evictions wait for other messages, and messages to one rank go as one."
    ));
    page.paragraph("How much longer a put waits that overwrites a page which others have:");
    page.sim_table(&results.overwriting);
    for (what, table) in TWICE.iter().zip(&results.twice) {
        page.paragraph(what);
        page.sim_table(table);
    }
    page.command("vgasnet-sim parts M/paper.toml");
    page.head("More nodes: a machine of today");
    more_nodes(page, results)?;
    page.head("Hints of who has a page");
    page.sim_table(&scale::hints_table(&asked(results), &results.known));
    page.paragraph(
        "Known: each request for a page reaches its home in no time, which no hints can exceed. There are no hints in the library.",
    );
    page.command(&format!("vgasnet-sim scale M/today.toml --scale {SCALE_TODAY} --known-holders"));
    page.head("Start-up and memory for other ranks");
    for chunk in results.startups.chunks(super::HOSTS.len()) {
        page.paragraph(&format!(
            "Over {}, hosts of {} ranks:",
            chunk[0].network.name(),
            chunk[0].ranks / u64::from(chunk[0].hosts)
        ));
        page.sim_table(&startup::table(chunk));
    }
    page.paragraph("Kept a rank: bytes that a rank keeps for each other rank, at most 64.");
    page.command("vgasnet-sim startup M/today.toml, and with --network gasnet");
    Ok(())
}

/// The points that were run with known holders, too.
fn asked(results: &Results) -> Vec<Scaled> {
    let is_known = |one: &&Scaled| results.known.iter().any(|known| known.what == one.what && known.nodes == one.nodes);
    results.scaled.iter().filter(is_known).cloned().collect()
}

fn more_nodes(page: &mut Page, results: &Results) -> Result<(), String> {
    let all = &results.scaled;
    let mut lines: Vec<Line> = Vec::new();
    for one in all {
        let point = (f64::from(one.nodes), one.part);
        match lines.last_mut().filter(|line| line.name == one.what) {
            Some(line) => line.points.push(point),
            None => lines.push(Line::new(one.what, vec![point])),
        }
    }
    let [first, last] = [all.first(), all.last()].map(|one| one.map_or(1.0, |one| f64::from(one.nodes)));
    for lines in [lines.drain(..lines.len() / 2).collect::<Vec<_>>(), lines] {
        let target = Line::papers("the target", vec![(first, PART_TARGET), (last, PART_TARGET)]);
        let lines: Vec<Line> = lines.into_iter().chain([target]).collect();
        let (title, x) = ("What is left of the throughput of a node".to_owned(), "nodes");
        let chart = Chart { title, x, y: "part of that with the fewest nodes", x_is_log: true, y_is_log: false, lines };
        page.chart(&chart.draw()?);
    }
    page.sim_table(&scale::table(all));
    page.paragraph(
        "A node is one rank with all its pools, but for the pattern with all ranks. Pools and data are so many times smaller as the scale \
         says; graph and files do not change with it. Data grows with the nodes but for that of the first node and the shared page. In \
         order, a node reads the data of 512 nodes at most. Lists of neighbours are drawn by a law and not from a run of the example; \
         they get longer with the graph, so gets are counted. Notices and bounces are parts of the messages a page: notices say that a \
         page was given up, and bounces are ranks that were to serve another and had given the page up.",
    );
    page.command(&format!("vgasnet-sim scale M/today.toml --scale {SCALE_TODAY} --nodes ..."));
    page.paragraph("The same with larger pools:");
    page.sim_table(&scale::table(&results.larger));
    page.command(&format!("vgasnet-sim scale M/today.toml --scale {SCALE_LARGER} --nodes ..."));
    Ok(())
}

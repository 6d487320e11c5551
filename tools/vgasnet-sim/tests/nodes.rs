//! The same work for growing numbers of nodes of the machine of today, compared with model-results.md and the promises
//! of the protocol.

use std::path::Path;
use std::sync::LazyLock;
use vgasnet_sim::scale::{self, Choice, Scaled};
use vgasnet_sim::{Hints, Machine, Table};

const CHOICE: Choice = Choice { scale: 512, seed: 1, hints: Hints::None, ranks_max: 2048 };

/// The points of all tests here.
static ALL: LazyLock<Vec<Scaled>> = LazyLock::new(|| run(&[32, 128, 512], CHOICE));

fn run(nodes: &[u32], choice: Choice) -> Vec<Scaled> {
    scale::run(&Machine::today(), nodes, choice).expect("the jobs end")
}

fn documented() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/model-results.md");
    std::fs::read_to_string(path).expect("it is there")
}

/// Asserts that the document has each row, perhaps with more cells. Rows not run completely are skipped.
fn assert_documented(table: &Table) {
    let text = documented();
    let rows = table.markdown();
    let begins = |row: &&String| !text.lines().any(|line| line.starts_with(row.trim_end_matches(" |")));
    let missing: Vec<&String> = rows[2..].iter().filter(|row| !row.contains("not run")).filter(begins).collect();
    assert!(missing.is_empty(), "model-results.md lacks these rows:\n{missing:#?}");
}

#[test]
fn parts_and_messages_are_as_documented() {
    assert_documented(&scale::parts_table(&ALL));
    assert_documented(&scale::messages_table(&ALL));
}

#[test]
fn parts_with_larger_pools_are_as_documented() {
    let all = run(&[32, 128], Choice { scale: 64, ..CHOICE });
    assert_documented(&scale::parts_table(&all));
    let in_order = |one: &&Scaled| one.what == "data of all nodes, in order";
    let cells: Vec<String> = all.iter().filter(in_order).map(scale::messages_cell).collect();
    let row = format!("| data of all nodes, in order | {} |", cells.join(" | "));
    assert!(documented().contains(row.trim_end_matches(" |")), "model-results.md lacks: {row}");
}

#[test]
fn a_read_takes_four_messages_besides_notices_and_bounces() {
    let reads = ALL.iter().filter(|one| one.point.only_reads() && one.outcome.messages_a_page.is_some());
    let mut nodes: Vec<u32> = reads
        .map(|Scaled { what, nodes, outcome, .. }| {
            let besides = outcome.a_page(outcome.notices) + 2.0 * outcome.a_page(outcome.bounces);
            let messages = outcome.messages_a_page.expect("pages come") - besides;
            assert!(messages <= 4.05, "{what}, {nodes} nodes: {messages} messages, and {besides} besides");
            // A page is transferred once, or read from the file.
            assert!(outcome.transfers <= outcome.pages + outcome.disk_reads, "{what}, {nodes} nodes: {outcome:?}");
            *nodes
        })
        .collect();
    nodes.sort_unstable();
    nodes.dedup();
    assert_eq!(nodes, [32, 128, 512]);
}

#[test]
fn a_node_has_as_much_data_however_many_there_are() {
    for pair in ALL.windows(2).filter(|pair| pair[0].what == pair[1].what && pair[0].what.starts_with("data of all")) {
        let [few, many] = [&pair[0], &pair[1]].map(|one| one.data_pools() / f64::from(one.nodes));
        assert!((few - many).abs() < 1e-9, "{}: {few} and {many} pools a node", pair[0].what);
    }
}

#[test]
fn the_scale_is_the_one_that_was_used() {
    for one in ALL.iter() {
        let pool_bytes = Machine::today().node.pool * if one.point.ranks == one.nodes { 64 } else { 1 };
        assert_eq!(one.frames, pool_bytes / one.point.scale / one.page_bytes, "{one:?}");
        assert!(one.frames >= 16, "{one:?}");
    }
}

#[test]
fn what_known_holders_bring_is_as_documented() {
    let known = run(&[32], Choice { hints: Hints::All, ..CHOICE });
    let asked = run(&[32], CHOICE);
    let gain = |what: &str| {
        let of = |all: &[Scaled]| all.iter().find(|one| one.what == what).expect("it is a pattern").clone();
        (100.0 * of(&known).more_than(&of(&asked))).round()
    };
    let text = documented();
    for (row, what) in [
        ("in order (ranks wait for links busy with pages)", "data of all nodes, in order"),
        ("pages at random", "data of all nodes, pages at random"),
        ("sliding window", "a shared file: sliding window"),
    ] {
        let cells = format!("| {row} | {} % more |", gain(what));
        assert!(text.contains(&cells), "model-results.md lacks: {cells}");
    }
}

#[test]
fn messages_of_pieces_are_not_counted_for_the_few_pages_that_come() {
    let mut machine = Machine::today();
    machine.node.page = 2 << 20;
    let all = scale::run(&machine, &[16], Choice { ranks_max: 0, ..CHOICE }).expect("the jobs end");
    let lists = all.iter().find(|one| one.what == "lists of neighbours in a graph").expect("it is a pattern");
    assert!(lists.outcome.pages > 0 && lists.outcome.messages_a_page > Some(100.0), "{lists:?}");
    assert_eq!((lists.messages_a_page_read(), lists.messages_cell().as_str()), (None, "few pages come"));
}

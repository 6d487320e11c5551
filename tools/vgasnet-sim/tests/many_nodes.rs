//! Patterns on 4,096 nodes, compared with model-results.md: the patterns that take seconds, and with `CHECK_ALL=1` also
//! the others, at a quarter of a minute or more each.

use std::path::Path;
use vgasnet_sim::scale::{self, Choice};
use vgasnet_sim::{Hints, Machine};

const FAST: [&str; 3] = ["all data of the first node", "false sharing", "a shared file"];

/// The cells for 32 and 4,096 nodes in the document's rows that start with `what` and have both.
fn documented(what: &str) -> Vec<[String; 2]> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/model-results.md");
    let text = std::fs::read_to_string(path).expect("it is there");
    let cells = |row: &str| -> Vec<String> { row.trim_matches(['|', ' ']).split(" | ").map(str::to_owned).collect() };
    let rows = text.lines().filter(|line| line.starts_with(&format!("| {what} |"))).map(cells);
    // Name, and 32, 128, 512 and 4,096 nodes.
    rows.filter_map(|cells| <[String; 5]>::try_from(cells).ok()).map(|[_, few, _, _, many]| [few, many]).collect()
}

#[test]
fn parts_and_messages_of_4096_nodes_are_as_documented() {
    let choice = Choice { scale: 512, seed: 1, hints: Hints::None, ranks_max: 0 };
    let has_all = std::env::var_os("CHECK_ALL").is_some();
    let mut compared = 0;
    for pattern in if has_all { &[""][..] } else { &FAST } {
        let all = scale::run_only(pattern, &Machine::today(), &[32, 4096], choice).expect("the jobs end");
        for table in [scale::parts_table(&all), scale::messages_table(&all)] {
            for row in &table.rows()[1..] {
                let [what, few, many] = &row[..] else { panic!("{row:?}") };
                let found = documented(what);
                assert!(
                    found.contains(&[few.clone(), many.clone()]),
                    "model-results.md has {found:?} in place of {row:?}"
                );
                compared += 1;
            }
        }
    }
    assert_eq!(compared, if has_all { 2 * 9 } else { 2 * 5 });
}

#[test]
fn a_text_that_no_pattern_has_is_one_line() {
    let choice = Choice { scale: 512, seed: 1, hints: Hints::None, ranks_max: 0 };
    let line = scale::run_only("no such", &Machine::today(), &[2], choice).expect_err("there is none");
    assert!(line.starts_with("no pattern has \"no such\" in its name; they are: all data of the first node"), "{line}");
}

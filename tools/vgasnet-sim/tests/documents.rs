//! Numbers of the model in model-results.md.

use std::path::Path;
use std::process::Command;
use vgasnet_sim::startup::{Network, StartUp, StartingJob};
use vgasnet_sim::{Machine, Table, parts, spreading, twice};

/// Reads a file of the repository.
fn file(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).expect("it is there")
}

/// Asserts that model-results.md has all these rows.
fn assert_documented(rows: impl Iterator<Item = String>) {
    let text = file("docs/internals/model-results.md");
    let missing: Vec<String> = rows.filter(|row| !text.contains(row)).collect();
    assert!(missing.is_empty(), "model-results.md lacks these rows:\n{}", missing.join("\n"));
}

#[test]
fn what_the_parts_of_the_protocol_bring_is_as_documented() {
    let table = parts::table(&parts::run(&Machine::paper(), 64, 1).expect("the jobs end"));
    assert_documented(table.markdown().into_iter());
}

#[test]
fn waits_of_puts_that_overwrite_are_as_documented() {
    let table = parts::overwriting_table(&Machine::paper()).expect("the jobs end");
    assert_documented(table.markdown().into_iter());
}

#[test]
fn what_settings_bring_the_first_and_the_second_time_is_as_documented() {
    let tables = twice::tables(&Machine::paper(), twice::Choice { scale: 64, seed: 1 }).expect("the jobs end");
    assert_documented(tables.iter().flat_map(Table::markdown));
}

#[test]
fn page_times_grow_with_the_logarithm_of_the_ranks() {
    let [few, many] = [64, 4096].map(|ranks| spreading::page_times(&Machine::today(), ranks).expect("the jobs end"));
    // 4096 is 64 squared. The last way is the default.
    assert!(many[4] <= 2.0 * few[4] && many[3] > 4.0 * many[4], "{few:?} and {many:?} page times");
}

#[test]
fn page_times_of_a_page_for_all_are_as_documented() {
    assert_documented(spreading::table(&Machine::today()).expect("the jobs end").markdown().into_iter());
}

#[test]
fn each_key_of_a_machine_file_is_documented() {
    let (machine, text) = (file("tools/vgasnet-sim/machines/today.toml"), file("docs/explanation/performance.md"));
    let (mut table, mut keys) = (String::new(), 0);
    for line in machine.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            table = format!("{name}.");
        } else if let Some((key, _)) = line.split_once(" = ") {
            let name = format!("`{table}{key}`");
            assert!(text.lines().any(|row| row.starts_with("| ") && row.contains(&name)), "{name}");
            keys += 1;
        }
    }
    assert_eq!(keys, 12);
}

#[test]
fn start_up_is_as_documented() {
    let rows = [Network::Mpi, Network::Gasnet].into_iter().flat_map(|network| {
        [32, 1024, 4096].map(|hosts| {
            row(network.name(), &StartingJob { hosts, ranks_a_host: 64, network }.start(&Machine::today()))
        })
    });
    assert_documented(rows);
}

#[test]
fn the_program_prints_tables_and_json() {
    let machine = Path::new(env!("CARGO_MANIFEST_DIR")).join("machines/today.toml");
    let run = |arguments: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_vgasnet-sim")).arg("startup").arg(&machine).args(arguments).output();
        output.expect("it starts")
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text");
    let table = text(run(&[]).stdout);
    assert_eq!(table.lines().count(), 4, "{table}");
    let steps = text(run(&["--hosts", "2", "--steps"]).stdout);
    assert_eq!(steps.lines().count(), 2 + 1 + 1 + Network::Mpi.steps().len(), "{steps}");
    let json = run(&["--network", "gasnet", "--hosts", "2,4", "--ranks-a-host", "8", "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).expect("it is JSON");
    assert_eq!((value[1]["ranks"].as_u64(), value[1]["network"].as_str()), (Some(32), Some("gasnet")));
    let refused = run(&["--hosts", "16385", "--ranks-a-host", "64"]);
    let line = text(refused.stderr);
    assert!(!refused.status.success() && line.starts_with("vgasnet-sim: --hosts 16385 of 64 ranks"), "{line}");
}

fn row(name: &str, one: &StartUp) -> String {
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let cells = [
        format!("{name}, {}", grouped(u64::from(one.hosts))),
        grouped(one.messages),
        megabytes(one.bytes),
        megabytes(one.link_bytes),
        format!("{:.3} s", one.seconds),
        format!("{} bytes, {}", one.kept_bytes_a_rank, megabytes(one.kept_bytes)),
        megabytes(one.passing_bytes),
    ];
    format!("| {} |", cells.join(" | "))
}

/// The number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

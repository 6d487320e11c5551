//! The program's output, and its errors for invalid options.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn machine(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("machines/{name}.toml"))
}

/// The program with this subcommand, machine and options.
fn command(subcommand: &str, machine: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vgasnet-sim"));
    command.arg(subcommand).arg(machine).args(options);
    command
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("it is text")
}

/// The error of a failed run, on one line.
fn refusal(output: Output) -> String {
    let line = text(output.stderr);
    assert_eq!((output.status.code(), line.lines().count()), (Some(1), 1), "{line}");
    line
}

#[test]
fn a_closed_pipe_is_no_error_and_a_full_disk_is_one_line() {
    let mut run = command("run", &machine("paper"), &["-n", "2", "--data", "0.25"]);
    let (reader, writer) = UnixStream::pair().expect("there is room");
    drop(reader);
    let output = run.stdout(OwnedFd::from(writer)).output().expect("it starts");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let full = std::fs::File::options().write(true).open("/dev/full").expect("it is there");
    let line = refusal(run.stdout(full).stderr(Stdio::piped()).output().expect("it starts"));
    assert!(line.starts_with("vgasnet-sim: standard output: No space left on device"), "{line}");
}

/// A machine file with this node. It is removed at the end of the test.
struct Written(PathBuf);

impl Written {
    fn with_node(name: &str, node: &str) -> Written {
        let paper = std::fs::read_to_string(machine("paper")).expect("it is there");
        let (head, rest) = paper.split_once("[node]").expect("it has a node");
        let (_, tail) = rest.split_once("[link]").expect("it has a link");
        let path = std::env::temp_dir().join(format!("vgasnet-sim-{}-{name}.toml", std::process::id()));
        std::fs::write(&path, format!("{head}[node]\n{node}\n[link]{tail}")).expect("there is room");
        Written(path)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const RATES: &str = "copy = \"6G\"\nmessage_us = 0.5";

#[test]
fn the_smallest_pools_have_figures_of_pages_that_fit() {
    let small = Written::with_node("small", &format!("ranks = 1\npool = \"64K\"\npage = \"4K\"\n{RATES}"));
    let output = command("paper", &small.0, &["--ends", "--scale", "1"]).output().expect("it starts");
    let table = text(output.stdout);
    assert!(output.status.success() && table.lines().nth(2).is_some_and(|line| line.starts_with("8K")), "{table}");
    assert!(table.lines().nth(3).is_some_and(str::is_empty), "{table}");
    // Pages of files are as large as four such pools.
    let line = refusal(command("scale", &small.0, &["--nodes", "2", "--scale", "1"]).output().expect("it starts"));
    assert!(line.starts_with("vgasnet-sim: a pool of 65536 bytes has 0 pages of 262144 at a scale of 1"), "{line}");
}

#[test]
fn pools_of_a_node_beyond_all_addresses_are_one_line() {
    let huge = Written::with_node("huge", &format!("ranks = 4096\npool = \"16384T\"\npage = \"64M\"\n{RATES}"));
    let line = refusal(command("scale", &huge.0, &["--nodes", "2"]).output().expect("it starts"));
    let expected = ":6:8: node.pool is 18014398509481984 bytes of each of 4096 ranks; give at most";
    assert!(line.contains(expected), "{line}");
}

#[test]
fn a_table_says_how_much_data_there_was() {
    let run = |options: &[&str]| text(command("run", &machine("paper"), options).output().expect("it starts").stdout);
    let first = run(&["-n", "3", "--data", "0.5", "--passes", "1"]);
    let expected =
        "paper: 3 ranks on 3 nodes, pools of 64 pages of 4M, data of 32 pages (0.50 pools), scale 64, seed 1\n";
    assert!(first.starts_with(expected), "{first}");
    // Each of 200 ranks has a page.
    let all = run(&["-n", "200", "--data", "0.5", "--homes", "all", "--passes", "1", "--pieces", "1"]);
    assert!(all.contains("data of 200 pages (3.12 pools)"), "{all}");
}

#[test]
fn options_that_have_no_effect_or_no_end_are_refused() {
    for (options, expected) in [
        (&["--rewrite", "--put"][..], "cannot be used with"),
        (&["--false-sharing", "3", "--order", "random"], "cannot be used with"),
        (&["--pieces", "0"], "0 is not in 1.."),
        (&["--passes", "0"], "0 is not in 1..=1000"),
        (&["--passes", "3000000000"], "is not in 1..=1000"),
    ] {
        let output = command("run", &machine("paper"), options).output().expect("it starts");
        let said = text(output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(expected), "{options:?}: {said}");
    }
    let negative = command("run", &machine("paper"), &["--data", "-1"]).output().expect("it starts");
    assert_eq!(refusal(negative), "vgasnet-sim: --data is -1; give more than 0 pools and less than 1,000,000\n");
}

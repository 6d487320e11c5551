//! Machine files: what is wrong with one is one line with its place.

use std::io::Write;
use std::path::{Path, PathBuf};
use vgasnet_sim::Machine;

fn paper() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("machines/paper.toml")
}

/// What is said of the paper's machine with this text in place of that.
fn refusal(name: &str, from: &str, to: &str) -> String {
    let text = std::fs::read_to_string(paper()).expect("it is there");
    assert!(text.contains(from), "{from}");
    let path = std::env::temp_dir().join(format!("vgasnet-sim-{}-{name}.toml", std::process::id()));
    let mut file = std::fs::File::create(&path).expect("there is room");
    file.write_all(text.replacen(from, to, 1).as_bytes()).expect("there is room");
    let read = Machine::read(&path);
    std::fs::remove_file(&path).expect("it was there");
    let line = read.expect_err(to);
    assert!(!line.contains('\n'), "{line:?}");
    line.strip_prefix(&path.display().to_string()).unwrap_or_else(|| panic!("{line:?} names the file")).to_string()
}

#[test]
fn the_machines_are_read() {
    for name in ["paper", "today"] {
        let machine = Machine::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("machines/{name}.toml")));
        assert_eq!(machine.expect("it is well-formed").name, name);
    }
}

#[test]
fn what_is_wrong_is_one_line_with_its_place() {
    let cases = [
        ("latency_us = 70", "latency_us = seventy", ":16:14: "),
        ("latency_us = 70", "latency = 70", ":16:1: unknown field `latency`"),
        ("read = \"510M\"", "read = \"510MB\"", ":17:8: \"510MB\" is no rate"),
        ("pool = \"16G\"", "pool = \"sixteen\"", ":6:8: \"sixteen\""),
        ("[disk]", "[disks]", ":15:2: unknown field `disks`"),
        ("page = \"4M\"", "page = \"5M\"", ": node.page is 5242880 bytes; give a power of two"),
        ("ranks = 1", "ranks = 0", ": node.ranks is 0; give at least 1"),
        ("message_us = 0.5", "message_us = -1", ": node.message_us is -1"),
        ("pool = \"16G\"", "pool = \"4M\"", ": node.pool is 4194304 bytes; give at least four pages"),
    ];
    for (at, (from, to, expected)) in cases.into_iter().enumerate() {
        let line = refusal(&at.to_string(), from, to);
        assert!(line.starts_with(expected), "{line:?} for {to:?}");
    }
    let missing = Machine::read(Path::new("no/such/machine.toml")).expect_err("there is none");
    assert!(missing.starts_with("no/such/machine.toml: ") && !missing.contains('\n'), "{missing:?}");
}

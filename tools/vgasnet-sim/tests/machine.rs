//! Mistakes in machine files are reported on one line, with their place.

use std::io::Write;
use std::path::{Path, PathBuf};
use vgasnet_sim::Machine;

fn paper() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("machines/paper.toml")
}

/// The error for the paper's machine file with `from` replaced by `to`.
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
        (
            "pool = \"16G\"",
            "pool = 17179869184",
            ":6:8: invalid type: integer `17179869184`, expected a string such as \"16G\"",
        ),
        ("[disk]", "[disks]", ":15:2: unknown field `disks`"),
        ("page = \"4M\"", "page = \"5M\"", ":7:8: node.page is 5242880 bytes; give a power of two"),
        ("ranks = 1", "ranks = 0", ":5:9: node.ranks is 0; give at least 1"),
        ("message_us = 0.5", "message_us = -1", ":9:14: node.message_us is -1"),
        ("pool = \"16G\"", "pool = \"4M\"", ":6:8: node.pool is 4194304 bytes; give from 4 to 268435456 pages"),
        ("message_us = 0.5", "message_us = nan", ":9:14: node.message_us is NaN"),
        ("latency_us = 70", "latency_us = 1e9", ":16:14: disk.latency_us is 1000000000"),
        ("ranks = 1", "ranks = 4294967295", ":5:9: node.ranks is 4294967295; give at least 1 and at most 4096"),
        ("pool = \"16G\"", "pool = \"8192T\"", ":6:8: node.pool is 9007199254740992 bytes; give from 4"),
        ("copy = \"6G\"", "copy = \"1\"", ":8:8: node.copy is 1 bytes a second; give at least 1M"),
    ];
    for (at, (from, to, expected)) in cases.into_iter().enumerate() {
        let line = refusal(&at.to_string(), from, to);
        assert!(line.starts_with(expected), "{line:?} for {to:?}");
    }
    let missing = Machine::read(Path::new("no/such/machine.toml")).expect_err("there is none");
    assert!(missing.starts_with("no/such/machine.toml: ") && !missing.contains('\n'), "{missing:?}");
}

/// The error of the program for the paper's machine and invalid options.
fn refused(options: &[&str]) -> String {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_vgasnet-sim"));
    let output = command.arg(options[0]).arg(paper()).args(&options[1..]).output().expect("it starts");
    let line = String::from_utf8(output.stderr).expect("it is text");
    assert_eq!((output.status.code(), line.lines().count()), (Some(1), 1), "{options:?}: {line}");
    line
}

#[test]
fn what_is_too_much_is_one_line_and_no_panic() {
    let cases: [(&[&str], &str); 5] = [
        (
            &["run", "--scale", "300"],
            "at a scale of 300 a pool has 13 pages, and needs 16; give a scale of at most 256",
        ),
        (&["run", "-n", "1048576", "--scale", "1"], "pools of 1048576 ranks take"),
        (&["run", "-n", "1048576", "--scale", "256", "--data", "999999"], "pools of 1048576 ranks take"),
        (&["run", "--data", "999999", "--scale", "1", "-n", "1"], "data of 1 ranks take"),
        (&["run", "--data", "nan"], "--data is NaN"),
    ];
    for (options, expected) in cases {
        let line = refused(options);
        assert!(line.starts_with(&format!("vgasnet-sim: {expected}")), "{line:?} to {options:?}");
    }
}

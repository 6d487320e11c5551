//! The main job on a small file, called as by the script.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A file with a partial last block, larger than the memory of one rank with the smallest pool.
const DATA_BYTES: usize = (42 << 20) + 12345;

fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&dir).expect("a directory of ours");
    dir
}

fn data(dir: &Path, len_bytes: usize) -> PathBuf {
    let path = dir.join("data");
    let mut bytes = vec![0; len_bytes];
    fastrand::Rng::with_seed(7).fill(&mut bytes);
    std::fs::write(&path, bytes).expect("a file of ours");
    path
}

fn run(arguments: &[&str], dir: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vgasnet-main-job"));
    command.args(arguments).env("VGASNET_STORAGE_DIR", dir).current_dir(dir);
    command.output().expect("the main job")
}

#[test]
fn every_byte_is_read_by_every_way_and_the_result_can_be_had_three_ways() {
    let dir = scratch("results");
    let path = data(&dir, DATA_BYTES);
    let options = ["-n", "1", "--pool", "16", "--rounds", "2", "--svg", "chart.svg", "--json", "result.json"];
    let output = run(&[&[path.to_str().expect("UTF-8")], &options[..]].concat(), &dir);
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{wrong}");
    let json = std::fs::read_to_string(dir.join("result.json")).expect("a result");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let rounds = json["rounds"].as_array().expect("a list");
    let is_limited = json["not_compared"].is_null();
    if !is_limited {
        println!("NOT RUN: mmap and read(): {}", json["not_compared"]);
    }
    assert_eq!(rounds.len(), if is_limited { 6 } else { 2 }, "{json}");
    for round in rounds {
        assert_eq!(round["read_bytes"], DATA_BYTES, "{round}");
        assert!(round["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{round}");
    }
    assert!(said.contains("every byte is the same") && said.contains("█ "), "{said}");
    let svg = std::fs::read_to_string(dir.join("chart.svg")).expect("an image");
    assert_eq!(svg.matches("<rect").count(), if is_limited { 4 } else { 2 }, "{svg}");
    let left: Vec<_> =
        std::fs::read_dir(&dir).expect("ours").map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(left.len(), 3, "something stays behind: {left:?}");
}

#[test]
fn a_file_that_fits_is_refused() {
    let dir = scratch("fits");
    let path = data(&dir, 5 << 20);
    let output = run(&[path.to_str().expect("UTF-8"), "-n", "1"], &dir);
    assert_eq!(output.status.code(), Some(1));
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(wrong.ends_with("give a larger file\n") && wrong.lines().count() == 1, "{wrong}");
}

//! Pages kept in pools: policies on traces, cyclic scans, shuffled blocks.

use super::check_targets;
use super::folder::{BENCH, Folder, list, number, text};
use serde_json::Value;
use std::process::Command;

#[test]
fn policies_are_compared_on_traces() {
    let output = Command::new(BENCH).args(["replacement", "--pages", "1024", "--json", "-"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = list(&results, "rows");
    assert_eq!(rows.len(), 7 * 4);
    for row in rows {
        for ratio in list(row, "hit_ratios") {
            let ratio = ratio.as_f64().unwrap();
            assert!((0.0..=number(row, "optimum")).contains(&ratio), "{row}");
        }
    }
    check_targets(&results, &["zipf_to_lru", "loop_to_frames", "behind_best"], true);
}

#[test]
fn a_cyclic_scan_by_gets_keeps_what_it_should() {
    let folder = Folder::new("loop");
    let results = folder.results(&["loop", "--pool", "8M", "--page", "64K", "--repeat", "1"]);
    let run = &results["runs"][0];
    check_targets(run, &["gets_kept_min", "loads_kept_min"], true);
    let kept = run["gets"]["kept_each"][0].as_f64().unwrap();
    assert!((0.4..=0.5).contains(&kept), "{kept}");
}

#[test]
fn a_cyclic_scan_beside_idle_ranks_reads_little_from_the_disk() {
    let folder = Folder::new("loop-idle");
    let results = folder.results(&["loop", "--pool", "8M", "--page", "64K", "--repeat", "2", "--idle", "2"]);
    let run = &results["runs"][0];
    for way in ["gets", "loads"] {
        let kept = run[way]["kept_each"][1].as_f64().unwrap();
        assert!((0.55..=1.0).contains(&kept), "{kept} of {way}");
    }
}

#[test]
fn shuffled_blocks_are_measured_with_each_pool() {
    let folder = Folder::new("blocks");
    let results = folder.results(&["blocks", "--pools", "4M,8M", "--size", "16M", "--repeat", "1"]);
    let runs = list(&results, "runs");
    assert_eq!(runs.len(), 2);
    assert!(runs.iter().all(|run| number(run, "seconds") > 0.0));
    assert!(runs[0]["smaller_pool_seconds"].is_null() && number(&runs[1], "smaller_pool_seconds") > 0.0);
}

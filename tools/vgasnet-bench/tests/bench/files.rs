//! The benchmark of shared files.

use crate::cached::has_library;
use crate::check_targets;
use crate::folder::{Folder, list, number, say_not_run, text};
use serde_json::Value;
use std::process::Command;

const SMALL: [&str; 15] = [
    "files", "--repeat", "1", "--pool", "4M", "--page", "64K", "--size", "2M", "--class", "s", "--dumps", "3",
    "--edge", "4",
];

/// Pattern, ranks, and bytes read and written by all ranks.
const CASES: [(&str, u64, u64); 5] = [
    ("sliding-window", 2, 4 * (2 << 20)),
    ("sliding-window", 4, 8 * (2 << 20)),
    ("btio-full", 4, 2 * 3 * 12 * 12 * 12 * 40),
    ("btio-simple", 4, 2 * 3 * 12 * 12 * 12 * 40),
    ("flash", 4, (80 + 81 + 82 + 80) * (24 * 64 * 8 + 4 * 64 * 4 + 4 * 125 * 4)),
];

/// Checks the rows of a case: these ways, each with two ends.
fn check_case(case: &Value, (pattern, ranks, moved_bytes): (&str, u64, u64), ways: &[&str]) {
    assert_eq!(
        (&case["pattern"], &case["ranks"], &case["moved_bytes"]),
        (&pattern.into(), &ranks.into(), &moved_bytes.into())
    );
    let rows = list(case, "rows");
    let found: Vec<(&str, bool)> =
        rows.iter().map(|row| (row["way"].as_str().unwrap(), row["ends_with_sync"].as_bool().unwrap())).collect();
    let expected: Vec<(&str, bool)> =
        [true, false].iter().flat_map(|end| ways.iter().map(|way| (*way, *end))).collect();
    assert_eq!(found, expected);
    for row in rows {
        let [written, read] = ["written_seconds_each", "read_seconds_each"].map(|each| row[each][0].as_f64().unwrap());
        assert!(written > 0.0 && (read > 0.0) == pattern.starts_with("btio"), "{row}");
        assert!((number(row, "seconds") - written - read).abs() < 1e-9, "{row}");
    }
    assert_eq!(case["checksum"].as_str().unwrap().len(), 16);
}

#[test]
fn patterns_are_run_by_vgasnet_and_under_locks() {
    if !has_library() {
        return;
    }
    let folder = Folder::new("files");
    let (results, image) = folder.drawn(&[&SMALL[..], &["--mpicc", "none/mpicc"]].concat());
    let cases = list(&results, "cases");
    assert_eq!(cases.len(), CASES.len());
    for (case, expected) in cases.iter().zip(CASES) {
        check_case(case, expected, &["vgasnet", "locks"]);
    }
    // Both patterns leave the same file.
    assert_eq!(cases[2]["checksum"], cases[3]["checksum"]);
    let (sequential, rows) = (&results["sequential"], &results["rows"]);
    assert_eq!((&sequential["size"], list(sequential, "direct").len()), (&(16 << 20).into(), 4));
    let without = number(rows, "pages_moved_without_shipping");
    assert!(without > number(rows, "pages_moved"), "{rows}");
    assert!((without / number(rows, "pages_moved").max(1.0) - number(rows, "fewer_moves")).abs() < 1e-9);
    assert!(results["not_run"][0].as_str().unwrap().contains("none/mpicc"), "{results}");
    let names = ["sliding_2_locks_to_vgasnet", "sliding_4_locks_to_vgasnet", "sequential_to_direct", "fewer_moves"];
    check_targets(&results, &names, false);
    assert!(image.contains("btio-full, 4 ranks") && image.contains("pread, pwrite, locks, close"));
}

#[test]
fn patterns_are_run_by_each_mpi() {
    if !has_library() {
        return;
    }
    for mpicc in ["mpicc.mpich", "mpicc.openmpi"] {
        if Command::new(mpicc).arg("-show").output().is_err() {
            say_not_run(&format!("files: there is no {mpicc}"));
            continue;
        }
        let folder = Folder::new(&format!("files-{mpicc}"));
        let patterns = ["--patterns", "sliding-window,btio-full,btio-simple,flash", "-n", "4", "--mpicc", mpicc];
        let results = folder.results(&[&SMALL[..], &patterns, &["--mpi-io-library", "none.so"]].concat());
        let cases = list(&results, "cases");
        for (case, expected) in cases.iter().zip(&CASES[1..]) {
            let is_sliding = expected.0 == "sliding-window";
            let all = ["vgasnet", "mpi_io", "mpi_io_atomic", "locks"];
            let ways: Vec<&str> = all.into_iter().filter(|way| is_sliding || *way != "mpi_io_atomic").collect();
            check_case(case, *expected, &ways);
        }
        assert_eq!(cases.len(), CASES.len() - 1);
        assert!(results["not_run"][0].as_str().unwrap().contains("--mpi-io-library none.so: "), "{results}");
        let names = [
            "sliding_4_locks_to_vgasnet",
            "sliding_4_atomic_to_vgasnet",
            "btio_full_mpi_to_vgasnet",
            "btio_simple_mpi_to_vgasnet",
        ];
        check_targets(&results, &names, false);
    }
}

#[test]
fn what_is_not_measured_is_said_and_not_reached() {
    if !has_library() {
        return;
    }
    let folder = Folder::new("files-no-mpi");
    let output = folder.run(&[&SMALL[..], &["--patterns", "flash", "--only-sync", "--no-mpi", "--check"]].concat());
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("NOT RUN: MPI-IO: --no-mpi"), "{said}");
    assert!(said.contains("pread, pwrite, locks, sync") && !said.contains(", close "), "{said}");
}

#[test]
fn ranks_that_are_no_square_are_refused_for_cubes() {
    let folder = Folder::new("files-square");
    let output = folder.run(&["files", "--patterns", "btio-simple", "-n", "8"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("-n 8: the patterns of BT-IO need a square"));
}

//! Benchmarks of small accesses at random places.

use crate::check_targets;
use crate::folder::{Folder, check_ratio, list, number, text, without_cgroups};
use serde_json::Value;

const SIZES_BYTES: [u64; 5] = [8, 64, 512, 4096, 65536];

/// The places of an access with so many ranks, in the order of the measurements.
fn places(access: &str, ranks: u64) -> Vec<&'static str> {
    let has_neighbour = |place: &&str| ranks > 1 || place.starts_with("own");
    let all = ["own_disk", "neighbour_disk", "own_pool", "neighbour_pool"];
    let is_memory = |place: &&str| !["load", "store"].contains(&access) || *place != "neighbour_disk";
    all.into_iter().filter(has_neighbour).filter(is_memory).collect()
}

fn of<'a>(rows: &'a [Value], access: &str, place: &str, size_bytes: u64, in_flight: u64) -> &'a Value {
    let is_it = |row: &&Value| {
        row["access"] == access
            && row["place"] == place
            && row["size_bytes"] == size_bytes
            && row["in_flight"] == in_flight
    };
    rows.iter().find(is_it).unwrap_or_else(|| panic!("{access} {place} {size_bytes} {in_flight} is missing"))
}

/// Checks that each place, size and depth was measured, and its ratio. Returns the number of rows.
fn check_rows(run: &Value, access: &str, repeat: usize) -> usize {
    let rows = list(run, "rows");
    let depths: &[u64] = if ["load", "store"].contains(&access) { &[1] } else { &[1, 64] };
    let sizes = if access == "atomic" { &SIZES_BYTES[..1] } else { &SIZES_BYTES };
    let places = places(access, run["ranks"].as_u64().unwrap());
    for place in &places {
        for &size_bytes in sizes {
            for in_flight in depths {
                let row = of(rows, access, place, size_bytes, *in_flight);
                assert!(number(row, "us") > 0.0 && row["us_each"].as_array().unwrap().len() == repeat, "{row}");
                if row["reference"].is_null() {
                    assert!(depths.len() == 1 && *place == "own_disk", "only mmap may be missing: {row}");
                    assert_ne!(run["mapped_not_run"].as_str().unwrap(), "");
                    continue;
                }
                check_ratio(row, "to_reference", "us", "reference_us");
            }
        }
    }
    places.len() * sizes.len() * depths.len()
}

#[test]
fn small_accesses_are_measured_at_every_place() {
    let folder = Folder::new("small");
    let (results, image) = folder.drawn(&["small", "--pool", "1M", "--page", "16K", "--repeat", "2"]);
    let run = &results["runs"][0];
    assert_eq!((&run["ranks"], &run["page_bytes"], &run["pool_bytes"]), (&2.into(), &16384.into(), &(1 << 20).into()));
    let rows: usize = ["get", "put", "atomic", "load", "store"].map(|access| check_rows(run, access, 2)).iter().sum();
    assert_eq!(list(run, "rows").len(), rows);
    let targets = [
        "get_own_disk_to_raw_read",
        "get_neighbour_disk_to_raw_read",
        "put_own_disk_to_raw_read",
        "put_neighbour_disk_to_raw_read",
        "gets_own_disk_to_raw_rate",
        "gets_neighbour_disk_to_raw_rate",
        "puts_own_disk_to_raw_rate",
        "puts_neighbour_disk_to_raw_rate",
        "adds_per_second",
    ];
    check_targets(run, &targets, true);
    let own = |size_bytes| number(of(list(run, "rows"), "get", "own_disk", size_bytes, 1), "us");
    let worst = own(8).max(own(4096)) / number(run, "raw_read_us");
    assert!((worst / number(&run["targets"][0], "measured") - 1.0).abs() < 1e-9);
    assert!(image.contains("own disk, 64 at once") && image.contains("small, rows, store, 2 ranks: us"));
}

#[test]
fn the_neighbour_may_be_as_on_another_host() {
    let folder = Folder::new("small-far");
    let arguments = ["small", "--pool", "1M", "--page", "16K", "--repeat", "1", "--only", "get", "--other-host"];
    let results = folder.results(&arguments);
    let run = &results["runs"][0];
    assert_eq!(run["peer_memory"], false);
    assert_eq!(list(run, "rows").len(), check_rows(run, "get", 1));
}

#[test]
fn loads_at_large_pages_are_compared_with_those_at_small_ones() {
    let folder = Folder::new("small-loads");
    let results = folder.results(&["small", "-n", "1", "--pool", "32M", "--repeat", "1", "--only", "load"]);
    let [small, large] = [&results["runs"][0], &results["runs"][1]];
    assert_eq!((&small["page_bytes"], &large["page_bytes"]), (&(64 << 10).into(), &(4 << 20).into()));
    for run in [small, large] {
        assert_eq!(list(run, "rows").len(), check_rows(run, "load", 1));
    }
    check_targets(small, &[], true);
    check_targets(large, &["load_to_small_page"], true);
    let load = |run: &Value, size_bytes| number(of(list(run, "rows"), "load", "own_disk", size_bytes, 1), "us");
    let worst =
        [8, 4096].map(|size_bytes| load(large, size_bytes) / load(small, size_bytes)).into_iter().fold(0.0, f64::max);
    assert!((worst / number(&large["targets"][0], "measured") - 1.0).abs() < 1e-9);
}

#[test]
fn inserts_into_a_table_are_compared_with_a_mapped_file() {
    let folder = Folder::new("table");
    let results = folder.results(&["table", "-n", "1,2", "--pool", "1M", "--page", "16K", "--repeat", "2"]);
    let runs = list(&results, "runs");
    assert_eq!(runs.iter().map(|run| run["ranks"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2]);
    for run in runs {
        for way in ["puts", "stores"] {
            assert!(number(run, &format!("{way}_per_second")) > 0.0);
            assert_eq!(run[format!("{way}_per_second_each")].as_array().unwrap().len(), 2);
        }
        check_table(run, &[run]);
    }
}

#[test]
fn threads_that_access_random_records_are_compared_with_a_mapped_file_and_plain_reads() {
    let folder = Folder::new("random-threads");
    let sizes = ["--pool", "1M", "--page", "16K", "--threads", "1,3", "--repeat", "1"];
    let results = folder.results(&[&["random-threads", "-n", "2"], &sizes[..]].concat());
    for run in list(&results, "runs") {
        let rows = list(run, "by_threads");
        assert_eq!(rows.len(), 2, "{run}");
        let is_mapped = run["mapped_not_run"].is_null();
        for row in rows {
            let of_process = ["mapped_loads", "mapped_stores", "plain_reads"].into_iter().filter(|_| is_mapped);
            for way in ["gets", "puts", "loads", "stores"].into_iter().chain(of_process) {
                assert!(number(row, &format!("{way}_per_second")) > 0.0, "{way}: {run}");
                assert!(number(row, &format!("{way}_us")) > 0.0, "{way}: {run}");
            }
        }
        let with_mapped: &[&str] = if is_mapped { &["gets_to_mmap", "loads_to_mmap"] } else { &[] };
        check_targets(run, &[with_mapped, &["get_us", "load_us"]].concat(), is_mapped);
        if is_mapped {
            let to_mapped = number(&rows[1], "loads_per_second") / number(&rows[1], "mapped_loads_per_second");
            assert!((to_mapped / number(&run["targets"][1], "measured") - 1.0).abs() < 1e-9, "{run}");
        }
    }
}

#[test]
fn without_cgroups_nothing_is_mapped_and_a_line_says_why() {
    let folder = Folder::new("random-no-cgroup");
    let small = ["--pool", "1M", "--page", "16K", "--repeat", "1", "-n", "1", "--json", "-"];
    without_cgroups(|| {
        // Only inserts into a table are judged against mmap.
        for (args, status) in [(&["small", "--only", "store"][..], 0), (&["table", "--check"], 1)] {
            let output = folder.run(&[args, &small].concat());
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(status), "{said}");
            let results: Value = serde_json::from_slice(&output.stdout).unwrap();
            let reason = results["runs"][0]["mapped_not_run"].as_str().unwrap();
            assert!(reason.contains("/sys/fs/cgroup"), "{reason}");
            assert!(said.contains(&format!("NOT RUN: mmap in as much memory: {reason}\n")), "{said}");
        }
    });
}

/// Checks the targets of the last of several page sizes.
fn check_table(last: &Value, pages: &[&Value]) {
    if last["mapped_per_second"].is_null() {
        assert_ne!(last["mapped_not_run"].as_str().unwrap(), "");
        return check_targets(last, &[], false);
    }
    check_targets(last, &["puts_to_mmap", "stores_time_to_mmap"], true);
    let best = |way: &str| {
        let to_mapped = |run: &&Value| number(run, &format!("{way}_per_second")) / number(run, "mapped_per_second");
        pages.iter().map(to_mapped).fold(0.0, f64::max)
    };
    let measured = |at: usize| number(&last["targets"][at], "measured");
    assert!((best("puts") / measured(0) - 1.0).abs() < 1e-9, "{last}");
    assert!((best("stores") * measured(1) - 1.0).abs() < 1e-9, "{last}");
}

#[test]
fn of_a_table_the_best_size_of_pages_is_judged() {
    let folder = Folder::new("table-pages");
    let results = folder.results(&["table", "-n", "1", "--pool", "32M", "--repeat", "1"]);
    let runs: Vec<&Value> = list(&results, "runs").iter().collect();
    let pages: Vec<_> = runs.iter().map(|run| run["page_bytes"].as_u64().unwrap() >> 10).collect();
    assert_eq!(pages, [4, 16, 64, 4096]);
    let is_mapped = !runs[0]["mapped_per_second"].is_null();
    runs[..3].iter().for_each(|run| check_targets(run, &[], is_mapped));
    check_table(runs[3], &runs);
}

#[test]
fn operations_of_every_kind_are_measured_beside_copies() {
    let folder = Folder::new("operations");
    let of = |ranks: &str, threads: &str| {
        let sizes = ["--size", "1M", "--pool", "4M", "--page", "16K"];
        let results =
            folder.results(&[&["operations", "-n", ranks, "--threads", threads, "--repeat", "1"], &sizes[..]].concat());
        results["runs"][0]["operations"].as_array().unwrap().clone()
    };
    let rows = of("2", "2");
    let kinds = ["get", "put", "get_val", "put_val", "get_nb", "put_nb", "get_nbi", "put_nbi"];
    for kind in kinds {
        let sizes = if kind.ends_with("val") { vec![1, 4, 8] } else { vec![1, 4, 8, 64, 200] };
        for size_bytes in sizes {
            let found: Vec<_> =
                rows.iter().filter(|row| row["kind"] == kind && row["size_bytes"] == size_bytes).collect();
            let whose: Vec<_> = found.iter().map(|row| (row["neighbour"] == true, number(row, "threads"))).collect();
            assert_eq!(whose, [(false, 1.0), (false, 2.0), (true, 1.0), (true, 2.0)], "{kind} {size_bytes}");
            for row in found {
                check_ratio(row, "to_copy", "ns", "copy_ns");
            }
        }
    }
    assert_eq!((rows.len(), of("1", "1").len()), (144, 36));
}

//! `vgasnet-bench` as seen by its users: small runs of each benchmark, their results in JSON, and refused options.

mod cached;
mod figures;
mod files;
mod folder;
mod gasnet_ex;
mod random;
mod refusals;
mod sizes;
mod victims;

use folder::{Folder, check_ratio, list, number, say_not_run, text, without_cgroups};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

/// The fields of every read benchmark, and their relations.
fn check_read(run: &Value, ranks: u64, size_bytes: u64) {
    assert_eq!(run["ranks"], ranks);
    assert_eq!(run["size_bytes"], size_bytes);
    assert_eq!(run["time_seconds_each"].as_array().unwrap().len(), 2);
    check_ratio(run, "throughput_bytes_per_second", "bytes_read_all_ranks", "time_seconds");
    check_ratio(run, "throughput_to_plain", "throughput_bytes_per_second", "plain_read_bytes_per_second");
    assert!(number(run, "throughput_to_memcpy") > 0.0 && number(run, "plain_bytes") >= size_bytes as f64);
    assert!(run["plain_is_direct"].is_boolean());
    assert!(run["disk_read_bytes_all_ranks"].is_u64());
}

const SMALL: [&str; 6] = ["--pool", "16M", "--repeat", "2", "--seed", "7"];

#[test]
fn both_ways_of_reading_report_what_they_measured() {
    let folder = Folder::new("reads");
    for mode in ["sequential", "random"] {
        let args = [mode, "-n", "1,2", "--size", "40M", "--cooperative", "both"];
        let (results, image) = folder.drawn(&[&args, &SMALL[..]].concat());
        assert_eq!(results["benchmark"], mode);
        let runs = list(&results, "runs");
        for (run, (ranks, cooperative)) in runs.iter().zip([(1, true), (1, false), (2, true), (2, false)]) {
            check_read(run, ranks, 40 << 20);
            assert_eq!(run["cooperative"], cooperative);
            assert_eq!(run["bytes_read_all_ranks"], ranks * (40 << 20));
            assert_eq!((&run["page_bytes"], &run["pool_bytes"]), (&(4 << 20).into(), &(16 << 20).into()));
            if mode == "sequential" && ranks == 1 && run["plain_is_direct"] == true {
                assert_eq!(run["disk_read_bytes_all_ranks"], 40 << 20, "the pool was empty, and no page is read twice");
            }
        }
        assert_eq!(runs.len(), 4);
        let expected = number(&runs[3], "time_seconds") / number(&runs[2], "time_seconds");
        assert!((number(&list(&results, "cooperative")[1], "speedup") / expected - 1.0).abs() < 1e-9);
        assert!(image.starts_with("<svg") && image.contains("2 ranks, not cooperative"), "{image}");
    }
}

#[test]
fn ranks_that_do_not_share_memory_read_the_same() {
    let folder = Folder::new("apart");
    let args = ["sequential", "-n", "2", "--size", "24M", "--peer-memory", "off", "--page", "1M"];
    let results = folder.results(&[&args, &SMALL[..]].concat());
    check_read(&results["runs"][0], 2, 24 << 20);
    assert_eq!(results["runs"][0]["peer_memory"], false);
    assert_eq!(results["runs"][0]["page_bytes"], 1 << 20);
}

#[test]
fn sharing_a_page_reports_rounds_and_barriers() {
    let folder = Folder::new("sharing");
    let args = ["false-sharing", "-n", "3", "--rounds", "5", "--cooperative", "both"];
    let results = folder.results(&[&args, &SMALL[..]].concat());
    for run in list(&results, "runs") {
        assert_eq!((&run["rounds"], &run["puts_per_rank_and_round"]), (&5.into(), &10.into()));
        let round = number(run, "time_seconds") / 5.0;
        assert!((round / number(run, "round_seconds") - 1.0).abs() < 1e-9);
        assert!(number(run, "barrier_seconds") > 0.0 && number(run, "puts_per_second") > 0.0);
    }
    assert_eq!(list(&results, "cooperative").len(), 1);
}

#[test]
fn others_may_compute_beside_the_ranks() {
    let folder = Folder::new("busy");
    let args = ["false-sharing", "-n", "2", "--rounds", "3", "--busy", "3"];
    assert_eq!(folder.results(&[&args, &SMALL[..]].concat())["runs"][0]["busy"], 3);
}

#[test]
fn sharing_a_page_has_a_target_where_four_ranks_share_no_memory() {
    let folder = Folder::new("sharing-target");
    let args = ["false-sharing", "-n", "2,4", "--rounds", "5", "--peer-memory", "both"];
    let results = folder.results(&[&args, &SMALL[..]].concat());
    let runs = list(&results, "runs");
    for run in runs {
        let is_judged = run["ranks"] == 4 && run["peer_memory"] == false;
        check_targets(run, if is_judged { &["round_to_barrier"] } else { &[] }, true);
    }
    let target = &runs[3]["targets"][0];
    assert_eq!((runs.len(), &target["measured"]), (4, &runs[3]["round_to_barrier"]));
    assert_eq!(results["reached_all"], target["reached"]);
}

#[test]
fn every_target_of_hits_is_judged() {
    let folder = Folder::new("hit");
    let results = folder.results(&["hit", "--pool", "16M", "--repeat", "1"]);
    let expected = [
        "random_get_8_bytes_over_load_ns",
        "random_get_8_bytes_neighbour_over_load_ns",
        "get_8_bytes_hit_ns",
        "get_4_mib_hit_one_source_to_memcpy",
        "get_4_mib_hit_sources_in_turn_to_memcpy",
        "get_4_mib_neighbour_to_memcpy",
        "cold_read_to_plain",
        "busy_home_32_mib_seconds",
        "memory_to_allowed",
    ];
    check_targets(&results, &expected, true);
    let targets = list(&results, "targets");
    assert_eq!(results["segment_bytes"], 16 * (16 << 20));
    let memory = targets.iter().find(|target| target["name"] == "memory_to_allowed").unwrap();
    assert_eq!(memory["reached"], true, "a rank takes its pool and 64 MiB at most: {memory}");
    assert!(number(&results, "pss_bytes_all_ranks") > f64::from(16 << 20), "a pool that is in use takes memory");
}

/// Checks the run's targets, their verdicts, and the overall verdict.
fn check_targets(run: &Value, names: &[&str], is_complete: bool) {
    let targets = list(run, "targets");
    let found: Vec<&str> = targets.iter().map(|target| target["name"].as_str().unwrap()).collect();
    assert_eq!(found, names);
    for target in targets {
        let (measured, wanted) = (number(target, "measured"), number(target, "target"));
        let reached = if target["bound"] == "at_most" { measured <= wanted } else { measured >= wanted };
        assert_eq!(target["reached"], reached, "{target}");
    }
    let reached_all = is_complete && targets.iter().all(|target| target["reached"] == true);
    assert_eq!(run["reached_all"], reached_all);
}

#[test]
fn a_triad_in_the_pool_is_compared_with_malloc() {
    let folder = Folder::new("triad-in-pool");
    let (results, image) = folder.drawn(&["triad", "--pool", "64M", "--size", "16M", "--repeat", "1"]);
    let run = &results["runs"][0];
    assert_eq!((&run["arrays"], &run["array_bytes"]), (&"in_pool".into(), &(16 << 20).into()));
    check_targets(run, &["in_pool_to_malloc"], true);
    assert_eq!(results["reached_all"], run["reached_all"]);
    let times = list(run, "segment_seconds_each");
    assert!(times.len() == list(run, "malloc_seconds_each").len() && times.len() > 8);
    let names = ["segment_bytes_per_second", "malloc_bytes_per_second", "malloc_large_pages_bytes_per_second"];
    check_ratio(run, "segment_to_malloc", names[0], names[1]);
    check_ratio(run, "segment_to_malloc_large_pages", names[0], names[2]);
    let best = number(run, "segment_to_malloc").max(number(run, "segment_to_malloc_best"));
    assert!(best > 0.7, "loads and stores of mapped pages are those of memory: {run}");
    assert!(image.contains("malloc, large pages"));
}

const OUT_OF_CORE: [&str; 9] = ["triad", "--pool", "16M", "--page", "1M", "--size", "32M", "--repeat", "2"];

/// Checks the figures of a triad out of core that every machine has.
fn check_out_of_core(run: &Value) {
    assert_eq!((&run["arrays"], &run["array_bytes"]), (&"out_of_core".into(), &(32 << 20).into()));
    let bytes = 3.0 * f64::from(32 << 20);
    assert!((bytes / number(run, "time_seconds") / number(run, "segment_bytes_per_second") - 1.0).abs() < 1e-9);
    let each = |name: &str| list(&run["segment"], name).iter().map(|value| value.as_f64().unwrap()).sum();
    let (loops, rest): (f64, f64) = (each("loop_seconds_each"), each("write_back_seconds_each"));
    assert!(loops > 0.0 && rest > 0.0 && loops + rest >= number(run, "time_seconds"));
    let plain = list(run, "plain");
    for plain in plain {
        assert_eq!(plain["segment_bytes_per_second"], run["segment_bytes_per_second"]);
        check_ratio(plain, "segment_to_plain", "segment_bytes_per_second", "bytes_per_second");
    }
    let kinds = |field: &str| plain.iter().filter(|one| one[field] == plain[0][field]).count();
    assert_eq!(["buffers", "in_flight", "reads_what_it_writes"].map(kinds), [4, 4, 4]);
    if run["plain_is_direct"] == true {
        let moved = number(run, "disk_read_bytes");
        assert!(moved >= bytes * 0.8, "the pool holds no more than a sixth of the arrays: {run}");
        assert!(number(run, "disk_written_bytes") >= f64::from(31 << 20), "the result is on the disk: {run}");
    }
}

#[test]
fn a_triad_out_of_core_is_compared_with_the_disk_and_with_a_mapped_file() {
    let folder = Folder::new("triad-out-of-core");
    let (results, image) = folder.drawn(&OUT_OF_CORE);
    let run = &results["runs"][0];
    check_out_of_core(run);
    let mut targets = vec![
        "out_of_core_to_plain",
        "out_of_core_to_plain_reading_a",
        "out_of_core_to_plain_in_flight",
        "out_of_core_to_plain_in_flight_reading_a",
    ];
    let mapped = &run["mapped"];
    if mapped.is_null() {
        assert_ne!(run["mapped_not_run"].as_str().unwrap(), "");
    } else {
        assert!(run["mapped_not_run"].is_null());
        check_ratio(mapped, "segment_to_mapped", "segment_bytes_per_second", "bytes_per_second");
        assert_eq!(mapped["limit_bytes"], (16 + 64) << 20);
        let peak = mapped["peak_bytes"].as_u64();
        assert!(peak.is_none_or(|peak| (16 << 20..=(16 + 64) << 20).contains(&peak)), "{mapped}");
        targets.push("out_of_core_to_mmap");
    }
    check_targets(run, &targets, !mapped.is_null());
    assert!(image.contains("plain, 1 in flight"));
}

/// Cgroups of the bench with this process id, anywhere.
fn cgroups_of(pid: u32) -> Vec<PathBuf> {
    let (name, mut found, mut dirs) =
        (format!("vgasnet-bench-{pid}"), Vec::new(), vec![PathBuf::from("/sys/fs/cgroup")]);
    while let Some(dir) = dirs.pop() {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path());
        dirs.extend(below);
        found.extend(dirs.last().filter(|dir| dir.ends_with(&name)).cloned());
    }
    found
}

#[test]
fn a_cgroup_goes_with_the_run_that_made_it_however_that_ends() {
    let folder = Folder::new("interrupted");
    // Long enough to be interrupted in every phase.
    let mut command = folder.command(&["triad", "--pool", "16M", "--size", "64M", "--repeat", "1000"]);
    command.stderr(Stdio::null()).stdout(Stdio::null());
    let has_words = |path: PathBuf| fs::read(path).is_ok_and(|words| !words.is_empty());
    // The rank has started (before this no process forwards signals), or the process that maps a file is in the cgroup.
    let has_rank = |pid: u32| has_words(format!("/proc/{pid}/task/{pid}/children").into());
    let is_limited = |pid: u32| cgroups_of(pid).iter().any(|cgroup| has_words(cgroup.join("cgroup.procs")));
    for has_come_to in [&has_rank as &dyn Fn(u32) -> bool, &is_limited] {
        let mut bench = command.spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while !has_come_to(bench.id()) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        if cgroups_of(bench.id()).is_empty() {
            say_not_run("this user cannot make cgroups");
        }
        let pid = nix::unistd::Pid::from_raw(bench.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        assert!(!bench.wait().unwrap().success());
        assert_eq!(cgroups_of(bench.id()), [] as [PathBuf; 0]);
    }
    assert_eq!(fs::read_dir(folder.0.join("storage")).unwrap().count(), 0, "files are left");
}

#[test]
fn what_cannot_be_limited_is_not_run_and_said_so() {
    let folder = Folder::new("no-cgroup");
    without_cgroups(|| {
        let output = folder.run(&[&OUT_OF_CORE[..], &["--check", "--json", "-"]].concat());
        assert_eq!(output.status.code(), Some(1), "a figure is missing: {}", text(&output.stderr));
        let results: Value = serde_json::from_slice(&output.stdout).unwrap();
        let run = &results["runs"][0];
        check_out_of_core(run);
        assert!(run["mapped"].is_null() && run["reached_all"] == false);
        let reason = run["mapped_not_run"].as_str().unwrap();
        assert!(reason.contains("/sys/fs/cgroup") && text(&output.stderr).contains(&format!(": {reason}\n")));
        assert!(text(&output.stderr).contains("NOT RUN: mmap"), "{}", text(&output.stderr));
    });
}

#[test]
fn every_kind_of_fault_is_measured() {
    let folder = Folder::new("fault");
    let (results, image) = folder.drawn(&["fault", "--pool", "64M", "--faults", "24"]);
    let runs = list(&results, "runs");
    assert_eq!(runs.iter().map(|run| run["page_bytes"].as_u64().unwrap()).collect::<Vec<_>>(), [4 << 20, 64 << 10]);
    let kinds = [
        "own_pool_load_first",
        "own_pool_load_again",
        "own_pool_store_got",
        "own_pool_store_loaded",
        "own_pool_store_put",
        "neighbour_load",
        "neighbour_store",
        "disk_load",
        "disk_store",
    ];
    for run in runs {
        let faults = list(run, "faults");
        for (fault, kind) in faults.iter().zip(kinds) {
            assert_eq!(fault["kind"], kind);
            let (samples, elsewhere) = (number(fault, "samples"), number(fault, "elsewhere"));
            assert!(samples + elsewhere == 24.0 && samples >= 12.0, "{fault}");
            let order = ["min_us", "median_us", "p99_us", "max_us"].map(|name| number(fault, name));
            assert!(order[0] > 0.0 && order.is_sorted(), "{fault}");
            let is_own = ["own_pool_load_again", "own_pool_store_put"].contains(&kind);
            assert!(!is_own || number(fault, "median_us") < 100.0, "mapping a page that is there: {fault}");
        }
        assert_eq!(faults.len(), kinds.len());
        assert!(number(run, "copy_page_us") > 0.0 && number(run, "plain_read_page_us") > 0.0);
        assert!(number(run, "mapped_load_ns") < 50_000.0, "no fault where a page is mapped: {run}");
        check_targets(run, &["own_pool_load_again", "own_pool_store_put", "neighbour_load", "neighbour_store"], true);
    }
    assert!(image.contains("own pool load again"));
}

#[test]
fn streams_are_compared_with_plain_io() {
    let folder = Folder::new("stream");
    let results = folder.results(&["stream", "--size", "40M", "--page", "1M", "--pool", "16M", "--repeat", "2"]);
    let run = &results["runs"][0];
    assert_eq!((&run["data_bytes"], &run["page_bytes"]), (&(40 << 20).into(), &(1 << 20).into()));
    check_targets(run, &["cold_gets_to_plain", "cold_loads_to_plain", "puts_to_plain", "stores_to_plain"], true);
    if run["plain_is_direct"] == true {
        let read: Vec<f64> = list(run, "passes").iter().map(|passes| number(passes, "disk_read_bytes")).collect();
        assert_eq!(read[0], f64::from(40 << 20), "the pool was empty, and no page is read twice");
        assert_eq!(read[2], 0.0, "pages that are overwritten whole are not read");
    }
}

#[test]
fn misses_are_measured_beside_read_ahead() {
    let folder = Folder::new("ahead");
    let results = folder.results(&["ahead", "--size", "128M", "--page", "64K", "--repeat", "2"]);
    let run = &results["runs"][0];
    assert_eq!(run["ahead_bytes"], 128 << 20);
    check_targets(run, &["miss_beside_read_ahead_to_idle"], true);
    check_ratio(run, "beside_to_idle", "beside_us", "idle_us");
}

#[test]
fn threads_that_miss_are_measured_beside_plain_reads() {
    let folder = Folder::new("threads");
    let args = ["fault", "--threads", "1,16", "--page", "64K", "--pool", "4M", "--repeat", "1"];
    let (results, image) = folder.drawn(&args);
    let run = &results["runs"][0];
    let threads = list(run, "threads");
    assert_eq!(threads.iter().map(|rate| number(rate, "threads")).collect::<Vec<_>>(), [1.0, 16.0]);
    for rate in threads {
        assert_eq!(rate["plain_pages_per_second"], run["plain_pages_per_second"]);
        check_ratio(rate, "to_plain", "pages_per_second", "plain_pages_per_second");
        assert!(number(rate, "processor_us_each") > 0.0, "{rate}");
    }
    check_targets(run, &["threads_to_plain"], true);
    assert!(image.contains("16 threads"));
}

#[test]
fn messages_are_measured_beside_the_kernel_and_memcpy() {
    let folder = Folder::new("messages");
    let (results, image) = folder.drawn(&["messages", "--messages", "500", "--repeat", "2"]);
    let run = &results["runs"][0];
    assert_eq!((run["ranks"].as_u64(), list(run, "short_round_trip_us_each").len()), (Some(2), 2));
    check_ratio(run, "short_to_eventfd", "short_round_trip_us", "eventfd_round_trip_us");
    let streams = list(run, "streams");
    let payloads: Vec<f64> = streams.iter().map(|stream| number(stream, "payload_bytes")).collect();
    assert_eq!(payloads, [512.0, 8192.0, 65536.0]);
    for stream in streams {
        check_ratio(stream, "to_memcpy", "bytes_per_second", "copy_bytes_per_second");
    }
    if number(run, "processors") >= 2.0 {
        check_targets(run, &["short_round_trip_us", "medium_to_memcpy"], true);
    }
    assert!(image.contains("payload of 64K"));
}

#[test]
fn lists_are_measured_beside_copies_of_their_pieces() {
    let folder = Folder::new("lists");
    let results = folder.results(&["lists", "--pool", "8M", "--page", "64K", "--repeat", "2"]);
    let run = &results["runs"][0];
    for kind in list(run, "kinds") {
        check_ratio(kind, "to_copy", "list_ns", "copy_ns");
        assert_eq!(list(kind, "list_ns_each").len(), 2);
    }
    let [get, put] = ["list_get_own_to_copies", "list_put_own_to_copies"];
    check_targets(run, &[get, put, "list_get_neighbour_to_copies", "list_put_neighbour_to_copies"], true);
}

#[test]
fn a_page_of_a_neighbour_is_faulted_in_without_shared_memory_too() {
    let folder = Folder::new("fault-apart");
    let args = ["fault", "--pool", "8M", "--page", "256K", "--faults", "20", "--peer-memory", "both"];
    let results = folder.results(&args);
    let apart: Vec<&Value> = list(&results, "runs").iter().map(|run| &run["peer_memory"]).collect();
    assert_eq!(apart, [true, false]);
}

/// A file with an odd size and distinct blocks.
fn input(folder: &Folder) -> (String, u64) {
    let path = folder.path("input");
    let mut random = fastrand::Rng::with_seed(3);
    let mut bytes = vec![0; (3 << 22) + 12_345];
    random.fill(&mut bytes);
    fs::write(&path, &bytes).unwrap();
    (path, bytes.len() as u64)
}

#[test]
fn a_file_comes_back_byte_for_byte() {
    let folder = Folder::new("input");
    let (path, size_bytes) = input(&folder);
    for mode in ["sequential", "random"] {
        let args = [mode, "-n", "3", "--input", &path, "--cooperative", "both", "--page", "256K"];
        let results = folder.results(&[&args, &SMALL[..]].concat());
        for run in list(&results, "runs") {
            check_read(run, 3, size_bytes);
            assert_eq!(number(run, "checked_bytes") as u64 % size_bytes == 0, mode == "sequential");
            assert!(number(run, "checked_bytes") >= number(run, "bytes_read_all_ranks"));
            assert_eq!(run["input"].as_str(), Some(&*path));
        }
    }
}

#[test]
fn a_byte_that_changed_is_found_and_named() {
    let folder = Folder::new("damage");
    let (path, size_bytes) = input(&folder);
    for offset in [0, (1 << 22) - 1, 5_000_000, size_bytes - 1].map(|offset| offset.to_string()) {
        let output = folder.run(&["sequential", "-n", "2", "--input", &path, "--damage", &offset, "--pool", "16M"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let line = said.lines().find(|line| line.contains("differs from")).unwrap_or_else(|| panic!("{said}"));
        assert!(
            line.starts_with("vgasnet: rank ") && line.contains(&format!(" at offset {offset}: read 0x")),
            "{line}"
        );
        assert!(output.stdout.is_empty());
    }
    let random = ["random", "-n", "2", "--input", &path, "--damage", "5000000", "--pool", "16M", "--repeat", "9"];
    assert!(text(&folder.run(&random).stderr).contains(" at offset 5000000: read 0x"));
}

#[test]
fn results_go_to_a_file_and_the_table_to_stdout_in_silence() {
    let folder = Folder::new("files");
    let json = folder.path("results.json");
    let args = ["false-sharing", "-n", "1", "--rounds", "2", "--json", &json];
    let output = folder.run(&[&args, &SMALL[..]].concat());
    let said = text(&output.stderr);
    // The line about a missing io_uring is not progress.
    let is_silent = said.lines().all(|line| line.contains("the kernel refused io_uring"));
    assert!(output.status.success() && is_silent, "{said}");
    assert!(text(&output.stdout).starts_with("mode "), "{}", text(&output.stdout));
    let results: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(results["runs"][0]["mode"], "false-sharing");
}

#[test]
fn statistics_are_printed_besides_the_results() {
    let folder = Folder::new("stats");
    let args = ["false-sharing", "-n", "2", "--rounds", "5", "--stats", "--json", "-"];
    let output = folder.run(&[&args, &SMALL[..]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(results["benchmark"], "false-sharing");
    let said = text(&output.stderr);
    assert!(
        said.contains("vgasnet: statistics of 2 ranks over smp\n") && said.contains("% of the time went into"),
        "{said}"
    );
}

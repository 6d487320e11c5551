//! `vgasnet-info` as seen by its users.

use serde_json::Value;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vgasnet-info"));
    for name in ["VGASNET_STORAGE_DIR", "VGASNET_POOL_SIZE", "VGASNET_PAGE_SIZE", "VGASNET_MAX_SEGSIZE"] {
        command.env_remove(name);
    }
    command.args(arguments).envs(variables.iter().copied()).output().expect("vgasnet-info starts")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn a_job_is_told_what_it_would_get() {
    let begin = Instant::now();
    let output = run(&["-n", "3", "--json"], &[("VGASNET_POOL_SIZE", "40M"), ("VGASNET_PAGE_SIZE", "1M")]);
    assert!(begin.elapsed() < Duration::from_secs(5), "it took {:?}", begin.elapsed());
    let told = json(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert_eq!((&told["job"]["ranks"], &told["job"]["pool_bytes"]), (&3.into(), &(40_u64 << 20).into()), "{told}");
    assert_eq!(told["job"]["vgasnet_page_bytes"], 1 << 20, "{told}");
    if std::path::Path::new("/sys/kernel/mm/transparent_hugepage").is_dir() {
        assert!(told["machine"]["large_page_bytes"].as_u64().is_some_and(|bytes| bytes > 4096), "{told}");
    }
    for (section, key) in [
        ("machine", "memory_available_bytes"),
        ("machine", "page_bytes"),
        ("limits", "descriptors"),
        ("job", "segment_largest_bytes"),
        ("storage", "free_bytes"),
        ("storage", "write_bytes_s"),
        ("storage", "read_bytes_s"),
        ("storage", "read_of_4k_us"),
    ] {
        assert!(told[section][key].as_u64().is_some_and(|number| number > 0), "{section}.{key}: {told}");
    }
}

#[test]
fn what_stands_in_the_way_is_told() {
    for (variables, word) in [
        (("VGASNET_STORAGE_DIR", "/nonexistent"), "does not exist"),
        (("VGASNET_POOL_SIZE", "1K"), "less than one page"),
        (("VGASNET_POOLSIZE", "1G"), "the nearest is VGASNET_POOL_SIZE"),
    ] {
        let output = run(&["-n", "2"], &[variables]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.lines().any(|line| line.starts_with("! ") && line.contains(word)), "{text}");
    }
    assert_eq!(run(&["-n", "0"], &[]).status.code(), Some(2));
}

/// A job starts, but a program with loads or stores does not get far.
#[test]
fn a_pool_that_is_too_small_for_loads_and_stores_is_told() {
    for (pool, is_told) in [("192K", true), ("256K", false)] {
        let output = run(&["-n", "2"], &[("VGASNET_POOL_SIZE", pool), ("VGASNET_PAGE_SIZE", "64K")]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{text}");
        let line = text.lines().find(|line| line.starts_with("! a pool has fewer than 4 pages"));
        assert_eq!(line.is_some_and(|line| line.contains("VGASNET_POOL_SIZE to at least 256K")), is_told, "{text}");
        assert!(!is_told || !text.contains("nothing stands in the way"), "{text}");
    }
}

/// With files of at most 1000 KiB the job is possible as long as its segments are small enough. Nothing is reported
/// about a file created only by this program.
#[test]
fn a_limit_on_the_size_of_files_is_of_segments() {
    for (page, limit, status, word) in [
        ("64K", "512K", 0, "to measure its speed"),
        ("64K", "2M", 0, "a segment of 2M, which is offered, exceeds the limit on the size of files"),
        ("4M", "8M", 1, "no file of a page may be made"),
    ] {
        let mut shell = Command::new("bash");
        shell.args(["-c", "ulimit -f 1000 && exec \"$0\" -n 1", env!("CARGO_BIN_EXE_vgasnet-info")]);
        shell.env("VGASNET_PAGE_SIZE", page).env("VGASNET_MAX_SEGSIZE", limit).env("VGASNET_POOL_SIZE", "16M");
        let output = shell.output().expect("bash");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(status), "{text}");
        assert!(text.lines().any(|line| line.starts_with("! ") && line.contains(word)), "{text}");
        assert!(!text.contains("a segment of 256M"), "{text}");
    }
}

/// Each rank maps all pools of the host, and its own pool a second time.
#[test]
fn a_limit_on_addresses_is_told() {
    for (pool, status, word) in [
        ("1G", 1, "is limited to 2G, and a rank maps 3G of pools; ulimit -v unlimited, or a smaller VGASNET_POOL_SIZE"),
        ("64M", 0, "is limited to 2G; a rank maps 192M of pools"),
    ] {
        let mut shell = Command::new("bash");
        shell.args(["-c", "ulimit -v 2097152 && exec \"$0\" -n 2", env!("CARGO_BIN_EXE_vgasnet-info")]);
        let output = shell.env("VGASNET_POOL_SIZE", pool).output().expect("bash");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(status), "{text}");
        assert!(text.lines().any(|line| line.starts_with("! ") && line.contains(word)), "{text}");
    }
}

#[test]
fn the_number_of_ranks_is_taken_as_other_launchers_have_it() {
    let told = json(&run(&["-np", "3", "--json"], &[]));
    assert_eq!(told["job"]["ranks"], 3, "{told}");
    let help = run(&["--help"], &[]);
    assert!(String::from_utf8_lossy(&help.stdout).contains("also as -np"), "{help:?}");
}

#[test]
fn a_reader_that_has_enough_and_a_full_disk_are_no_panic() {
    for (line, status, said) in [
        ("set -o pipefail; \"$0\" -n 1 | true", 0, ""),
        ("\"$0\" -n 1 >/dev/full", 1, "vgasnet-info: standard output: No space left"),
        ("\"$0\" --generate man >/dev/full", 1, "vgasnet-info: standard output: No space left"),
        ("\"$0\" --generate interface >/dev/full", 1, "vgasnet-info: standard output: No space left"),
    ] {
        let output =
            Command::new("bash").args(["-c", line, env!("CARGO_BIN_EXE_vgasnet-info")]).output().expect("bash");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{stderr}");
        assert!(stderr.starts_with(said) && stderr.lines().count() == usize::from(status == 1), "{stderr}");
    }
}

#[test]
fn memory_is_no_disk() {
    let output = run(&["-n", "1", "--storage-dir", "/dev/shm"], &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("tmpfs") && text.lines().any(|line| line.starts_with("! ") && line.contains("/dev/shm")),
        "{text}"
    );
}

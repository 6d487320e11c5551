//! The benchmark of GASNet-EX's operations.

use crate::cached::has_library;
use crate::check_targets;
use crate::folder::{BENCH, Folder, list, number, say_not_run, text};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const SMALL: [&str; 7] = ["gasnet-ex", "--repeat", "1", "--spread", "1M", "--pool", "32M"];

const OPERATIONS: [&str; 16] = [
    "add_neighbour_one_place",
    "add_neighbour_random",
    "add_own_one_place",
    "add_own_random",
    "barrier",
    "event_test",
    "get_neighbour_one_place",
    "get_neighbour_random",
    "get_own_one_place",
    "get_own_random",
    "message_neighbour",
    "message_own",
    "put_neighbour_one_place",
    "put_neighbour_random",
    "put_own_one_place",
    "put_own_random",
];

/// Writes a prefix that looks like another GASNet-EX but uses this library.
fn write_prefix(prefix: &Path) {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let include = include.canonicalize().unwrap();
    let built = Path::new(BENCH).parent().unwrap();
    let (include, built) = (include.display(), built.display());
    fs::create_dir_all(prefix.join("lib/pkgconfig")).unwrap();
    fs::create_dir_all(prefix.join("bin")).unwrap();
    let package = format!(
        "GASNET_LD=cc\nName: gasnet-udp-par\nDescription: stands for another one\nVersion: 1\n\
         Cflags: -DGASNET_PAR -I{include}/gasnet-ex -I{include}/gasnet-compat -I{include}\n\
         Libs: -L{built} -lvgasnet -Wl,-rpath,{built}\n"
    );
    fs::write(prefix.join("lib/pkgconfig/gasnet-udp-par.pc"), package).unwrap();
    let launcher = prefix.join("bin/amudprun");
    fs::write(&launcher, format!("#!/bin/sh\nexec {built}/vgasnetrun \"$@\"\n")).unwrap();
    fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn operations_are_compared_with_those_of_another_one() {
    if !has_library() {
        return;
    }
    if Command::new("pkg-config").arg("--version").output().is_err() {
        return say_not_run("gasnet-ex: there is no pkg-config");
    }
    let folder = Folder::new("gasnet-ex");
    let prefix = folder.path("other");
    write_prefix(Path::new(&prefix));
    let more = ["-n", "2", "--other", &prefix, "--network", "udp"];
    let (results, image) = folder.drawn(&[&SMALL[..], &more].concat());
    let rows = list(&results, "rows");
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, OPERATIONS);
    for row in rows {
        assert_eq!((&row["ranks"], &row["ns_each"][0]), (&2.into(), &row["ns"]));
        assert!(number(row, "ns") > 0.0 && number(row, "other_ns") > 0.0, "{row}");
    }
    let names = ["rma_more_ns", "message_to_other", "add_own_ns", "add_neighbour_to_message", "event_test_ns"];
    check_targets(&results, &names, true);
    assert!(image.contains("gasnet-ex, rows, 2 ranks") && image.contains("get own random"));
}

#[test]
fn without_another_one_less_is_judged_and_said() {
    if !has_library() {
        return;
    }
    let folder = Folder::new("gasnet-ex-alone");
    let output = folder.run(&[&SMALL[..], &["-n", "3", "--check"]].concat());
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("NOT RUN: the other GASNet-EX: give --other"), "{said}");
    assert!(said.contains("put own random") && !said.contains("wanted"), "{said}");
}

#[test]
fn prefixes_and_places_that_make_no_sense_are_refused() {
    let folder = Folder::new("gasnet-ex-refused");
    let refused = |more: &[&str], status: i32, line: &str| {
        let output = folder.run(&[&["gasnet-ex"], more].concat());
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(status), 1), "{said}");
        assert!(said.contains(line), "{said}");
    };
    refused(&["--spread", "100K"], 2, "--spread 100K: give a multiple of 64K up to half a pool, 128M");
    refused(&["--spread", "64M", "--pool", "64M"], 2, "half a pool, 32M");
    if has_library() {
        refused(&["--other", "/none"], 1, "--other /none: No such file");
    }
}

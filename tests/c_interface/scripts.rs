//! `scripts/` and what they install where people are: in other directories, beside files of others, with other linkers, compilers and
//! package managers than those of the machine that the scripts were written on. Programs that stand in for those note what they are told.

use crate::install::{build_dir, install, is_here};
use crate::support::compile::source_dir;
use crate::uninstall::stand_in;
use std::fs;
use std::process::Command;

/// Where make takes the path for two, nothing is removed in either.
#[test]
fn packages_are_not_built_in_a_directory_with_blanks() {
    if !is_here("make") {
        return;
    }
    let dir = build_dir("debian");
    let (sources, neighbour) = (dir.join("vgasnet copy"), dir.join("vgasnet"));
    fs::create_dir_all(sources.join("debian")).expect("a new directory");
    fs::create_dir_all(sources.join("scripts")).expect("a new directory");
    fs::create_dir(&neighbour).expect("a new directory");
    fs::copy(source_dir().join("debian/rules"), sources.join("debian/rules")).expect("a copy");
    stand_in(&sources.join("scripts"), "install", "mkdir -p debian/tmp/usr/share/modulefiles");
    let mut make = Command::new("make");
    let output =
        make.args(["-f", "debian/rules", "override_dh_auto_install"]).current_dir(&sources).output().expect("make");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("has blanks; choose one without"), "{said}");
    assert!(neighbour.is_dir());
}

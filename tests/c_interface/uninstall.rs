//! What `scripts/install` leaves of the machine as it was: directories of others.

use crate::install::{build_dir, built, install, succeed};
use std::fs;
use std::path::Path;
use std::process::Command;

fn directories_below(dir: &Path) -> Vec<String> {
    let found = succeed(Command::new("find").args([".", "-type", "d"]).current_dir(dir));
    let mut found: Vec<_> = found.lines().map(str::to_owned).collect();
    found.sort();
    found
}

/// As in `/usr/local` of a fresh system, whose directories belong to it.
#[test]
fn directories_that_were_there_stay() {
    let root = build_dir("uninstall");
    for dir in ["bin", "include", "lib", "share/man/man1"] {
        fs::create_dir_all(root.join(dir)).expect("a directory of ours");
    }
    let before = directories_below(&root);
    // Twice: what an earlier installation has made is not there because of others.
    for _ in 0..2 {
        succeed(install(&[]).arg(&root).arg(built()));
    }
    assert!(root.join("share/man/man3").is_dir());
    succeed(install(&["--uninstall"]).arg(&root));
    assert_eq!(directories_below(&root), before);
    let new = root.join("new");
    succeed(install(&[]).arg(&new).arg(built()));
    succeed(install(&["--uninstall"]).arg(&new));
    assert!(!new.exists());
}

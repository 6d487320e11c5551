//! `scripts/install` and `scripts/deb` leave everything else on the machine unchanged: directories, software, and no
//! temporary files.

use crate::install::{build_dir, built_small, install};
use crate::support::compile::source_dir;
use crate::support::run::{place_executable, succeed};
use crate::support::tools::with_default_signals;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

fn directories_below(dir: &Path) -> Vec<String> {
    let found = succeed(Command::new("find").args([".", "-type", "d"]).current_dir(dir));
    let mut found: Vec<_> = found.lines().map(str::to_owned).collect();
    found.sort();
    found
}

/// A script that stands in for a program, in `dir`.
pub fn stand_in(dir: &Path, program: &str, text: &str) {
    place_executable(&dir.join(program), format!("#!/bin/sh\n{text}\n").as_bytes());
}

/// As in `/usr/local` of a fresh system, which owns its directories.
#[test]
fn directories_that_were_there_stay() {
    let root = build_dir("uninstall");
    for dir in ["bin", "include", "lib", "share/man/man1"] {
        fs::create_dir_all(root.join(dir)).expect("a directory of ours");
    }
    let before = directories_below(&root);
    // Twice: directories made by an earlier installation do not count as others'.
    for _ in 0..2 {
        succeed(install(&[]).arg(&root).arg(built_small()));
    }
    assert!(root.join("share/man/man3").is_dir());
    succeed(install(&["--uninstall"]).arg(&root));
    assert_eq!(directories_below(&root), before);
    let new = root.join("new");
    succeed(install(&[]).arg(&new).arg(built_small()));
    succeed(install(&["--uninstall"]).arg(&new));
    assert!(!new.exists());
}

/// `lib64` is a link to `lib`, groups own directories, and the installing user's umask hides new files from others.
#[test]
fn directories_and_links_are_kept_and_all_users_read() {
    let root = build_dir("site");
    let lib = root.join("lib");
    fs::create_dir(&lib).expect("a directory of ours");
    fs::set_permissions(&lib, fs::Permissions::from_mode(0o2775)).expect("a directory of ours");
    symlink("lib", root.join("lib64")).expect("a new link");
    let installation = install(&["--libdir", "lib64"]);
    let mut command = Command::new("sh");
    command.args(["-c", "umask 077; exec \"$@\"", "sh"]).arg(installation.get_program()).args(installation.get_args());
    let variables = installation.get_envs().filter_map(|(name, value)| Some((name, value?)));
    succeed(command.arg(&root).arg(built_small()).env_remove("DESTDIR").envs(variables));
    assert_eq!(fs::metadata(&lib).expect("it is there").permissions().mode() & 0o7777, 0o2775);
    assert_eq!(fs::read_link(root.join("lib64")).expect("a link"), Path::new("lib"));
    let unread = Command::new("find").arg(&root).args(["!", "-type", "l", "!", "-perm", "-a=r"]).output();
    assert_eq!(String::from_utf8_lossy(&unread.expect("find").stdout), "");
    // All links lead to files, including the links for GASNet's clients.
    let nowhere = Command::new("find").arg(&root).args(["-xtype", "l"]).output();
    assert_eq!(String::from_utf8_lossy(&nowhere.expect("find").stdout), "");
    succeed(install(&["--uninstall"]).arg(&root));
    assert_eq!(directories_below(&root), [".", "./lib"]);
}

/// A directory with only these programs of the machine, and a package manager that records its calls.
fn bare_machine(name: &str) -> std::path::PathBuf {
    let dir = build_dir(name);
    for program in [
        "sh", "dirname", "realpath", "mkdir", "mktemp", "rm", "find", "grep", "sed", "head", "id", "touch", "timeout",
        "env",
    ] {
        let path = succeed(Command::new("sh").args(["-c", &format!("command -v {program}")]));
        symlink(path.trim(), dir.join(program)).expect("a new link");
    }
    for program in ["apt-get", "curl", "sudo"] {
        stand_in(&dir, program, "touch \"${0%/*}/called\"; exit 1");
    }
    dir
}

fn names_what_lacks(output: &Output, names: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.trim_end(), format!("missing here, please install: {names}"));
}

/// Software comes from elsewhere for a user who builds a package or has no network.
#[test]
fn nothing_is_installed_on_the_machine() {
    let machine = bare_machine("bare-machine");
    let bare = |command: &mut Command| {
        for name in ["DESTDIR", "BUILT", "CARGO_NET_OFFLINE", "CC", "CXX"] {
            command.env_remove(name);
        }
        command.env("PATH", &machine).env("CARGO_HOME", machine.join("cargo")).env("HOME", &machine);
        command.stdin(std::process::Stdio::null());
    };
    let (script, out) = (|name: &str| Command::new(source_dir().join("scripts").join(name)), machine.join("out"));
    for (arguments, variables, lacks) in [
        (&["install", "PREFIX"][..], &[("DESTDIR", "/tmp/dest")][..], "gcc Rust (1.85 or later)"),
        (&["install", "PREFIX"], &[("CARGO_NET_OFFLINE", "true")], "gcc Rust (1.85 or later)"),
        (&["install", "PREFIX", "BUILT"], &[], "gcc"),
        (&["deb", "PREFIX", "BUILT"], &[], "gcc g++ binutils dpkg-dev debhelper dh-python pkg-config cargo"),
        (&["prepare", "what:package"], &[("CARGO_NET_OFFLINE", "true")], "package Rust (1.85 or later)"),
        (&["prepare", "what:package"], &[("BUILT", "here")], "package"),
    ] {
        let mut command = script(arguments[0]);
        for argument in &arguments[1..] {
            match *argument {
                "PREFIX" => command.arg(&out),
                "BUILT" => command.arg(built_small()),
                other => command.arg(other),
            };
        }
        bare(&mut command);
        names_what_lacks(&command.envs(variables.iter().copied()).output().expect("a script"), lacks);
        assert!(!machine.join("called").exists(), "{arguments:?}");
    }
    // Otherwise the script asks to install it.
    let mut command = script("prepare");
    bare(&mut command);
    assert!(!command.arg("what:package").output().expect("a script").status.success());
    assert!(machine.join("called").exists());
}

/// A program called by the script sends it a signal while its temporary tree exists.
#[test]
fn a_signal_leaves_no_temporary_tree() {
    let tools = build_dir("signalling");
    let temporary = build_dir("temporary");
    let out = build_dir("signalled");
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").expect("a path"));
    for signal in ["TERM", "INT", "HUP"] {
        for program in ["strip", "tar"] {
            stand_in(&tools, program, &format!("kill -{signal} $PPID"));
        }
        for script in ["install", "deb"] {
            let mut command = Command::new(source_dir().join("scripts").join(script));
            command.arg(&out).arg(built_small()).env_remove("DESTDIR").env("PATH", &path).env("TMPDIR", &temporary);
            let output = with_default_signals(&mut command).output().expect("a script");
            assert_eq!(output.status.code(), Some(1), "{script} after {signal}: {output:?}");
            let left: Vec<_> = fs::read_dir(&temporary).expect("a directory of ours").collect();
            assert!(left.is_empty(), "{script} after {signal}: {left:?}");
        }
    }
}

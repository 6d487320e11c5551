//! Mistakes of users and failures of machines. Each ends the job without a hang, with a non-zero status and one line
//! that names the error, the place, the allowed values and the remedy. Nothing is left in the storage folder. Misuse of
//! the C interface is in `misuse.rs`.

use crate::support::compile::{self, Language, Linking};
use crate::support::run::{entries, finish, fresh_dir, say_not_run};
use crate::support::tools::{tool, with_default_signals};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A job with an error in it.
struct Case {
    ranks: u32,
    /// Arguments of `traffic`.
    args: &'static [&'static str],
    environment: Vec<(&'static str, String)>,
    /// The file system to mount over the storage folder, and its options.
    mount: Option<(&'static str, &'static str)>,
}

/// The outcome of a case.
struct Outcome {
    status: Option<i32>,
    stderr: String,
}

const SMALL: &[&str] = &["16", "1"];

fn case(environment: &[(&'static str, &str)]) -> Case {
    let environment = environment.iter().map(|(name, value)| (*name, value.to_string())).collect();
    Case { ranks: 2, args: SMALL, environment, mount: None }
}

impl Case {
    fn run(&self) -> Outcome {
        let storage = fresh_dir();
        let outcome = self.run_in(&storage).expect("vgasnetrun starts");
        assert!(entries(&storage).is_empty(), "left in the storage folder: {:?}", entries(&storage));
        std::fs::remove_dir(&storage).expect("an empty directory of ours");
        outcome
    }

    fn run_in(&self, storage: &Path) -> io::Result<Outcome> {
        let program = compile::program("traffic", Language::C99, Linking::Shared);
        let mut command = Command::new(tool("vgasnetrun"));
        command.env("VGASNET_STORAGE_DIR", storage).env("VGASNET_POOL_SIZE", "4M").env("VGASNET_PAGE_SIZE", "1M");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.args(["-n", &self.ranks.to_string()]).arg(program).args(self.args);
        if let Some((file_system, options)) = self.mount {
            let storage = storage.to_owned();
            // SAFETY: between fork and exec this makes system calls and allocates nothing but a path or two. No other
            // thread of the child runs, and the child's allocator is a copy of the parent's.
            unsafe { command.pre_exec(move || mount_apart(&storage, file_system, options)) };
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (status, _, stderr) = finish(with_default_signals(&mut command).spawn()?);
        Ok(Outcome { status, stderr })
    }

    /// Runs the case and checks that it fails with one line from vgasnet, and that the line contains all of `parts`.
    fn fails_saying(&self, parts: &[&str]) {
        let outcome = self.run();
        let lines: Vec<&str> = outcome.stderr.lines().filter(|line| line.starts_with("vgasnet: rank")).collect();
        let lines: Vec<&&str> = lines.iter().filter(|line| !line.contains("warning")).collect();
        assert!(outcome.status.is_some_and(|status| status != 0), "status {:?}\n{}", outcome.status, outcome.stderr);
        assert_eq!(lines.len(), 1, "not one line:\n{}", outcome.stderr);
        for part in parts {
            assert!(lines[0].contains(part), "the line lacks {part:?}: {}", lines[0]);
        }
    }
}

/// Mounts a file system visible only to this process and its children.
fn mount_apart(target: &Path, file_system: &str, options: &str) -> io::Result<()> {
    let none: Option<&str> = None;
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    if file_system == "read-only" {
        mount(Some(target), target, none, MsFlags::MS_BIND, none)?;
        mount(none, target, none, MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY, none)?;
        return Ok(());
    }
    mount(Some("none"), target, Some(file_system), MsFlags::empty(), Some(options))?;
    Ok(())
}

/// Whether this user may mount. Prints a line if not.
pub fn may_mount(test: &str) -> bool {
    let mut probe = Command::new("true");
    let dir: PathBuf = fresh_dir();
    let target = dir.clone();
    // SAFETY: between fork and exec this makes system calls and allocates a path or two. No other thread of the child
    // runs, and the child's allocator is a copy of the parent's.
    unsafe { probe.pre_exec(move || mount_apart(&target, "tmpfs", "size=1m")) };
    let may = probe.status().is_ok_and(|status| status.success());
    std::fs::remove_dir(&dir).expect("an empty directory of ours");
    if !may {
        say_not_run(test, "this user may not mount file systems");
    }
    may
}

#[test]
fn pools_of_four_and_of_all_pages_but_one_are_taken() {
    for pool in ["4M", "15M"] {
        let outcome = case(&[("VGASNET_POOL_SIZE", pool)]).run();
        assert_eq!(outcome.status, Some(0), "{}", outcome.stderr);
    }
}

#[test]
fn settings_that_make_no_sense() {
    let wrong = [
        ("VGASNET_POOL_SIZE", "64K", "at least 1M"),
        ("VGASNET_POOL_SIZE", "100T", "allowed: at most"),
        ("VGASNET_POOL_SIZE", "lots", "size"),
        ("VGASNET_POOL_SIZE", "-1M", "size"),
        ("VGASNET_POOL_SIZE", "4MB", "size"),
        ("VGASNET_PAGE_SIZE", "3M", "power of two from 4K"),
        ("VGASNET_PAGE_SIZE", "128M", "power of two from 4K"),
        ("VGASNET_PAGE_SIZE", "2K", "power of two from 4K"),
        ("VGASNET_MAX_SEGSIZE", "1.5G", "size"),
        ("VGASNET_COOPERATIVE", "yes", "0 or 1"),
        ("VGASNET_CONDUIT", "carrier-pigeon", "smp"),
        ("VGASNET_STORAGE_DIR", "relative/path", "absolute"),
    ];
    for (name, value, allowed) in wrong {
        case(&[(name, value)]).fails_saying(&["rank 0: vgasnet_init", name, value, allowed]);
    }
    case(&[("VGASNET_POOLSIZE", "4M")]).fails_saying(&[
        "rank 0: vgasnet_init",
        "VGASNET_POOLSIZE",
        "VGASNET_POOL_SIZE",
    ]);
}

#[test]
fn settings_of_others() {
    for (name, lines) in [("VGASNET_ROOT", 0), ("VGASNET_LUNCHEON", 1)] {
        let outcome = case(&[(name, "/opt")]).run();
        assert_eq!(outcome.status, Some(0), "{}", outcome.stderr);
        let said: Vec<_> = outcome.stderr.lines().filter(|line| line.contains(name)).collect();
        assert_eq!(said.len(), lines, "{}", outcome.stderr);
        assert!(said.iter().all(|line| line.starts_with("vgasnet: rank 0: vgasnet_init: warning: ")), "{said:?}");
    }
}

#[test]
fn a_storage_folder_that_is_not_there() {
    case(&[("VGASNET_STORAGE_DIR", "/no/such/folder")]).fails_saying(&[
        "rank 0: vgasnet_attach",
        "/no/such/folder",
        "VGASNET_STORAGE_DIR",
    ]);
    case(&[("VGASNET_STORAGE_DIR", "/etc/passwd")]).fails_saying(&["/etc/passwd", "VGASNET_STORAGE_DIR"]);
}

#[test]
fn a_segment_larger_than_the_space() {
    let huge = Case { args: &["1000000000", "1", "offered"], ..case(&[]) };
    huge.fails_saying(&[
        "rank 0: vgasnet_attach",
        "was asked for",
        "is offered",
        "free for 2 ranks",
        "VGASNET_MAX_SEGSIZE",
    ]);
    let told = huge.run().stderr;
    let offered = told.lines().find_map(|line| line.strip_prefix("offered: ")).expect("the program says it");
    assert!(told.contains(&format!("({offered} bytes) is offered")), "{told}");
    let capped = case(&[("VGASNET_MAX_SEGSIZE", "8M")]);
    capped.fails_saying(&["16M", "8M", "VGASNET_MAX_SEGSIZE"]);
}

#[test]
fn a_read_only_storage_folder() {
    if may_mount("a_read_only_storage_folder") {
        Case { mount: Some(("read-only", "")), ..case(&[]) }.fails_saying(&["read-only", "VGASNET_STORAGE_DIR"]);
    }
}

#[test]
fn a_full_storage_folder() {
    if may_mount("a_full_storage_folder") {
        let full = Case { mount: Some(("tmpfs", "size=8m")), ..case(&[]) };
        full.fails_saying(&["16M", "free", "VGASNET_STORAGE_DIR"]);
    }
}

#[test]
fn a_file_system_without_direct_io_works_with_a_warning() {
    if may_mount("a_file_system_without_direct_io_works_with_a_warning") {
        let mut outcome = Case { mount: Some(("ramfs", "")), ..case(&[("VGASNET_MAX_SEGSIZE", "64M")]) }.run();
        outcome.stderr.make_ascii_lowercase();
        assert_eq!(outcome.status, Some(0), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("o_direct"), "no warning:\n{}", outcome.stderr);
    }
}

#[test]
fn an_io_error_in_a_read_and_in_a_write_back() {
    for (fault, verb) in [("read:3", "cannot read"), ("write:5", "cannot write")] {
        case(&[("VGASNET_TEST_IO_ERROR", fault)]).fails_saying(&[
            verb,
            "backing file",
            "Input/output error",
            "VGASNET_STORAGE_DIR",
        ]);
    }
}

#[test]
fn a_rank_killed_in_the_middle_of_traffic() {
    for ranks in [2, 4] {
        let outcome = Case { ranks, args: &["16", "1000000", "die"], ..case(&[]) }.run();
        assert_eq!(outcome.status, Some(128 + 9), "{}", outcome.stderr);
        let line = format!("rank {}", ranks - 1);
        assert!(outcome.stderr.contains(&line) && outcome.stderr.contains("SIGKILL"), "{}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    }
}

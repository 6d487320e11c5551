//! Debuggers and checkers on programs with segments larger than their pools: gdb with the installed script, valgrind.

use crate::support::compile::{Language, Linking, program, source_dir};
use crate::support::run::{finish, fresh_dir, say_not_run};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether a tool runs here. Prints a line if not.
fn is_here(tool: &str) -> bool {
    let is_here = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !is_here {
        say_not_run(tool, "it is not installed; scripts/test installs it");
    }
    is_here
}

/// Runs a tool on one rank with a pool of 4 pages. Returns its status and all output.
fn run_tool(command: &mut Command) -> (Option<i32>, String) {
    let storage = fresh_dir();
    command.env("VGASNET_CONDUIT", "smp").env("VGASNET_STORAGE_DIR", &storage);
    for (name, value) in [
        ("VGASNET_PAGE_SIZE", "65536"),
        ("VGASNET_POOL_SIZE", "262144"),
        ("CHECK_PAGE_BYTES", "65536"),
        ("CHECK_POOL_BYTES", "262144"),
        ("CHECK_RANKS", "1"),
        ("CHECK_SEED", "2017"),
    ] {
        command.env(name, value);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (status, stdout, stderr) = finish(command.spawn().expect("a tool that is here"));
    std::fs::remove_dir(&storage).expect("an empty directory of ours");
    (status, stdout + &stderr)
}

fn debugged() -> PathBuf {
    program("debugged", Language::C99, Linking::Shared)
}

/// Runs gdb with these commands, after loading the script.
fn gdb(program: &Path, commands: &[&str]) -> String {
    let mut gdb = Command::new("gdb");
    gdb.args(["-q", "-nx", "-batch", "-ex", "set debuginfod enabled off"]);
    gdb.arg("-x").arg(source_dir().join("packaging/vgasnet-gdb.py"));
    gdb.args(["-ex", "handle SIGUSR1 nostop noprint pass"]);
    for command in commands {
        gdb.args(["-ex", command]);
    }
    let (_, said) = run_tool(gdb.arg("--args").arg(program));
    println!("{said}");
    said
}

/// Whether gdb may trace here and has Python. Prints a line if not.
fn may_debug() -> bool {
    if !is_here("gdb") {
        return false;
    }
    let said = gdb(Path::new("/bin/true"), &["python print('has', 'python')", "run"]);
    let may_debug = said.contains("has python") && said.contains("exited normally");
    if !may_debug {
        say_not_run("gdb", "it has no Python, or the system allows no tracing");
    }
    may_debug
}

#[test]
fn gdb_stops_steps_and_reads_pages_that_are_not_in_memory() {
    if !may_debug() {
        return;
    }
    let said = gdb(
        &debugged(),
        &[
            "break total_of",
            "run",
            "next",
            "next",
            "next",
            "vgasnet pages",
            "vgasnet print *(unsigned long *) (base + 4 * 65536)",
            "vgasnet read base+3*65536 8",
            "vgasnet read base-1 1",
            "delete",
            "continue",
        ],
    );
    assert!(said.contains("Breakpoint 1, total_of"), "{said}");
    assert!(said.contains("of 16 pages of rank 0 are in its memory"), "{said}");
    assert!(said.contains("\n1004\n") && said.contains(": eb 03 00 00 00 00 00 00"), "{said}");
    assert!(said.contains("are not in the segment of rank 0"), "{said}");
    assert!(said.contains("total 16120") && said.contains("exited normally"), "{said}");
    assert!(!said.contains("SIGTRAP") && !said.contains("SIGSEGV"), "{said}");
}

#[test]
fn gdb_stops_at_a_wild_access_and_core_files_say_what_they_lack() {
    if !may_debug() {
        return;
    }
    let core = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("debugged-{}.core", std::process::id()));
    let keep = format!("gcore {}", core.display());
    let said = gdb(&debugged(), &["break total_of", "run", &keep, "set var base = 8", "continue", "bt"]);
    assert!(said.contains("a signal ends the program") && said.contains("<signal handler called>"), "{said}");
    let load = format!("core-file {}", core.display());
    let said = gdb(
        &debugged(),
        &[
            &load,
            "vgasnet pages",
            "vgasnet print *(unsigned long *) (base + 15 * 65536)",
            "vgasnet read base+7*65536 8",
        ],
    );
    std::fs::remove_file(&core).expect("gdb has written it");
    assert!(said.contains("\n1015\n") && said.contains("so it is not in the core file"), "{said}");
}

#[test]
fn valgrind_runs_gets_and_puts() {
    if !is_here("valgrind") {
        return;
    }
    let (status, said) = run_tool(Command::new("valgrind").arg("-q").arg(debugged()).arg("gets"));
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("total 16120"), "{said}");
    assert_eq!(said.lines().filter(|line| line.contains("valgrind maps no memory twice")).count(), 1, "{said}");
}

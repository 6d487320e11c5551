//! Debuggers and checkers on programs whose segments are larger than their pools: gdb with the script that is installed,
//! valgrind, ThreadSanitizer.

use crate::support::compile::{Language, Linking, library, program, source_dir};
use crate::support::run::{Setup, finish, fresh_dir, run_with, say_not_run};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether a tool runs here. If not, says so.
fn is_here(tool: &str) -> bool {
    let is_here = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !is_here {
        say_not_run(tool, "it is not installed; scripts/test installs it");
    }
    is_here
}

/// Runs a tool on one rank with a pool of 4 pages. Returns its status and all that was said.
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

/// Runs gdb with these commands, after the script was loaded.
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

/// Whether gdb may trace here and has Python. If not, says so.
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
        &[&load, "vgasnet pages", "vgasnet print *(unsigned long *) (base + 15 * 65536)", "vgasnet read base 8"],
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

/// Compiles a program of `tests/c/` with these sanitizers; `None` if the compiler has none.
fn sanitized(name: &str, sanitizers: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{sanitizers}"));
    let shared = library("libvgasnet.so");
    let dir = shared.parent().expect("a library is in a directory");
    let mut command = Command::new("cc");
    command.arg(format!("-fsanitize={sanitizers}")).arg("-fno-sanitize-recover=all");
    command.args(["-O1", "-g", "-pthread", "-D_POSIX_C_SOURCE=200809L", "-I"]).arg(source_dir().join("include"));
    command.arg(source_dir().join("tests/c").join(name).with_extension("c")).arg("-o").arg(&program);
    command.arg("-L").arg(dir).arg("-lvgasnet").arg(format!("-Wl,--disable-new-dtags,-rpath,{}", dir.display()));
    let output = command.output().expect("a compiler");
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        say_not_run(&format!("{name} with {sanitizers}"), said.lines().last().unwrap_or("it does not compile"));
    }
    output.status.success().then_some(program)
}

/// Programs that need no argument and use ordinary memory as C allows, with the sanitizer of threads if that can follow.
const SANITIZED: [(&str, bool); 14] = [
    ("advice", true),
    ("barriers", true),
    ("blocking", true),
    ("c_library", true),
    ("contention", true),
    ("faults_in_threads", true),
    ("handles", true),
    ("implicit", true),
    ("loads_stores", true),
    ("messages", true),
    ("own_segment", true),
    ("stores_seen", true),
    ("values", true),
    ("vis", true),
];

/// Without leaks, which `compat.rs` looks for.
#[test]
fn sanitizers_find_nothing_in_c_programs() {
    if std::env::var_os("CHECK_ALL").is_none() {
        return say_not_run("sanitizers on the C programs", "scripts/test all runs them");
    }
    let setup = Setup { ranks: 2, page_bytes: 65536, pool_pages: 7, peer_memory: true, cooperative: true };
    for (name, has_threads) in SANITIZED {
        if let Some(program) = sanitized(name, "address,undefined") {
            run_with(&program, &[], setup, &[("ASAN_OPTIONS", "detect_leaks=0")]).expect(0);
        }
        if let Some(program) = has_threads.then(|| sanitized(name, "thread")).flatten() {
            run_with(&program, &[], setup, &[("TSAN_OPTIONS", "ignore_noninstrumented_modules=1")]).expect(0);
        }
    }
}

#[test]
fn sanitizers_of_threads_find_races_in_segments_and_no_others() {
    let Some(program) = sanitized("debugged", "thread") else { return };
    let run = |args: &[&str]| {
        run_tool(Command::new(&program).args(args).env("TSAN_OPTIONS", "ignore_noninstrumented_modules=1"))
    };
    let (status, said) = run(&[]);
    assert_eq!(status, Some(0), "{said}");
    assert!(!said.contains("WARNING"), "{said}");
    let (_, said) = run(&["race"]);
    assert!(said.contains("WARNING: ThreadSanitizer: data race"), "{said}");
}

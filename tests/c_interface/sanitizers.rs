//! All programs of `tests/c/`, and some examples, under AddressSanitizer, UndefinedBehaviorSanitizer and
//! ThreadSanitizer. Exceptions are listed here with a reason. The library itself is built without sanitizers;
//! `scripts/asan` checks it.

use crate::support::compile::{library, source_dir};
use crate::support::run::{Setup, fresh_dir, run_with, say_not_run, succeed};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The options to compile a program, and the options of its checker: for all programs, and for programs that inspect
/// the handling of SIGSEGV.
struct Checker {
    sanitizers: &'static str,
    variable: &'static str,
    options: &'static str,
    /// Programs that cannot run under it, and why.
    exceptions: &'static [(&'static str, &'static str)],
}

/// Without leaks, which `compat.rs` checks.
const ADDRESSES: Checker = Checker {
    sanitizers: "address,undefined",
    variable: "ASAN_OPTIONS",
    options: "detect_leaks=0",
    exceptions: &[
        ("behind", "its main function calls one of another program"),
        ("cancellation", "a thread that is cancelled leaves its stack poisoned, where the checker itself stumbles"),
        ("dlopened_plugin", "it is no program; dlopened loads it"),
        ("ex_locales", "its tasks have their stacks in the segment, which the checkers take for data"),
        ("ex_secure", "it is run as another user, by no launcher"),
        ("malloc_faults", "it sets the C library's malloc, in whose place there is another"),
        ("stacks", "its stacks lie in the segment, which the checkers take for data"),
    ],
};

const THREADS: Checker = Checker {
    sanitizers: "thread",
    variable: "TSAN_OPTIONS",
    options: "ignore_noninstrumented_modules=1:atexit_sleep_ms=0",
    exceptions: &[
        ("behind", "its main function calls one of another program"),
        ("collectives", "threads reduce one after the other, in an order that the library makes unseen"),
        ("dlopened_plugin", "it is no program; dlopened loads it"),
        ("ex_locales", "its tasks have their stacks in the segment, which the checkers take for data"),
        ("ex_secure", "it is run as another user, by no launcher"),
        ("fork_handlers", "a forked child starts a thread, which the checker does not allow"),
        ("interrupted_copies", "handlers run late, and never in a copy that stands still"),
        ("interrupts", "handlers run late, also where the library has a lock, and use the segment there"),
        ("jumps", "handlers run late, and never in its loop of loads and stores, which they are to leave"),
        ("locks", "it does not see that locks in the segment order threads: the library waits for them"),
        ("malloc_faults", "it sets the C library's malloc, in whose place there is another"),
        ("sockets", "a thread is cancelled in a call, and the checker takes it to be there still"),
        ("stacks", "its stacks lie in the segment, which the checkers take for data"),
        ("waits", "handlers run late, and never in a load that waits"),
    ],
};

/// Programs that inspect the handling of SIGSEGV. The checkers install a handler for all others.
const LOOK_AT_SIGSEGV: [&str; 4] = ["copied_blocks", "forks", "raised_copies", "signals"];

/// Programs that inspect statistics.
const LOOK_AT_STATISTICS: [&str; 3] = ["blocks", "loans", "stats"];

/// Arguments of programs.
const ARGUMENTS: [(&str, &[&str]); 32] = [
    ("blocks", &["puts"]),
    ("disk", &["ticks"]),
    ("ex_bad", &["category"]),
    ("ex_bytes_bad", &["atomic", "operation"]),
    ("ex_coll_bad", &["root"]),
    ("ex_refused", &["0"]),
    ("ex_thrown", &["caught"]),
    ("exits", &["main", "0"]),
    ("fatal", &["outside"]),
    // These take a directory as well, and the next ones also a file.
    ("file_space", &["holes"]),
    ("file_systems", &["rights"]),
    ("idle_pools", &["mixed"]),
    ("interrupted_copies", &["put"]),
    ("interrupts", &["none", "none"]),
    ("job", &["answers"]),
    ("locks", &["mutexes"]),
    ("masks", &["threads"]),
    ("partly", &["all"]),
    ("raised_copies", &["returns", "get"]),
    ("readonly", &["phases"]),
    ("scattered", &["blocks"]),
    // These take a directory as well, as the other shared files do.
    ("shared_file_appends", &["sync"]),
    ("shared_file_closes", &["unsynced"]),
    ("shared_file_large", &["calls"]),
    ("shared_file_misuse", &["misuse"]),
    ("shared_file_opens", &["failed"]),
    ("shared_files", &["rounds"]),
    ("signals", &["after", "plain"]),
    ("stats", &["hits"]),
    ("traffic", &["1", "2"]),
    ("waits", &["returns"]),
    ("wild", &["handled"]),
];

/// Programs whose job ends with an error.
const FATAL: [&str; 5] = ["ex_bad", "ex_bytes_bad", "ex_coll_bad", "ex_refused", "fatal"];

/// Programs of `examples/`, with their arguments.
const EXAMPLES: [(&str, &[&str]); 2] = [
    ("barnes_hut", &["--bodies", "200", "--cached", "--batch"]),
    ("lcc", &["--scale", "8", "--cached", "--batch", "4"]),
];

const SETUP: Setup = Setup { ranks: 2, page_bytes: 65536, pool_pages: 8, peer_memory: true, cooperative: true };

/// The source of a program.
fn source_of(name: &str) -> PathBuf {
    let dir = if EXAMPLES.iter().any(|(example, _)| *example == name) { "examples" } else { "tests/c" };
    source_dir().join(dir).join(name).with_extension("c")
}

/// Whether the compiler has a checker.
fn is_here(sanitizers: &str) -> bool {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nothing-{sanitizers}"));
    std::fs::write(file.with_extension("c"), "int main(void) { return 0; }\n").expect("a file of ours");
    let mut command = Command::new("cc");
    command.arg(format!("-fsanitize={sanitizers}")).arg(file.with_extension("c")).arg("-o").arg(&file);
    let output = command.output().expect("a compiler");
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        say_not_run(sanitizers, said.lines().last().unwrap_or("the compiler does not have it"));
    }
    output.status.success()
}

/// Compiles a source for a checker, with the library or with these options.
fn compiled(name: &str, sanitizers: &str, options: Option<&[&str]>) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{sanitizers}"));
    let mut command = Command::new("cc");
    command.arg(format!("-fsanitize={sanitizers}")).arg("-fno-sanitize-recover=all");
    command.args(["-O1", "-g", "-pthread", "-D_POSIX_C_SOURCE=200809L"]);
    let include = source_dir().join("include");
    if name.starts_with("ex_") {
        command
            .arg("-DGASNET_PAR")
            .arg("-I")
            .arg(include.join("gasnet-ex"))
            .arg("-I")
            .arg(include.join("gasnet-compat"));
    }
    command.arg("-I").arg(include);
    command.arg(source_of(name)).arg("-o").arg(&file);
    if let Some(options) = options {
        command.args(options);
    } else {
        let shared = library("libvgasnet.so");
        let dir = shared.parent().expect("a library is in a directory");
        command.arg("-L").arg(dir).arg("-lvgasnet").arg(format!("-Wl,--disable-new-dtags,-rpath,{}", dir.display()));
    }
    succeed(command.args(["-ldl", "-lm"]));
    file
}

impl Checker {
    fn run(&self, name: &str) {
        let args = ARGUMENTS.iter().chain(&EXAMPLES).find(|(of, _)| *of == name).map_or(&[][..], |(_, args)| args);
        let mut args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let dir = (name.starts_with("shared_file") || name.starts_with("file_s")).then(fresh_dir);
        args.extend(dir.iter().map(|dir| dir.to_string_lossy().into_owned()));
        args.extend((name == "file_systems").then(|| "elsewhere".to_owned()));
        let (program, args) = if name == "dlopened" {
            let plugin = compiled("dlopened_plugin", self.sanitizers, Some(&["-shared", "-fPIC"]));
            let [library, plugin] = [library("libvgasnet.so"), plugin]
                .map(|path| path.into_os_string().into_string().expect("a path in UTF-8"));
            (compiled(name, self.sanitizers, Some(&[])), vec![library, "sigaction".to_owned(), plugin])
        } else {
            (compiled(name, self.sanitizers, None), args)
        };
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let own = if LOOK_AT_SIGSEGV.contains(&name) { ":handle_segv=0:handle_sigbus=0" } else { "" };
        let options = format!("{}{own}", self.options);
        let statistics = if LOOK_AT_STATISTICS.contains(&name) { "1" } else { "0" };
        let ended = run_with(&program, &args, SETUP, &[(self.variable, &options), ("VGASNET_STATS", statistics)]);
        ended.expect(i32::from(FATAL.contains(&name)));
        dir.into_iter().for_each(|dir| std::fs::remove_dir_all(dir).expect("a directory of ours"));
        // Checkers write to stderr even if the program continues.
        assert!(!ended.stderr.contains("Sanitizer"), "{ended}");
    }

    fn run_all(&self) {
        if std::env::var_os("CHECK_ALL").is_none() {
            return say_not_run(self.sanitizers, "scripts/test all runs the C programs under sanitizers");
        }
        if !is_here(self.sanitizers) {
            return;
        }
        let all = programs();
        for (name, why) in self.exceptions {
            assert!(all.contains(*name), "{name}, which is excepted because {why}, is no program of tests/c");
        }
        let is_excepted = |name: &str| self.exceptions.iter().any(|(other, _)| *other == name);
        all.iter().filter(|name| !is_excepted(name)).for_each(|name| self.run(name));
        EXAMPLES.iter().for_each(|(name, _)| self.run(name));
    }
}

/// The names of the sources of `tests/c/`.
fn programs() -> BTreeSet<String> {
    let sources =
        std::fs::read_dir(source_dir().join("tests/c")).expect("a directory").flatten().map(|entry| entry.path());
    let sources = sources.filter(|path| path.extension().is_some_and(|its| its == "c"));
    sources.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect()
}

#[test]
fn of_addresses_and_undefined_behaviour_find_nothing_in_c_programs() {
    ADDRESSES.run_all();
}

#[test]
fn of_threads_find_nothing_in_c_programs() {
    THREADS.run_all();
}

#[test]
fn of_threads_find_races_in_segments_and_no_others() {
    if !is_here("thread") {
        return;
    }
    let program = compiled("debugged", "thread", None);
    let setup = Setup { ranks: 1, pool_pages: 4, ..SETUP };
    let run = |args: &[&str]| run_with(&program, args, setup, &[(THREADS.variable, THREADS.options)]);
    let ended = run(&[]);
    assert!(!ended.expect(0).stderr.contains("WARNING"), "{ended}");
    let ended = run(&["race"]);
    assert!(ended.stderr.contains("WARNING: ThreadSanitizer: data race"), "{ended}");
}

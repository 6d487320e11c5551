//! Compiles clients of GASNet against the stand-in headers, and runs them.

use super::compile::{library, source_dir};
use super::run::{Setup, conduit, run, say_not_run, some_of};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A compiler and its language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
    GccC99,
    GccCxx17,
    ClangC99,
    ClangCxx17,
}

/// The thread mode of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Seq,
    Parsync,
    Par,
}

impl Mode {
    /// The macro of the mode.
    pub fn define(self) -> &'static str {
        match self {
            Mode::Seq => "-DGASNET_SEQ",
            Mode::Parsync => "-DGASNET_PARSYNC",
            Mode::Par => "-DGASNET_PAR",
        }
    }
}

impl Compiler {
    fn command(self) -> Command {
        let (program, options): (_, &[&str]) = match self {
            Compiler::GccC99 => ("gcc", &["-std=c99"]),
            Compiler::GccCxx17 => ("g++", &["-x", "c++", "-std=c++17"]),
            Compiler::ClangC99 => ("clang", &["-std=c99"]),
            Compiler::ClangCxx17 => ("clang++", &["-x", "c++", "-std=c++17"]),
        };
        let mut command = Command::new(program);
        command.args(options).args(["-Wall", "-Wextra", "-Werror", "-D_DEFAULT_SOURCE"]);
        command
    }

    /// The command with the headers of GASNet-1.
    fn command_for_1(self) -> Command {
        self.command_with(&["gasnet-compat", ""])
    }

    /// The command with the headers of GASNet-EX.
    fn command_for_ex(self) -> Command {
        self.command_with(&["gasnet-ex", "gasnet-compat", ""])
    }

    fn command_with(self, headers: &[&str]) -> Command {
        let mut command = self.command();
        for dir in headers {
            command.arg("-I").arg(source_dir().join("include").join(dir));
        }
        command
    }

    /// Whether this machine has it. If not, prints loudly that the test is skipped.
    pub fn is_here(self) -> bool {
        let command = self.command();
        let is_here = Command::new(command.get_program()).arg("--version").output().is_ok();
        if !is_here {
            let name = command.get_program().to_string_lossy();
            say_not_run(&format!("{self:?}"), &format!("{name} is not installed; scripts/test installs it"));
        }
        is_here
    }

    /// Whether the compiler accepts a source, and its output.
    pub fn check(self, source: &Path, options: &[&str]) -> (bool, String) {
        is_taken(self.command_for_1(), source, options)
    }

    /// As [`Compiler::check`], for clients of GASNet-EX.
    pub fn check_ex(self, source: &Path, options: &[&str]) -> (bool, String) {
        is_taken(self.command_for_ex(), source, options)
    }
}

fn is_taken(mut command: Command, source: &Path, options: &[&str]) -> (bool, String) {
    let output = command.arg("-fsyntax-only").args(options).arg(source).output().expect("a compiler");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Compiles a program of `tests/gasnet/`, with options of its own.
pub fn program(name: &str, compiler: Compiler, mode: Mode, options: &[&str]) -> PathBuf {
    let source = source_dir().join("tests/gasnet").join(name).with_extension("c");
    build(compiler.command_for_1(), &source, &format!("gasnet-{name}-{compiler:?}-{mode:?}"), mode, options)
}

/// Compiles a program of `tests/c/` against the headers of GASNet-EX, with options of its own.
pub fn ex_program(name: &str, compiler: Compiler, mode: Mode, options: &[&str]) -> PathBuf {
    let source = source_dir().join("tests/c").join(name).with_extension("c");
    build(compiler.command_for_ex(), &source, &format!("{name}-{compiler:?}-{mode:?}"), mode, options)
}

/// Runs a program as C in two thread modes on these numbers of ranks, and as C++ on two ranks. Over shared memory it
/// also runs as compiled by another compiler. Over networks it need not: the called functions are the same.
pub fn in_all_ways(build: impl Fn(Compiler, Mode) -> PathBuf, ranks: &[u32], setup: impl Fn(u32) -> Setup) {
    let modes = [Mode::Seq, Mode::Par].map(|mode| build(Compiler::GccC99, mode));
    for (program, ranks) in some_of(modes.iter().flat_map(|program| ranks.iter().map(move |ranks| (program, *ranks)))) {
        run(program, &[], setup(ranks)).expect(0);
    }
    let others =
        [(Compiler::GccCxx17, Mode::Parsync), (Compiler::ClangC99, Mode::Par), (Compiler::ClangCxx17, Mode::Seq)];
    let others = if conduit() == "smp" { &others[..] } else { &others[..1] };
    for (compiler, mode) in others.iter().copied().filter(|(compiler, _)| compiler.is_here()) {
        run(&build(compiler, mode), &[], setup(2)).expect(0);
    }
}

fn build(mut command: Command, source: &Path, name: &str, mode: Mode, options: &[&str]) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{number}"));
    let shared = library("libvgasnet.so");
    let dir = shared.parent().expect("a library is in a directory");
    command.args([mode.define(), "-O1", "-g", "-pthread"]).args(options).arg(source).args(["-x", "none", "-o"]);
    command
        .arg(&program)
        .arg("-L")
        .arg(dir)
        .arg("-lvgasnet")
        .arg(format!("-Wl,--disable-new-dtags,-rpath,{}", dir.display()));
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    program
}

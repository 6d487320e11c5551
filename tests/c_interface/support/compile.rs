//! The C compilers, the header, and the library of the running test's build.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::tools::other_build;

/// The system's libraries needed by a static link: `rustc --print native-static-libs`.
pub const SYSTEM_LIBRARIES: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

/// The compilers for a build with AddressSanitizer, since its runtime is from rustc's LLVM.
const OF_ASAN: [&str; 2] = ["clang", "clang++"];

/// The language in which a source is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C99,
    Cxx11,
    Cxx17,
}

/// How a program gets the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linking {
    Shared,
    Static,
}

impl Language {
    fn command(self) -> Command {
        let (variable, default, options): (_, _, &[&str]) = match self {
            Language::C99 => ("CC", "cc", &["-std=c99", "-pedantic"]),
            Language::Cxx11 => ("CXX", "c++", &["-x", "c++", "-std=c++11", "-pedantic"]),
            Language::Cxx17 => ("CXX", "c++", &["-x", "c++", "-std=c++17"]),
        };
        let default = if cfg!(asan) { OF_ASAN[usize::from(variable == "CXX")] } else { default };
        let compiler = std::env::var_os(variable).unwrap_or_else(|| OsString::from(default));
        let mut command = Command::new(compiler);
        if cfg!(asan) {
            command.args(["-fsanitize=address", "-fno-sanitize-link-runtime"]);
        }
        command.args(options).args(["-Wall", "-Wextra", "-Werror", "-D_POSIX_C_SOURCE=200809L"]);
        command.arg("-I").arg(source_dir().join("include"));
        command
    }
}

/// The root of the source tree.
pub fn source_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The first C program in a document.
pub fn program_text(document: &str) -> String {
    let text = std::fs::read_to_string(source_dir().join(document)).expect("a text");
    let program = text.split("```c\n").nth(1).and_then(|rest| rest.split("```").next());
    program.expect("a program in C").to_owned()
}

/// The path of a library built for the running test. It is next to the test, or in the directory of a separate build.
pub fn library(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this program has a path");
    let dir = other_build().unwrap_or_else(|| test.parent().expect("a program is in a directory").to_owned());
    let path = dir.join(name);
    assert!(path.is_file(), "{} is missing; cargo builds it for integration tests, with this test", path.display());
    path
}

/// Compiles without linking.
pub fn check_source(source: &Path, language: Language) {
    run(language.command().args(["-fsyntax-only"]).arg(source));
}

/// Compiles a program of `tests/c/`.
pub fn program(name: &str, language: Language, linking: Linking) -> PathBuf {
    let source = source_dir().join("tests/c").join(name).with_extension("c");
    build(&source, language, linking)
}

/// Compiles a program.
pub fn build(source: &Path, language: Language, linking: Linking) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = source.file_stem().expect("a source has a name").to_string_lossy();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{language:?}-{linking:?}"));
    // Tests compile the same program at the same time, so it is renamed into place when complete.
    let unfinished = program.with_extension(NEXT.fetch_add(1, Ordering::Relaxed).to_string());
    let mut command = language.command();
    command.args(["-O1", "-g", "-pthread"]).arg(source);
    // The arguments after this one are no sources.
    command.args(["-x", "none", "-o"]).arg(&unfinished);
    match linking {
        Linking::Shared => {
            let shared = library("libvgasnet.so");
            let dir = shared.parent().expect("a library is in a directory");
            // The older kind of path has precedence over LD_LIBRARY_PATH, in which cargo names another directory, too.
            // The library there is from the last `cargo build`.
            let path = format!("-Wl,--disable-new-dtags,-rpath,{}", dir.display());
            command.arg("-L").arg(dir).args(["-lvgasnet", "-lm"]).arg(path);
        }
        Linking::Static => {
            command.arg(library("libvgasnet.a"));
            #[cfg(feature = "mpi")]
            command.args(vgasnet_mpi::LINK_FLAGS.split_whitespace());
            #[cfg(feature = "gasnet")]
            command.args(vgasnet_gasnet::LIBRARIES.split_whitespace());
            command.args(SYSTEM_LIBRARIES);
        }
    }
    command.args(runtime_of_asan());
    run(&mut command);
    std::fs::rename(&unfinished, &program).expect("a file of ours");
    program
}

/// Compiles a source of `tests/c/` with these options, without the library, into a file of this name.
pub fn without_library(source: &str, name: &str, options: &[&str]) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut command = Language::C99.command();
    command.args(["-O1", "-g"]).arg(source_dir().join("tests/c").join(source).with_extension("c"));
    // A program has the runtime for the objects it loads.
    if !options.contains(&"-shared") {
        command.args(runtime_of_asan());
    }
    run(command.args(options).arg("-ldl").arg("-o").arg(&file));
    file
}

/// The options to link rustc's runtime of AddressSanitizer into a program, in a build with it.
fn runtime_of_asan() -> Vec<String> {
    if !cfg!(asan) {
        return Vec::new();
    }
    let output = Command::new("rustc").args(["--print", "target-libdir"]).output().expect("rustc, as for this build");
    let dir = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let mut files = std::fs::read_dir(&dir).expect("a directory").flatten().map(|entry| entry.path());
    let runtime = files.find(|path| path.to_string_lossy().ends_with("_rt.asan.a")).expect("a runtime of rustc's");
    let whole = format!("-Wl,--whole-archive,{},--no-whole-archive,--export-dynamic", runtime.display());
    [&*whole, "-lpthread", "-lrt", "-lm", "-ldl", "-lresolv"].map(str::to_owned).into()
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}

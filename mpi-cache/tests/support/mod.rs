//! Compiles programs with the compilers of the MPI that the library was built for, and runs them with its launcher.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The compiler wrapper that the library was built with.
const MPICC: &str = env!("VGASNET_MPICC");

/// Tests whose programs spin as they wait take turns: there may be fewer processors than ranks.
static TURN: Mutex<()> = Mutex::new(());

static COPYING: Mutex<()> = Mutex::new(());

/// No program here takes a tenth of that.
const SECONDS_MAX: &str = "120";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    Fortran,
}

/// A program that has ended on all ranks.
#[derive(Debug)]
pub struct Ended {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status {:?}\nstdout:\n{}\nstderr:\n{}", self.status, self.stdout, self.stderr)
    }
}

impl Ended {
    /// It has gone through all that it tests.
    pub fn expect_done(&self) -> &Ended {
        assert!(self.status == Some(0) && self.stdout.contains("done"), "{self}");
        self
    }

    /// Nothing was told.
    pub fn expect_silence(&self) -> &Ended {
        assert!(!self.stderr.contains("vgasnet-mpi-cache"), "{self}");
        self
    }
}

/// The wrapper or launcher beside the C compiler, with the same ending.
fn beside(name: &str) -> String {
    let (before, after) = MPICC.rsplit_once("mpicc").unwrap_or(("", ""));
    format!("{before}{name}{after}")
}

/// Whether the MPI is not Open MPI, which has no counts of MPI 4.
pub fn others_than_openmpi() -> bool {
    let output = Command::new(beside("mpiexec")).arg("--version").output().expect("the launcher starts");
    !["Open MPI", "OpenRTE"].iter().any(|name| String::from_utf8_lossy(&output.stdout).contains(name))
}

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

fn scratch_dir() -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(beside("mpi-cache-").replace('/', "_"));
    std::fs::create_dir_all(&dir).expect("cargo's own directory");
    dir
}

/// The library by the name that it is installed by.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this program has a path");
    let built = test.parent().expect("a program is in a directory").join("libvgasnet_mpi_cache.so");
    let installed = scratch_dir().join("libvgasnet-mpi-cache.so");
    // Several tests may find at once that there is none yet.
    let _copying = COPYING.lock().unwrap_or_else(PoisonError::into_inner);
    if !installed.exists() || modified(&installed) < modified(&built) {
        let unfinished = installed.with_extension(std::process::id().to_string());
        std::fs::copy(&built, &unfinished).expect("cargo builds the library with this test");
        std::fs::rename(&unfinished, &installed).expect("a file of ours");
    }
    installed
}

fn modified(path: &Path) -> std::time::SystemTime {
    std::fs::metadata(path).and_then(|data| data.modified()).expect("a file has a time")
}

fn must(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// A program of `tests/programs/`, linked with the tool there.
#[derive(Debug)]
pub struct Program {
    name: String,
    path: PathBuf,
}

impl Program {
    /// Compiles it.
    pub fn compile(name: &str, language: Language) -> Program {
        Program { name: name.to_owned(), path: build(name, name, language, &[]) }
    }

    /// The same, linked with the library before MPI.
    pub fn linked(&self) -> Program {
        let library = library();
        let dir = library.parent().expect("it is in a directory").display().to_string();
        let flags = [
            format!("-L{dir}"),
            "-Wl,--no-as-needed".into(),
            "-lvgasnet-mpi-cache".into(),
            format!("-Wl,-rpath,{dir}"),
        ];
        let path = build(&self.name, &format!("{}-linked", self.name), Language::C, &flags);
        Program { name: self.name.clone(), path }
    }

    /// A path for files of this program's runs.
    pub fn scratch(&self, name: &str) -> PathBuf {
        scratch_dir().join(format!("{}-{name}", self.name))
    }

    /// A library that counts gets and goes on to the next definition.
    pub fn front_tool(&self) -> PathBuf {
        shared("front")
    }

    /// Runs it with the library preloaded.
    pub fn run(&self, ranks: u32, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        self.start(Some(library().display().to_string()), ranks, arguments, variables)
    }

    /// Runs it with this tool preloaded before the library.
    pub fn run_behind(&self, tool: &Path, ranks: u32, arguments: &[&str]) -> Ended {
        self.start(Some(format!("{}:{}", tool.display(), library().display())), ranks, arguments, &[])
    }

    /// Runs it as it is.
    pub fn run_without(&self, ranks: u32, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        self.start(None, ranks, arguments, variables)
    }

    fn start(&self, preload: Option<String>, ranks: u32, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut command = Command::new("timeout");
        command.args(["-k", "5", SECONDS_MAX]).arg(beside("mpiexec")).args(["-n", &ranks.to_string(), "env"]);
        command
            .args(variables.iter().filter(|(name, _)| name.len() > 1).map(|(name, value)| format!("{name}={value}")));
        command.args(preload.map(|libraries| format!("LD_PRELOAD={libraries}")));
        command.arg(&self.path).args(arguments);
        // For Open MPI as root, with fewer processors than ranks.
        command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
        command.envs([("OMPI_MCA_rmaps_base_oversubscribe", "1"), ("OMPI_MCA_mpi_yield_when_idle", "1")]);
        for name in ["VGASNET_MPI_CACHE", "VGASNET_MPI_CACHE_SIZE", "VGASNET_MPI_CACHE_STATS"] {
            command.env_remove(name);
        }
        let output = command.output().expect("timeout is everywhere");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ended { status: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// The file `name` of `tests/programs/` as a shared library.
fn shared(name: &str) -> PathBuf {
    let file = scratch_dir().join(format!("lib{name}.so"));
    let unfinished = scratch_dir().join(format!("lib{name}.{:?}", std::thread::current().id()));
    let mut command = Command::new(MPICC);
    command.args(["-shared", "-fPIC", "-O1", "-D_GNU_SOURCE"]).arg(programs().join(name).with_extension("c"));
    must(command.arg("-o").arg(&unfinished));
    std::fs::rename(&unfinished, &file).expect("a file of ours");
    file
}

fn build(source: &str, name: &str, language: Language, flags: &[String]) -> PathBuf {
    let dir = scratch_dir();
    let program = dir.join(name);
    let unfinished = dir.join(format!("{name}.{:?}", std::thread::current().id()));
    let (compiler, end) = match language {
        Language::C => (MPICC.to_owned(), "c"),
        Language::Fortran => (beside("mpif90"), "f90"),
    };
    let mut command = Command::new(compiler);
    command.args(["-O1", "-g"]).arg("-I").arg(programs());
    if language == Language::C {
        command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread"]);
    }
    command.arg(programs().join(source).with_extension(end)).args(flags);
    if language == Language::C {
        shared("tool");
        command.arg("-L").arg(&dir).arg("-ltool").arg(format!("-Wl,-rpath,{}", dir.display()));
    }
    must(command.arg("-o").arg(&unfinished));
    std::fs::rename(&unfinished, &program).expect("a file of ours");
    program
}

/// Runs a shell with the library.
pub fn run_shell_with_library() {
    let output = Command::new("sh").args(["-c", "echo fine"]).env("LD_PRELOAD", library()).output().expect("a shell");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "fine\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

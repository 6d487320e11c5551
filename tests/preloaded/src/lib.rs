//! Compiles MPI programs with the compilers of a library's MPI, and runs them with its launcher and the interposing
//! library, as users do.

use std::collections::BTreeSet;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Tests with spinning programs run one at a time: there may be fewer processors than ranks.
static TURN: Mutex<()> = Mutex::new(());

static COPYING: Mutex<()> = Mutex::new(());

/// No program takes a tenth of this time.
const SECONDS_MAX: &str = "120";

/// The common settings of the programs of a library's tests.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// The compiler wrapper with which the library was built.
    pub mpicc: &'static str,
    /// The directory with the sources of the programs.
    pub programs: &'static str,
    /// A directory for built files.
    pub scratch: &'static str,
    /// The library's file names: from cargo, and as installed.
    pub library: (&'static str, &'static str),
    /// Libraries that must be in the same directory.
    pub beside: &'static [&'static str],
    /// A source linked into all C programs as a library of its own, if any.
    pub tool: Option<&'static str>,
    /// Variables not inherited by programs.
    pub variables: &'static [&'static str],
}

/// The language of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C, by `mpicc`.
    C,
    /// Fortran, by `mpif90`.
    Fortran,
}

/// A program that has ended on all ranks.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status, unless a signal ended it.
    pub status: Option<i32>,
    /// Its output.
    pub stdout: String,
    /// Its error output.
    pub stderr: String,
    /// The beginning of the library's lines.
    name: &'static str,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status {:?}\nstdout:\n{}\nstderr:\n{}", self.status, self.stdout, self.stderr)
    }
}

impl Ended {
    /// It has passed all its checks.
    pub fn expect_done(&self) -> &Ended {
        assert!(self.status == Some(0) && self.stdout.contains("done"), "{self}");
        self
    }

    /// The library has printed nothing.
    pub fn expect_silence(&self) -> &Ended {
        assert!(!self.stderr.contains(self.name), "{self}");
        self
    }
}

fn must(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}

fn modified(path: &Path) -> std::time::SystemTime {
    let time = std::fs::metadata(path).and_then(|data| data.modified());
    time.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Whether a program needs two MPIs, one of them through a library.
fn has_two_mpis(program: &Path) -> bool {
    let output = Command::new("ldd").arg(program).output().expect("ldd is everywhere");
    let text = String::from_utf8_lossy(&output.stdout);
    text.contains("libmpich.so") && text.contains("libmpi.so")
}

impl Suite {
    /// The wrapper or launcher in the directory of the C compiler, with the same ending.
    pub fn mpi(&self, name: &str) -> String {
        let (before, after) = self.mpicc.rsplit_once("mpicc").unwrap_or(("", ""));
        format!("{before}{name}{after}")
    }

    /// Whether the MPI is not Open MPI. Open MPI lacks the large counts of MPI 4.
    pub fn is_of_others_than_openmpi(&self) -> bool {
        let output = Command::new(self.mpi("mpiexec")).arg("--version").output().expect("the launcher starts");
        !["Open MPI", "OpenRTE"].iter().any(|name| String::from_utf8_lossy(&output.stdout).contains(name))
    }

    fn scratch_dir(&self) -> PathBuf {
        let name = self.library.1.trim_start_matches("lib").trim_end_matches(".so");
        let dir = Path::new(self.scratch).join(self.mpi(&format!("{name}-")).replace('/', "_"));
        std::fs::create_dir_all(&dir).expect("cargo's own directory");
        dir
    }

    /// A file built by cargo, under its installed name.
    fn installed(&self, built: &str, name: &str) -> PathBuf {
        let test = std::env::current_exe().expect("this program has a path");
        let deps = test.parent().expect("a program is in a directory");
        let built = [deps.parent().expect("deps is in a directory").join(built), deps.join(built)]
            .into_iter()
            .filter(|path| path.exists())
            .max_by_key(|path| modified(path))
            .unwrap_or_else(|| panic!("{}: there is no {built}; build it before, for the same MPI", deps.display()));
        let installed = self.scratch_dir().join(name);
        // Several tests may find at the same time that it is missing.
        let _copying = COPYING.lock().unwrap_or_else(PoisonError::into_inner);
        if !installed.exists() || modified(&installed) < modified(&built) {
            let unfinished = installed.with_extension(std::process::id().to_string());
            std::fs::copy(&built, &unfinished).expect("a file that cargo has built");
            std::fs::rename(&unfinished, &installed).expect("a file of ours");
        }
        installed
    }

    /// The library under its installed name.
    pub fn library(&self) -> PathBuf {
        self.beside.iter().for_each(|beside| drop(self.installed(beside, beside)));
        // Programs linked with it look for its versioned name.
        self.installed(self.library.0, &format!("{}.0", self.library.1));
        self.installed(self.library.0, self.library.1)
    }

    /// The library's exports, except for names of ours, are the functions in the document's table row of the library. A
    /// variant for large counts or Fortran belongs to its function.
    pub fn expect_replaced_as_documented(&self, document: &str, ours: &[&str]) {
        let text = std::fs::read_to_string(document).unwrap_or_else(|error| panic!("{document}: {error}"));
        let (_, table) = text.split_once("| library | functions |\n").expect("the table");
        let row = table.lines().find(|line| line.starts_with(&format!("| `{}` |", self.library.1))).expect("a row");
        let named: BTreeSet<_> = row.split('`').skip(3).step_by(2).map(str::to_owned).collect();
        let output = Command::new("nm").args(["-D", "--defined-only"]).arg(self.library()).output().expect("nm");
        let symbols = String::from_utf8(output.stdout).expect("symbols are text");
        let symbols = symbols.lines().filter_map(|line| line.split_whitespace().next_back());
        let is_ours = |name: &&str| name.starts_with("vgasnet_") || ours.contains(name);
        let (second, first): (Vec<_>, Vec<_>) =
            symbols.filter(|name| !is_ours(name)).partition(|name| name.starts_with("PMPI"));
        let (of_c, of_fortran): (Vec<_>, Vec<_>) = first.into_iter().partition(|name| name.starts_with("MPI"));
        // Under both names of MPI's. Otherwise calls of a tool loaded before the library would bypass it.
        let of_second: BTreeSet<_> = second.iter().filter_map(|name| name.strip_prefix('P')).collect();
        assert_eq!(of_second, of_c.iter().copied().collect(), "{}", self.library.1);
        let of_c: BTreeSet<_> = of_c.iter().map(|name| name.strip_suffix("_c").unwrap_or(name).to_owned()).collect();
        assert_eq!(named, of_c, "{document}");
        let in_fortran: BTreeSet<_> = named.iter().map(|name| name.to_lowercase()).collect();
        for name in of_fortran {
            let of = name.trim_end_matches('_').trim_end_matches("_f08").trim_end_matches("_cptr");
            assert!(in_fortran.contains(of), "{name} belongs to no function in {document}");
        }
    }

    /// A library of another suite for the same MPI, built by cargo before.
    pub fn other_library(&self, built: &str) -> PathBuf {
        self.installed(built, built)
    }

    /// Compiles a program. `name` is its source without the extension.
    pub fn compile(&'static self, name: &str, language: Language) -> Program {
        Program { suite: self, name: name.to_owned(), path: self.build(name, name, language, &[]) }
    }

    /// The same with a library of a package of pkg-config for this MPI. If there is none, prints that the program does
    /// not run.
    pub fn compile_with(&'static self, name: &str, package: &str) -> Option<Program> {
        let built = self.flags_of(package).map(|flags| self.build(name, name, Language::C, &flags));
        let path =
            built.and_then(|path| if has_two_mpis(&path) { Err("it is of another MPI".into()) } else { Ok(path) });
        match path {
            Ok(path) => Some(Program { suite: self, name: name.to_owned(), path }),
            Err(why) => {
                self.say_not_run(name, &format!("{package}: {why}"));
                None
            }
        }
    }

    /// Prints that something does not run here, and why.
    pub fn say_not_run(&self, name: &str, why: &str) {
        let line = format!("NOT RUN: {name} by {}: {why}\n", self.mpicc);
        // Not by a macro, since the test harness captures the output of macros.
        let _told = std::io::stderr().write_all(line.as_bytes());
    }

    /// The compiler's options for a package. If there are several MPIs, Debian adds the MPI's name to the package's.
    fn flags_of(&self, package: &str) -> Result<Vec<String>, String> {
        let mpi = if self.is_of_others_than_openmpi() { "mpich" } else { "openmpi" };
        let library = format!("-l{package}");
        for name in [&format!("{package}-{mpi}"), package] {
            let output = Command::new("pkg-config").args(["--cflags", "--libs", name]).output();
            let output = output.map_err(|error| format!("pkg-config: {error}"))?;
            if output.status.success() {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                // The compiler wrapper adds MPI's own options.
                let is_its = |flag: &&str| flag.starts_with("-I") || flag.starts_with("-L") || *flag == library;
                return Ok(text.split_whitespace().filter(is_its).map(str::to_owned).collect());
            }
        }
        Err("pkg-config does not know it".to_owned())
    }

    /// An installed program without MPI.
    pub fn installed_program(&'static self, path: &str) -> Program {
        Program { suite: self, name: path.to_owned(), path: path.into() }
    }

    /// The source `name` as a shared library.
    pub fn shared(&self, name: &str) -> PathBuf {
        let file = self.scratch_dir().join(format!("lib{name}.so"));
        let unfinished = self.scratch_dir().join(format!("lib{name}.{:?}", std::thread::current().id()));
        let mut command = Command::new(self.mpicc);
        command.args(["-shared", "-fPIC", "-O1", "-D_GNU_SOURCE", "-I", self.programs]);
        command.arg(Path::new(self.programs).join(name).with_extension("c"));
        must(command.arg("-o").arg(&unfinished));
        std::fs::rename(&unfinished, &file).expect("a file of ours");
        file
    }

    fn build(&self, source: &str, name: &str, language: Language, flags: &[String]) -> PathBuf {
        let dir = self.scratch_dir();
        let program = dir.join(name);
        let unfinished = dir.join(format!("{name}.{:?}", std::thread::current().id()));
        let (compiler, end) = match language {
            Language::C => (self.mpicc.to_owned(), "c"),
            Language::Fortran => (self.mpi("mpif90"), "f90"),
        };
        let mut command = Command::new(compiler);
        command.args(["-O1", "-g"]).arg("-I").arg(self.programs);
        if language == Language::C {
            command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread"]);
        } else {
            // Modules of one compilation are unusable in another.
            let modules = dir.join(format!("modules-{name}-{:?}", std::thread::current().id()));
            std::fs::create_dir_all(&modules).expect("a directory of ours");
            command.arg("-J").arg(modules);
        }
        command.arg(Path::new(self.programs).join(source).with_extension(end)).args(flags);
        if let Some(tool) = self.tool.filter(|_| language == Language::C) {
            self.shared(tool);
            command.arg("-L").arg(&dir).arg(format!("-l{tool}")).arg(format!("-Wl,-rpath,{}", dir.display()));
        }
        must(command.arg("-o").arg(&unfinished));
        std::fs::rename(&unfinished, &program).expect("a file of ours");
        program
    }

    /// Runs a shell with the library.
    pub fn run_shell_with_library(&self) {
        let output =
            Command::new("sh").args(["-c", "echo fine"]).env("LD_PRELOAD", self.library()).output().expect("a shell");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "fine\n");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

/// A program of a suite.
#[derive(Debug)]
pub struct Program {
    suite: &'static Suite,
    name: String,
    path: PathBuf,
}

impl Program {
    /// The same, linked with the interposing library.
    pub fn linked(&self) -> Program {
        let library = self.suite.library();
        let dir = library.parent().expect("it is in a directory").display().to_string();
        let name = self.suite.library.1.trim_start_matches("lib").trim_end_matches(".so");
        let flags = [format!("-L{dir}"), "-Wl,--no-as-needed".into(), format!("-l{name}"), format!("-Wl,-rpath,{dir}")];
        let path = self.suite.build(&self.name, &format!("{}-linked", self.name), Language::C, &flags);
        Program { suite: self.suite, name: self.name.clone(), path }
    }

    /// A path for files of this program's runs.
    pub fn scratch(&self, name: &str) -> PathBuf {
        self.suite.scratch_dir().join(format!("{}-{name}", self.name))
    }

    /// Runs it with the library preloaded.
    pub fn run(&self, ranks: u32, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        self.start(Some(self.suite.library().display().to_string()), ranks, arguments, variables)
    }

    /// Runs it with this library preloaded before the suite's.
    pub fn run_behind(&self, before: &Path, ranks: u32, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        let libraries = format!("{}:{}", before.display(), self.suite.library().display());
        self.start(Some(libraries), ranks, arguments, variables)
    }

    /// Runs it with this library preloaded after the suite's.
    pub fn run_before(&self, behind: &Path, ranks: u32, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        let libraries = format!("{}:{}", self.suite.library().display(), behind.display());
        self.start(Some(libraries), ranks, arguments, variables)
    }

    /// Runs it with libraries preloaded before and after the suite's, each with colons between them. There may be none.
    pub fn run_between(
        &self,
        [before, behind]: [&str; 2],
        ranks: u32,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Ended {
        let own = self.suite.library().display().to_string();
        let all: Vec<&str> = [before, &own, behind].into_iter().filter(|part| !part.is_empty()).collect();
        self.start(Some(all.join(":")), ranks, arguments, variables)
    }

    /// Runs it with other libraries preloaded, with colons between them, and without the suite's.
    pub fn run_with_others(
        &self,
        libraries: &str,
        ranks: u32,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Ended {
        self.start(Some(libraries.to_owned()), ranks, arguments, variables)
    }

    /// Runs it unchanged.
    pub fn run_without(&self, ranks: u32, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        self.start(None, ranks, arguments, variables)
    }

    /// Runs it with the library preloaded, by this launcher with its options.
    pub fn run_by(&self, launcher: &[&str], ranks: u32, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        self.start_by(launcher, Some(self.suite.library().display().to_string()), ranks, arguments, variables)
    }

    fn start(&self, preload: Option<String>, ranks: u32, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        self.start_by(&[&self.suite.mpi("mpiexec")], preload, ranks, arguments, variables)
    }

    fn start_by(
        &self,
        launcher: &[&str],
        preload: Option<String>,
        ranks: u32,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Ended {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut command = Command::new("timeout");
        command.args(["-k", "5", SECONDS_MAX]).args(launcher).args(["-n", &ranks.to_string(), "env"]);
        command
            .args(variables.iter().filter(|(name, _)| name.len() > 1).map(|(name, value)| format!("{name}={value}")));
        command.args(preload.map(|libraries| format!("LD_PRELOAD={libraries}")));
        command.arg(&self.path).args(arguments);
        // For Open MPI as root, with fewer processors than ranks.
        command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
        command.envs([("OMPI_MCA_rmaps_base_oversubscribe", "1"), ("OMPI_MCA_mpi_yield_when_idle", "1")]);
        for name in self.suite.variables {
            command.env_remove(name);
        }
        let output = command.output().expect("timeout is everywhere");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let name = self.suite.library.1.trim_start_matches("lib").trim_end_matches(".so");
        Ended { status: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr), name }
    }
}

//! C programs compiled and run by the bench, over vgasnet and over MPI.

pub mod mpi;

use mpi::Mpi;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use vgasnet_hosts::{ADDRESSES, Hosts, OVER_THE_CABLE};

/// A temporary directory, removed when this is dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Result<Folder, String> {
        Folder::in_dir(&std::env::temp_dir())
    }

    pub fn in_dir(dir: &Path) -> Result<Folder, String> {
        let name = dir.join("vgasnet-bench-XXXXXX");
        nix::unistd::mkdtemp(&name).map(Folder).map_err(|error| format!("{}: {error}", name.display()))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If this fails, the directory is left to the cleaner of temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Compiles one source with additional arguments. Returns the program.
pub fn compile(cc: &str, source: &Path, args: &[String], folder: &Folder, name: &str) -> Result<PathBuf, String> {
    let program = folder.path().join(name);
    let mut command = words(cc);
    command.args(["-std=c99", "-O2", "-D_POSIX_C_SOURCE=200809L"]).arg(source).arg("-o").arg(&program).args(args);
    said(command.arg("-lm"))?;
    Ok(program)
}

/// The directory of this program.
pub fn own_dir() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))?;
    Ok(own.parent().unwrap_or(Path::new("/")).to_owned())
}

/// The headers of the installation of this program, given its directory; else of the sources.
pub fn include_dir(dir: &Path) -> PathBuf {
    let installed = dir.join("../include");
    if installed.join("vgasnet.h").is_file() {
        return installed;
    }
    sources(dir).map_or(installed, |sources| sources.join("include"))
}

/// vgasnet's source tree, if it contains this directory or the working directory.
pub fn sources(dir: &Path) -> Option<PathBuf> {
    let is_it = |dir: &&Path| dir.join("include/vgasnet.h").is_file() && dir.join("Cargo.toml").is_file();
    let above = |dir: &Path| dir.ancestors().find(is_it).map(Path::to_owned);
    above(dir).or_else(|| above(&std::env::current_dir().ok()?))
}

/// Compiler arguments for the library. It is next to this program or in ../lib.
pub fn with_vgasnet(include: &Path, dir: &Path) -> [String; 4] {
    let libraries = if dir.join("libvgasnet.so").is_file() { dir.to_owned() } else { dir.join("../lib") };
    let libraries = libraries.display();
    [
        format!("-I{}", include.display()),
        format!("-L{libraries}"),
        "-lvgasnet".to_owned(),
        format!("-Wl,--disable-new-dtags,-rpath,{libraries}"),
    ]
}

/// The launcher of vgasnet's jobs over MPI on two hosts, without a program.
pub fn two_hosts(hosts: &Hosts, mpi: &Mpi, vgasnetrun: &Path) -> Command {
    let mut command = words(&hosts.enter());
    command.env("VGASNET_MPIEXEC", mpi.launcher_on(hosts)).envs(OVER_THE_CABLE);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.arg(vgasnetrun).args(["--conduit", "mpi", "--hosts", &ADDRESSES.join(",")]);
    command
}

/// A command of several words.
pub fn words(text: &str) -> Command {
    let mut words = text.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

/// Runs a command to its end. Returns its stdout, or the error on one line.
pub fn said(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing").trim().to_owned();
    Err(format!("{name}: {}: {line}", output.status))
}

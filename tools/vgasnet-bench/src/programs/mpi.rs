//! An installed MPI: its compiler, its launcher, and a preloaded library.

use super::{own_dir, said, words};
use crate::options::MpiOptions;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use vgasnet_hosts::{Hosts, names_for};

/// The network between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    Tcp,
    SharedMemory,
}

/// A library preloaded before MPI.
pub struct Preload {
    /// Its file names: installed, and as built by cargo.
    names: [&'static str; 2],
    /// The option for its path.
    option: &'static str,
    /// An MPI function it defines. Without an MPI, cargo builds the library without any.
    function: &'static str,
}

/// The library that caches gets.
const CACHE: Preload = Preload {
    names: ["libvgasnet-mpi-cache.so", "libvgasnet_mpi_cache.so"],
    option: "--mpi-cache",
    function: "MPI_Get",
};

/// The library that serves files.
pub const FILES: Preload = Preload {
    names: ["libvgasnet-mpi-io.so", "libvgasnet_mpi_io.so"],
    option: "--mpi-io-library",
    function: "MPI_File_open",
};

pub struct Mpi {
    pub mpicc: String,
    mpiexec: String,
    is_hydra: bool,
    /// The library, or the reason for having none.
    pub preload: Result<PathBuf, String>,
}

impl Mpi {
    pub fn find(options: &MpiOptions) -> Result<Mpi, String> {
        Mpi::with(&options.mpicc, &CACHE, options.mpi_cache.as_deref())
    }

    /// An MPI and a preloaded library, with an optional path for the library.
    pub fn with(mpicc: &str, preload: &Preload, named: Option<&Path>) -> Result<Mpi, String> {
        let mpicc = mpicc.to_owned();
        let (before, after) =
            mpicc.rsplit_once("mpicc").ok_or_else(|| format!("--mpicc {mpicc}: no mpicc is in it"))?;
        let mpiexec = format!("{before}mpiexec{after}");
        said(words(&mpicc).arg("-show"))?;
        let version = said(words(&mpiexec).arg("--version"))?;
        let preload = preload.find(named);
        Ok(Mpi { mpicc, mpiexec, is_hydra: version.to_lowercase().contains("hydra"), preload })
    }

    /// The launcher with its options for several hosts.
    pub fn launcher_on(&self, hosts: &Hosts) -> String {
        hosts.launcher(&self.mpiexec, self.is_hydra)
    }

    /// Runs a program to its end, on two hosts if there are any. Returns its output. With a mode and an amount of
    /// memory, its gets are cached.
    pub fn run(
        &self,
        hosts: Option<&Hosts>,
        network: Network,
        ranks: u32,
        program: &Path,
        args: &[String],
        cached: Option<(&str, u64)>,
    ) -> Result<String, String> {
        let vars = cached
            .map(|(mode, bytes)| [format!("VGASNET_MPI_CACHE={mode}"), format!("VGASNET_MPI_CACHE_SIZE={bytes}")]);
        said(self.command(hosts, network, ranks, vars.as_ref().map(<[_; 2]>::as_slice)).arg(program).args(args))
    }

    /// The command that runs a program, without the program. With variables, the ranks get these and the preloaded
    /// library.
    pub fn command(&self, hosts: Option<&Hosts>, network: Network, ranks: u32, vars: Option<&[String]>) -> Command {
        let launcher = hosts.map_or_else(|| self.mpiexec.clone(), |hosts| self.launcher_on(hosts));
        let mut command = words(&match hosts {
            Some(hosts) => format!("{} {launcher} {}", hosts.enter(), names_for(self.is_hydra, ranks)),
            None => launcher,
        });
        let device = if hosts.is_some() { "v0" } else { "lo" };
        if network == Network::Tcp {
            command.env("UCX_TLS", "tcp,self").env("UCX_NET_DEVICES", device);
        }
        if !self.is_hydra {
            let layers = if network == Network::Tcp { "tcp,self" } else { "vader,self" };
            command.args(["--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", layers]);
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        }
        command.args(["-n", &ranks.to_string()]);
        if let (Some(vars), Ok(library)) = (vars, &self.preload) {
            // Only in the ranks: the launcher does not need the library.
            command.arg("env").arg(format!("LD_PRELOAD={}", library.display())).args(vars);
        }
        command
    }
}

/// A program over MPI, or the reason for having none.
pub struct OverMpi(pub Result<(Mpi, PathBuf), String>);

impl OverMpi {
    /// Finds an MPI and compiles the program.
    pub fn new(
        is_omitted: bool,
        find: impl FnOnce() -> Result<Mpi, String>,
        compile: impl FnOnce(&Mpi) -> Result<PathBuf, String>,
    ) -> OverMpi {
        let mpi = if is_omitted { Err("--no-mpi".to_owned()) } else { find() };
        OverMpi(mpi.and_then(|mpi| compile(&mpi).map(|program| (mpi, program))))
    }

    pub fn get(&self) -> Result<&(Mpi, PathBuf), String> {
        self.0.as_ref().map_err(Clone::clone)
    }

    pub fn is_preloaded(&self) -> bool {
        self.not_run().is_none()
    }

    /// The reason for missing programs, with or without the preloaded library.
    pub fn not_run(&self) -> Option<String> {
        self.get().and_then(|(mpi, _)| mpi.preload.as_ref().map_err(Clone::clone)).err()
    }
}

impl Preload {
    pub fn name(&self) -> &'static str {
        self.names[0]
    }

    /// The library at the given path, or next to this program, or in ../lib.
    fn find(&self, named: Option<&Path>) -> Result<PathBuf, String> {
        if let Some(path) = named {
            let path = path.canonicalize().map_err(|error| format!("{} {}: {error}", self.option, path.display()))?;
            return self.check(&path).map(|()| path);
        }
        let dir = own_dir()?;
        let dirs = [dir.clone(), dir.join("../lib")];
        let mut places = dirs.iter().flat_map(|dir| self.names.map(|name| dir.join(name)));
        let found = places.find(|path| path.is_file());
        let found =
            found.ok_or_else(|| format!("{} is not beside this program; give {}", self.names[0], self.option))?;
        self.check(&found)?;
        Ok(found)
    }

    /// Checks that the library defines the MPI function.
    fn check(&self, library: &Path) -> Result<(), String> {
        let bytes = std::fs::read(library).map_err(|error| format!("{}: {error}", library.display()))?;
        let name = format!("\0{}\0", self.function);
        if bytes.windows(name.len()).any(|window| window == name.as_bytes()) {
            return Ok(());
        }
        let (path, function) = (library.display(), self.function);
        Err(format!("{path} was built without MPI and has no {function}; build it with the feature link"))
    }
}

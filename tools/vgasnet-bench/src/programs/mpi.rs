//! An MPI that is there: its compiler, its launcher, and the library that caches its gets.

use super::{own_dir, said, words};
use crate::options::MpiOptions;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use vgasnet_hosts::{Hosts, names_for};

/// How ranks reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    Tcp,
    SharedMemory,
}

impl Network {
    pub fn name(self) -> &'static str {
        match self {
            Network::Tcp => "TCP",
            Network::SharedMemory => "shared memory",
        }
    }
}

/// A library that stands before MPI.
pub struct Preload {
    /// Its names: as it is installed, and as cargo builds it.
    names: [&'static str; 2],
    /// The option that says where it is.
    option: &'static str,
    /// A function of MPI that it has. Cargo builds a library without any where there is no MPI.
    function: &'static str,
}

/// The one that caches gets.
const CACHE: Preload = Preload {
    names: ["libvgasnet-mpi-cache.so", "libvgasnet_mpi_cache.so"],
    option: "--mpi-cache",
    function: "MPI_Get",
};

/// The one that serves files.
pub const FILES: Preload = Preload {
    names: ["libvgasnet-mpi-io.so", "libvgasnet_mpi_io.so"],
    option: "--mpi-io-library",
    function: "MPI_File_open",
};

pub struct Mpi {
    pub mpicc: String,
    mpiexec: String,
    is_hydra: bool,
    /// The library, or why there is none.
    pub preload: Result<PathBuf, String>,
}

impl Mpi {
    pub fn find(options: &MpiOptions) -> Result<Mpi, String> {
        Mpi::with(&options.mpicc, &CACHE, options.mpi_cache.as_deref())
    }

    /// An MPI and a library before it, which may be named.
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

    /// The launcher with what it needs to go from host to host.
    pub fn launcher_on(&self, hosts: &Hosts) -> String {
        hosts.launcher(&self.mpiexec, self.is_hydra)
    }

    /// Runs a program to its end, on two hosts where there are these; what it says. With a mode and so much memory its gets are cached.
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

    /// What runs a program, which is to be added. With variables its ranks have these, and the library before MPI.
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
            // In the ranks alone: the launcher has no use for the library.
            command.arg("env").arg(format!("LD_PRELOAD={}", library.display())).args(vars);
        }
        command
    }
}

impl Preload {
    pub fn name(&self) -> &'static str {
        self.names[0]
    }

    /// The library that is named, or lies beside this program, or in the directory of libraries beside that of this program.
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

    /// Whether the library has functions of MPI.
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

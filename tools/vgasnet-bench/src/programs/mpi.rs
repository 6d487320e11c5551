//! An MPI that is there: its compiler, its launcher, and the library that caches its gets.

use super::hosts::Hosts;
use super::{said, words};
use crate::options::MpiOptions;
use serde::Serialize;
use std::path::{Path, PathBuf};

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

/// Names of the library: as cargo builds it, and as it is installed.
const LIBRARIES: [&str; 2] = ["libvgasnet-mpi-cache.so", "libvgasnet_mpi_cache.so"];

pub struct Mpi {
    pub mpicc: String,
    mpiexec: String,
    is_hydra: bool,
    /// The library, or why there is none.
    pub preload: Result<PathBuf, String>,
}

impl Mpi {
    pub fn find(options: &MpiOptions) -> Result<Mpi, String> {
        let mpicc = options.mpicc.clone();
        let (before, after) =
            mpicc.rsplit_once("mpicc").ok_or_else(|| format!("--mpicc {mpicc}: no mpicc is in it"))?;
        let mpiexec = format!("{before}mpiexec{after}");
        said(words(&mpicc).arg("-show"))?;
        let version = said(words(&mpiexec).arg("--version"))?;
        let preload = library(options.mpi_cache.as_deref());
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
        let launcher = hosts.map_or_else(|| self.mpiexec.clone(), |hosts| self.launcher_on(hosts));
        let mut command = words(&match hosts {
            Some(hosts) => format!("{} {launcher} {}", hosts.enter(), hosts.names_for(self.is_hydra, ranks)),
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
        if let (Some((mode, bytes)), Ok(library)) = (cached, &self.preload) {
            // In the ranks alone: the launcher has no use for the library.
            command.arg("env").arg(format!("LD_PRELOAD={}", library.display()));
            command.arg(format!("VGASNET_MPI_CACHE={mode}")).arg(format!("VGASNET_MPI_CACHE_SIZE={bytes}"));
        }
        said(command.arg(program).args(args))
    }
}

/// The library that is named, or lies beside this program, or in the directory of libraries beside that of this program.
fn library(named: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(path) = named {
        return path.canonicalize().map_err(|error| format!("--mpi-cache {}: {error}", path.display()));
    }
    let own = std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))?;
    let dir = own.parent().unwrap_or(Path::new("."));
    let dirs = [dir.to_owned(), dir.join("../lib")];
    let mut places = dirs.iter().flat_map(|dir| LIBRARIES.map(|name| dir.join(name)));
    let found = places.find(|path| path.is_file());
    found.ok_or_else(|| format!("{} is not beside this program; give --mpi-cache", LIBRARIES[0]))
}

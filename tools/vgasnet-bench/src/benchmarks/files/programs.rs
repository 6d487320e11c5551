//! The program of the patterns for each way, and its runs.

use super::{Case, Files, Way};
use crate::prelude::*;
use crate::programs::mpi::{FILES, Mpi, Network, OverMpi};
use crate::programs::{Folder, compile, include_dir, own_dir, said, with_vgasnet};
use std::process::Command;
use vgasnet_measuring::cgroup::{self, MemoryLimit};

/// Common sources of the patterns, and a source for each way.
const SOURCES: [(&str, &str); 8] = [
    ("main.c", include_str!("main.c")),
    ("sliding.c", include_str!("sliding.c")),
    ("btio.c", include_str!("btio.c")),
    ("flash.c", include_str!("flash.c")),
    ("plain.c", include_str!("plain.c")),
    ("io.h", include_str!("io.h")),
    ("pattern.h", include_str!("pattern.h")),
    ("ranks.h", include_str!("ranks.h")),
];
const BY_VGASNET: (&str, &str) = ("by_vgasnet.c", include_str!("by_vgasnet.c"));
const BY_LOCKS: (&str, &str) = ("by_locks.c", include_str!("by_locks.c"));
const BY_MPI: (&str, &str) = ("by_mpi.c", include_str!("by_mpi.c"));

/// The smallest pool, for ranks that do not use it.
const NO_POOL: [(&str, &str); 2] = [("VGASNET_PAGE_SIZE", "64K"), ("VGASNET_POOL_SIZE", "1M")];

/// Times printed by rank 0: from open to close on the slowest rank.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Times {
    pub written_seconds: f64,
    pub read_seconds: f64,
}

pub struct Programs<'a> {
    options: &'a Files,
    by_vgasnet: PathBuf,
    by_locks: PathBuf,
    pub by_mpi: OverMpi,
    vgasnetrun: PathBuf,
    storage_dir: PathBuf,
    files: Folder,
    _sources: Folder,
}

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    pub way: Way,
    pub ends_with_sync: bool,
    pub page_bytes: u64,
    pub pool_bytes: u64,
    /// Additional environment variables of vgasnet's ranks.
    pub vars: &'a [(&'a str, &'a str)],
    pub limit: Option<&'a Path>,
}

impl<'a> Programs<'a> {
    pub fn new(options: &'a Files) -> Result<Programs<'a>, String> {
        let dir = own_dir()?;
        let sources = Folder::new()?;
        for (name, text) in SOURCES.iter().chain([&BY_VGASNET, &BY_LOCKS, &BY_MPI]) {
            let path = sources.path().join(name);
            std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let linked = with_vgasnet(&include_dir(&dir), &dir);
        let by_vgasnet = build("cc", BY_VGASNET, &linked, &sources)?;
        let by_locks = build("cc", BY_LOCKS, &linked, &sources)?;
        let find = || Mpi::with(&options.by_mpi.mpicc, &FILES, options.by_mpi.mpi_io_library.as_deref());
        let by_mpi = OverMpi::new(options.by_mpi.no_mpi, find, |mpi| build(&mpi.mpicc, BY_MPI, &[], &sources));
        let storage_dir = storage_dir(options)?;
        let files = Folder::in_dir(&storage_dir)?;
        let vgasnetrun = dir.join("vgasnetrun");
        let mut programs =
            Programs { options, by_vgasnet, by_locks, by_mpi, vgasnetrun, storage_dir, files, _sources: sources };
        let served = programs.is_served();
        if let (Ok((mpi, _)), Err(why)) = (&mut programs.by_mpi.0, served) {
            mpi.preload = Err(why);
        }
        Ok(programs)
    }

    /// Checks that the library preloaded before MPI serves files itself: only then does vgasnet write statistics.
    fn is_served(&self) -> Result<(), String> {
        let (mpi, program) = self.by_mpi.get()?;
        mpi.preload.as_ref().map_err(Clone::clone)?;
        let stats = self.files.path().join("stats");
        let mut vars = self.preloaded_vars();
        vars.push(format!("VGASNET_STATS_FILE={}", stats.display()));
        let mut command = mpi.command(None, Network::SharedMemory, 1, Some(&vars));
        let path = self.files.path().join("file");
        command.arg(program).args(["rows", &path.display().to_string(), "65536", "1024", "1", "0"]);
        said(&mut command)?;
        std::fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let lines = || format!("{} serves no files of {}", FILES.name(), mpi.mpicc);
        std::fs::remove_file(&stats).map_err(|_| lines())
    }

    /// Environment variables of the ranks for the preloaded library.
    fn preloaded_vars(&self) -> Vec<String> {
        let mut vars = vec![format!("VGASNET_MPI_FILES={}/*", self.files.path().display())];
        vars.push(format!("VGASNET_STORAGE_DIR={}", self.storage_dir.display()));
        vars
    }

    /// The directory of the files.
    pub fn dir(&self) -> &Path {
        self.files.path()
    }

    /// The available ways for a case.
    pub fn ways(&self, case: &Case) -> Vec<Way> {
        let has = |way: &Way| match way {
            Way::MpiIo | Way::MpiIoAtomic => self.by_mpi.0.is_ok(),
            Way::MpiIoPreloaded => self.by_mpi.is_preloaded(),
            Way::Vgasnet | Way::Locks => true,
        };
        Way::ALL.into_iter().filter(|way| way.does(case.pattern) && has(way)).collect()
    }

    /// Runs a pattern once on new files and checks them. Returns the times and the checksum.
    pub fn run(&self, case: &Case, order: &Order<'_>) -> Result<(Times, String), String> {
        let path = self.files.path().join("file");
        case.prepare(&path)?;
        let mut command = self.command(case.ranks, order)?;
        command.args([name(case.pattern), path.display().to_string()]);
        let modes = [order.ends_with_sync, order.way != Way::MpiIo].map(u64::from);
        command.args([case.size, case.unit].iter().chain(&modes).map(ToString::to_string));
        let said = match order.limit {
            Some(limit) => said(&mut cgroup::within(limit, &command))?,
            None => said(&mut command)?,
        };
        let times = serde_json::from_str(said.trim()).map_err(|error| format!("it said {:?}: {error}", said.trim()))?;
        Ok((times, case.check_and_remove(&path)?))
    }

    /// The program for a way, with its launcher.
    fn command(&self, ranks: u32, order: &Order<'_>) -> Result<Command, String> {
        let sizes = [("VGASNET_PAGE_SIZE", order.page_bytes), ("VGASNET_POOL_SIZE", order.pool_bytes)];
        let sizes = sizes.map(|(name, bytes)| (name, format_size(bytes)));
        let mut by_ranks = Command::new(&self.vgasnetrun);
        by_ranks.args(["-n", &ranks.to_string()]).env("VGASNET_STORAGE_DIR", &self.storage_dir);
        let by_mpi = |vars: Option<&[String]>| {
            let (mpi, program) = self.by_mpi.get()?;
            let mut command = mpi.command(None, Network::SharedMemory, ranks, vars);
            command.arg(program);
            Ok(command)
        };
        match order.way {
            Way::Vgasnet => {
                by_ranks.envs(sizes).envs(order.vars.iter().copied()).arg(&self.by_vgasnet);
                Ok(by_ranks)
            }
            Way::Locks => {
                by_ranks.envs(NO_POOL).arg(&self.by_locks);
                Ok(by_ranks)
            }
            Way::MpiIo | Way::MpiIoAtomic => by_mpi(None),
            Way::MpiIoPreloaded => {
                let mut vars = self.preloaded_vars();
                vars.extend(sizes.iter().map(|(name, value)| format!("{name}={value}")));
                by_mpi(Some(&vars))
            }
        }
    }

    /// A limit on the memory of all ranks of a case together.
    pub fn limit(&self, case: &Case) -> Result<MemoryLimit, String> {
        MemoryLimit::new(self.limit_bytes(case))
    }

    pub fn limit_bytes(&self, case: &Case) -> u64 {
        u64::from(case.ranks) * (self.options.pool + self.options.besides)
    }
}

fn build(cc: &str, by: (&str, &str), linked: &[String], sources: &Folder) -> Result<PathBuf, String> {
    let path = |name: &str| sources.path().join(name);
    let others = SOURCES.iter().skip(1).filter(|(name, _)| name.ends_with(".c")).map(|(name, _)| path(name));
    let others = others.chain([path(by.0)]).map(|path| path.display().to_string());
    let args: Vec<String> = others.chain(linked.iter().cloned()).collect();
    compile(cc, &path(SOURCES[0].0), &args, sources, by.0.trim_end_matches(".c"))
}

/// The directory named by an option or the environment.
fn storage_dir(options: &Files) -> Result<PathBuf, String> {
    let named = options.storage_dir.clone().or_else(|| std::env::var_os("VGASNET_STORAGE_DIR").map(PathBuf::from));
    let temporary = || std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
    let dir = named.unwrap_or_else(temporary);
    dir.canonicalize().map_err(|error| format!("--storage-dir {}: {error}", dir.display()))
}

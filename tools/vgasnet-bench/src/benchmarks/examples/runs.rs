//! An example in all its ways: over vgasnet with different memory, and over MPI with and without a library that caches
//! gets.

use super::{ProgramOptions, Way};
use crate::prelude::*;
use crate::programs::mpi::{Mpi, Network, OverMpi};
use crate::programs::{Folder, compile, own_dir, said, sources, two_hosts, with_vgasnet};
use std::process::Command;
use vgasnet_hosts::Hosts;

/// Pages of a pool in addition to the own data, which may be in two pieces and start and end within pages.
const PAGES_EXTRA: u64 = 2;

/// Minimum number of pages in a pool.
const PAGES_MIN: u64 = 4;

/// Output of an example in JSON.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Said {
    pub checksum: String,
    pub seconds: f64,
    /// Bytes of a rank, and distinct bytes it reads from other ranks.
    pub own_bytes: u64,
    pub remote_bytes: u64,
    pub gets: u64,
    pub bytes: u64,
    pub hits: u64,
}

pub struct Examples<'a> {
    options: &'a ProgramOptions,
    args: Vec<String>,
    program: PathBuf,
    vgasnetrun: PathBuf,
    pub mpi: OverMpi,
    hosts: Option<Hosts>,
    /// Output of a run with memory for everything.
    pub first: Said,
    _folder: Folder,
}

impl<'a> Examples<'a> {
    /// Compiles the example and runs it once.
    pub fn new(options: &'a ProgramOptions, name: &str, args: &[String]) -> Result<Examples<'a>, String> {
        let dir = own_dir()?;
        let source = source(options, &dir, name)?;
        let folder = Folder::new()?;
        let include = source.join("../include").canonicalize().unwrap_or_else(|_| dir.join("../include"));
        let file = source.join(name).with_extension("c");
        let program = compile("cc", &file, &with_vgasnet(&include, &dir), &folder, name)?;
        let with_mpi =
            |mpi: &Mpi| compile(&mpi.mpicc, &file, &["-DUSE_MPI".to_owned()], &folder, &format!("{name}-mpi"));
        let mpi = OverMpi::new(options.no_mpi, || Mpi::find(&options.mpi), with_mpi);
        let hosts = || Hosts::new(&format!("bench-{}", std::process::id()), folder.path());
        let hosts = options.two_hosts.then(hosts).transpose()?;
        let args = args.iter().map(String::as_str).chain(["--no-check", "--json"]).map(str::to_owned).collect();
        let (vgasnetrun, first) = (dir.join("vgasnetrun"), Said::default());
        let mut examples = Examples { options, args, program, vgasnetrun, mpi, hosts, first, _folder: folder };
        examples.first = examples.by_vgasnet(1 << 30, None, &[])?;
        Ok(examples)
    }

    /// Whether this way can be measured.
    pub fn has(&self, way: Way) -> bool {
        match way {
            Way::Mpi => self.mpi.0.is_ok(),
            Way::MpiCached => self.mpi.is_preloaded(),
            _ => true,
        }
    }

    /// Runs the example to its end with this memory for remote bytes.
    pub fn run(&self, way: Way, memory_bytes: u64, cached_args: &[String], mpi_mode: &str) -> Result<Said, String> {
        let cached: Vec<String> = ["--cached".to_owned()].into_iter().chain(cached_args.iter().cloned()).collect();
        let own = self.own_bytes();
        match way {
            Way::Uncached => self.by_vgasnet(own, None, &[]),
            Way::DirectMapped => self.by_vgasnet(own, None, &["--direct-mapped".to_owned(), memory_bytes.to_string()]),
            Way::PageCache => self.by_vgasnet(own + memory_bytes, None, &[]),
            Way::Cached => self.by_vgasnet(own, Some(memory_bytes), &cached),
            Way::Both => {
                let pages_bytes = self.pages_bytes_of(memory_bytes);
                self.by_vgasnet(own + pages_bytes, Some(memory_bytes - pages_bytes), &cached)
            }
            Way::Mpi => self.by_mpi(None),
            Way::MpiCached => self.by_mpi(Some((mpi_mode, self.mpi_bytes(memory_bytes)))),
        }
    }

    /// The part of the memory for whole pages. As by default, an eighth is for the cache of gets.
    fn pages_bytes_of(&self, memory_bytes: u64) -> u64 {
        let page = self.options.page;
        let pages = (memory_bytes - memory_bytes / 8 + page / 2) / page;
        let most = (memory_bytes - Way::Cached.memory_bytes_min()) / page;
        pages.min(most) * page
    }

    /// Memory for the same fraction of the remote bytes, with the number of ranks over MPI.
    fn mpi_bytes(&self, memory_bytes: u64) -> u64 {
        let others = |ranks: u32| f64::from(ranks - 1) / f64::from(ranks);
        (memory_bytes as f64 * others(self.options.mpi_ranks) / others(self.options.ranks)) as u64
    }

    /// A pool for the own data, with hardly any room for other ranks' pages.
    fn own_bytes(&self) -> u64 {
        let pages = self.first.own_bytes.div_ceil(self.options.page) + PAGES_EXTRA;
        pages.max(PAGES_MIN) * self.options.page
    }

    fn by_vgasnet(&self, pool_bytes: u64, cache_bytes: Option<u64>, more: &[String]) -> Result<Said, String> {
        let ranks = self.options.ranks.to_string();
        let page_bytes = self.options.page;
        let pool_bytes = pool_bytes.next_multiple_of(page_bytes);
        let mut command = match &self.hosts {
            None => Command::new(&self.vgasnetrun),
            Some(hosts) => {
                let mpi = self.mpi.get().map_err(|why| format!("two hosts need an MPI: {why}"))?;
                two_hosts(hosts, &mpi.0, &self.vgasnetrun)
            }
        };
        command.env("VGASNET_PEER_MEMORY", "0").env("VGASNET_PAGE_SIZE", page_bytes.to_string());
        command.env("VGASNET_POOL_SIZE", pool_bytes.to_string());
        if let Some(bytes) = cache_bytes {
            command.env("VGASNET_GET_CACHE_SIZE", bytes.to_string());
        }
        if let Some(dir) = &self.options.storage_dir {
            let dir = dir.canonicalize().map_err(|error| format!("--storage-dir {}: {error}", dir.display()))?;
            command.env("VGASNET_STORAGE_DIR", dir);
        }
        parse(&said(command.args(["-n", &ranks]).arg(&self.program).args(&self.args).args(more))?)
    }

    fn by_mpi(&self, cached: Option<(&str, u64)>) -> Result<Said, String> {
        let (mpi, program) = self.mpi.get()?;
        let network = if self.hosts.is_some() { Network::Tcp } else { Network::SharedMemory };
        parse(&mpi.run(self.hosts.as_ref(), network, self.options.mpi_ranks, program, &self.args, cached)?)
    }
}

fn parse(text: &str) -> Result<Said, String> {
    serde_json::from_str(text.trim()).map_err(|error| format!("it said {:?}: {error}", text.trim()))
}

/// The directory with the sources: the given one, or from the installation, or from vgasnet's source tree.
fn source(options: &ProgramOptions, dir: &Path, name: &str) -> Result<PathBuf, String> {
    let known = || {
        let tree = sources(dir).map(|tree| tree.join("examples"));
        [dir.join("../share/vgasnet/examples")].into_iter().chain(tree).collect()
    };
    let places = options.source.clone().map_or_else(known, |dir| vec![dir]);
    let found = places.iter().find(|place| place.join(name).with_extension("c").is_file());
    let found = found.ok_or_else(|| format!("{name}.c is not in {}; give --source", places[0].display()))?;
    found.canonicalize().map_err(|error| format!("{}: {error}", found.display()))
}

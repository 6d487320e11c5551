//! Settings from environment variables. One table (`variables.rs`) defines them and is also the help text.

mod edit_distance;
mod error;
#[cfg_attr(not(test_faults), allow(dead_code))]
mod io_fault;
mod machine;
mod quantity;
mod refusal;
mod size;
mod variables;

pub use error::UserError;
pub use io_fault::{IoDirection, IoFault, IoTarget};
pub use machine::{Machine, MemoryGroup, memory_groups};
pub use quantity::{format_quantity, parse_answer, parse_fraction, parse_integer, parse_quantity};
pub use refusal::{parse_size_in, refusal};
pub use size::{format_size, format_size_about, parse_size};
pub use variables::{
    Audience, CONDUIT_VARIABLE, GASNET_VERBOSEENV, HOMES_VARIABLE, HOST_TIMEOUT_VARIABLE, Variable, host_timeout,
};

use quantity::parse_segment_limit;
use refusal::refusal_of;
use std::path::PathBuf;
use variables::{
    GASNET_CATCH_EXIT, GASNET_MAX_SEGSIZE, PEER_MEMORY_VARIABLE, PREFIX, Settings, VARIABLES, parse_conduit,
    parse_directory, parse_switch, set,
};
use vgasnet_protocol::get_cache::MEMORY_MAX;

/// Minimum of `VGASNET_PAGE_SIZE` on any system, in bytes; [`page_bytes_min`] gives it for this one.
pub const PAGE_BYTES_MIN: u64 = 4 << 10;
/// Maximum of `VGASNET_PAGE_SIZE`, in bytes.
pub const PAGE_BYTES_MAX: u64 = 64 << 20;
const PAGE_BYTES_DEFAULT: u64 = 4 << 20;

/// Minimum memory for copies of small gets, in bytes.
pub const GET_CACHE_BYTES_MIN: u64 = 64 << 10;
/// Maximum memory for copies of small gets, in bytes.
pub const GET_CACHE_BYTES_MAX: u64 = MEMORY_MAX;

/// Maximum default pool, in bytes. A larger one has to be requested.
const POOL_BYTES_DEFAULT_MAX: u64 = 64 << 30;

/// The largest segment offered by default is this many times a rank's share of the memory: eight default pools.
const OFFER_MEMORY_MAX: u64 = 4;

/// Minimum of `VGASNET_PAGE_SIZE` on this system, in bytes: nothing smaller than the system's page can be mapped.
pub fn page_bytes_min() -> u64 {
    PAGE_BYTES_MIN.max(vgasnet_conduit::page_bytes() as u64)
}

/// A transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conduit {
    /// Shared memory between the ranks of one host.
    Smp,
    /// MPI between hosts. A library may be built without it.
    Mpi,
    /// GASNet between hosts. A library may be built without it.
    Gasnet,
}

/// The settings with which a conduit starts, before the ranks of the job know each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transport {
    /// The requested conduit, if there is one.
    pub conduit: Option<Conduit>,
    /// As [`Caching::peer_memory`].
    pub peer_memory: bool,
}

/// The user's settings, with the defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The directory of the backing files: an absolute path, not checked for existence.
    pub storage_dir: PathBuf,
    /// The size of a page in bytes: a power of two from [`page_bytes_min`] to [`PAGE_BYTES_MAX`].
    pub page_bytes: u64,
    /// The size of this rank's pool in bytes: whole pages, at least one.
    pub pool_bytes: u64,
    /// The user's limit on this rank's segment in bytes, as given; [`Config::max_segment_bytes`] applies it.
    pub segment_limit_bytes: Option<u64>,
    /// This rank's share of the host's available memory, in bytes.
    pub memory_share_bytes: u64,
    /// Where pages are kept and fetched from.
    pub caching: Caching,
    /// Maximum memory for copies of gets from read-only ranges, in bytes: from [`GET_CACHE_BYTES_MIN`] to
    /// [`GET_CACHE_BYTES_MAX`].
    pub get_cache_bytes: u64,
    /// Whether the end of a read-only range looks for a rank that has written there.
    pub checks_readonly: bool,
    /// Whether evicted pages of shared files go to the node's disk first, and to the file system later.
    pub spills: bool,
    /// Maximum bytes for these pages, if set.
    pub spill_bytes: Option<u64>,
    /// The I/O error to make, for tests.
    pub io_fault: Option<IoFault>,
    /// Whether calls are refused that the specification forbids and a GASNet built without checks lets pass.
    pub strict: bool,
    /// Whether a rank exiting with a status other than 0 ends the job.
    pub catches_exit: bool,
    /// Whether the job's statistics are printed when it ends.
    pub stats: bool,
    /// The file for the statistics.
    pub stats_file: Option<PathBuf>,
    /// Variables with vgasnet's prefix and without meaning to it, for a warning.
    pub unknown: Vec<String>,
}

/// Where pages are kept and fetched from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caching {
    /// Whether a page held by some rank is fetched from this rank, not from the backing file.
    pub cooperative: bool,
    /// Whether the homes of a segment's pages are all ranks, round robin, not the segment's own rank.
    pub cyclic_homes: bool,
    /// Whether pages evicted from the last pool with a copy are offered to other ranks, and pages of others are kept in
    /// idle frames.
    pub keeps_guests: bool,
    /// Whether a home keeps a copy of a page that it reads from its disk for another rank.
    pub home_keeps: bool,
    /// Whether ranks of one host use each other's frames directly.
    pub peer_memory: bool,
    /// Whether small operations may be carried out at a rank with their page.
    pub ships: bool,
}

/// What the environment gives.
struct Given {
    settings: Settings,
    tmpdir: Option<String>,
    gasnet_limit_bytes: Option<u64>,
    catches_exit: bool,
}

impl Given {
    fn of(
        vars: impl Iterator<Item = (String, String)>,
        ranks_on_host: u32,
        machine: &Machine,
    ) -> Result<Given, UserError> {
        let mut settings = Settings::default();
        let (mut tmpdir, mut gasnet_limit_bytes, mut catches_exit) = (None, None, true);
        for (name, value) in vars {
            if name == "TMPDIR" && !value.is_empty() {
                tmpdir = Some(value);
            } else if name == GASNET_MAX_SEGSIZE {
                let limit = parse_segment_limit(&value, machine.memory_available_bytes, ranks_on_host);
                gasnet_limit_bytes = Some(limit.map_err(|why| refusal(&name, &value, &why))?);
            } else if name == GASNET_CATCH_EXIT && !value.is_empty() {
                let line = || refusal(&name, &value, "is neither yes nor no");
                catches_exit = parse_answer(&value).ok_or_else(line)?;
            } else if name.starts_with(PREFIX) {
                set(&mut settings, &name, &value)?;
            }
        }
        Ok(Given { settings, tmpdir, gasnet_limit_bytes, catches_exit })
    }
}

impl Config {
    /// The configuration described by `vars` (name, value), on a host with `ranks_on_host` ranks of this job. Names
    /// without the prefix `VGASNET_` are ignored, except `TMPDIR` as a default, and two of GASNet's.
    ///
    /// # Errors
    /// A `VGASNET_` name close to a known one, a malformed value, two settings that exclude each other, or a pool
    /// smaller than a page or larger than the rank's share of the available memory.
    ///
    /// # Panics
    /// If `ranks_on_host` is 0.
    pub fn from_env(
        vars: impl Iterator<Item = (String, String)>,
        ranks_on_host: u32,
        machine: &Machine,
    ) -> Result<Config, UserError> {
        assert!(ranks_on_host > 0, "the calling rank is on this host");
        let Given { settings, tmpdir, gasnet_limit_bytes, catches_exit } = Given::of(vars, ranks_on_host, machine)?;
        let storage_dir = match (settings.storage_dir, tmpdir) {
            (Some(dir), _) => dir,
            (None, Some(tmpdir)) => parse_directory(&tmpdir)
                .map_err(|why| UserError::new(format!("TMPDIR={tmpdir} {why}; set VGASNET_STORAGE_DIR")))?,
            (None, None) => PathBuf::from("/var/tmp"),
        };
        let page_bytes = settings.page_bytes.unwrap_or(PAGE_BYTES_DEFAULT);
        if let Some(limit) = settings.segment_limit_bytes {
            require_a_page("VGASNET_MAX_SEGSIZE", limit, page_bytes)?;
        }
        let caching = settings.caching.or_default();
        if caching.cyclic_homes {
            with_cyclic_homes("VGASNET_COOPERATIVE=0", caching.cooperative)?;
            with_cyclic_homes("VGASNET_CHECK_READONLY=1", settings.checks_readonly != Some(true))?;
        }
        let share_bytes = machine.memory_available_bytes / u64::from(ranks_on_host);
        let pool_bytes = match settings.pool_bytes {
            Some(pool_bytes) => check_pool(pool_bytes, page_bytes, share_bytes, ranks_on_host)?,
            None => (share_bytes / 2).min(POOL_BYTES_DEFAULT_MAX).max(page_bytes),
        };
        Ok(Config {
            storage_dir,
            page_bytes,
            pool_bytes: pool_bytes / page_bytes * page_bytes,
            segment_limit_bytes: settings.segment_limit_bytes,
            memory_share_bytes: share_bytes,
            caching,
            get_cache_bytes: settings
                .get_cache_bytes
                .unwrap_or((pool_bytes / 8).clamp(GET_CACHE_BYTES_MIN, GET_CACHE_BYTES_MAX)),
            checks_readonly: settings.checks_readonly.unwrap_or(false),
            spills: settings.spills.unwrap_or(false),
            spill_bytes: settings.spill_bytes,
            io_fault: settings.io_fault,
            strict: settings.strict.unwrap_or(false),
            catches_exit,
            stats: settings.stats.unwrap_or(false),
            stats_file: settings.stats_file,
            unknown: settings.unknown,
        }
        .or_segment_limit(gasnet_limit_bytes))
    }

    /// Limits the segment to `limit_bytes`, at least a page, unless the user has set a limit.
    pub fn or_segment_limit(self, limit_bytes: Option<u64>) -> Config {
        let limit_bytes = limit_bytes.map(|limit| limit.max(self.page_bytes));
        Config { segment_limit_bytes: self.segment_limit_bytes.or(limit_bytes), ..self }
    }

    /// The largest segment offered to this rank, in bytes, with `free_bytes` free in the storage directory and
    /// `ranks_on_host` ranks sharing it: whole pages, 0 if not even one fits. All ranks of the host can have this much
    /// at once. Without a limit, a job that takes all of it leaves most of the disk to others.
    ///
    /// # Panics
    /// If `ranks_on_host` is 0.
    pub fn offered_segment_bytes(&self, free_bytes: u64, ranks_on_host: u32) -> u64 {
        let of_memory_bytes = self.memory_share_bytes.saturating_mul(OFFER_MEMORY_MAX);
        self.segment_bytes(free_bytes, ranks_on_host, |share_bytes| (share_bytes / 4).min(of_memory_bytes))
    }

    /// As [`Config::offered_segment_bytes`], for a rank that requests a size by itself.
    ///
    /// # Panics
    /// If `ranks_on_host` is 0.
    pub fn max_segment_bytes(&self, free_bytes: u64, ranks_on_host: u32) -> u64 {
        self.segment_bytes(free_bytes, ranks_on_host, |share_bytes| share_bytes / 2)
    }

    fn segment_bytes(&self, free_bytes: u64, ranks_on_host: u32, default: impl FnOnce(u64) -> u64) -> u64 {
        assert!(ranks_on_host > 0, "the calling rank is on this host");
        let share_bytes = free_bytes / u64::from(ranks_on_host);
        let limit = self.segment_limit_bytes.unwrap_or_else(|| default(share_bytes)).min(share_bytes);
        limit / self.page_bytes * self.page_bytes
    }

    /// The table of variables as text for a terminal, ending in a newline.
    pub fn help() -> String {
        let mut text = String::from("Environment variables. A size is digits, then at most one of K, M, G, T.\n");
        for variable in variables(Audience::Users) {
            let Variable { name, meaning, allowed, default, .. } = variable;
            text += &format!("\n{name}\n    {meaning}\n    allowed: {allowed}\n    default: {default}\n");
        }
        text
    }
}

/// The variables for this audience, in the order of the table.
pub fn variables(audience: Audience) -> impl Iterator<Item = &'static Variable> {
    VARIABLES.iter().filter(move |variable| variable.audience == audience)
}

/// This process's environment for [`Config::from_env`], as far as its user may set it. Bytes that are not UTF-8 become
/// U+FFFD. No valid name or size contains it, and hardly any directory: such a variable is refused with its name.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    vgasnet_conduit::environment::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
}

/// The settings with which a conduit starts. An invalid value counts as not set: [`Config::from_env`] refuses it later,
/// when the ranks can agree on one that reports it.
pub fn wanted_transport(vars: &[(String, String)]) -> Transport {
    let mut wanted = Transport { conduit: None, peer_memory: true };
    for (name, value) in vars {
        match name.as_str() {
            CONDUIT_VARIABLE => wanted.conduit = parse_conduit(value).ok(),
            PEER_MEMORY_VARIABLE => wanted.peer_memory = parse_switch(value).unwrap_or(true),
            _ => {}
        }
    }
    wanted
}

/// Refuses a setting that cyclic homes do not support.
fn with_cyclic_homes(other: &str, is_possible: bool) -> Result<(), UserError> {
    if is_possible {
        return Ok(());
    }
    Err(UserError::new(format!("{HOMES_VARIABLE}=cyclic does not go with {other}; unset one of the two")))
}

fn require_a_page(name: &str, bytes: u64, page_bytes: u64) -> Result<(), UserError> {
    if bytes >= page_bytes {
        return Ok(());
    }
    let allowed = format!("at least {}, or less with a lower VGASNET_PAGE_SIZE", format_size(page_bytes));
    Err(refusal_of(name, &format_size(bytes), "is less than one page", &allowed))
}

fn check_pool(pool_bytes: u64, page_bytes: u64, share_bytes: u64, ranks_on_host: u32) -> Result<u64, UserError> {
    require_a_page("VGASNET_POOL_SIZE", pool_bytes, page_bytes)?;
    if pool_bytes <= share_bytes {
        return Ok(pool_bytes);
    }
    let why = "is more than this rank's share of the memory available on this host";
    let share = format_size_about(share_bytes);
    let allowed = format!("at most {share} with {ranks_on_host} ranks here, or more with fewer ranks per host");
    Err(refusal_of("VGASNET_POOL_SIZE", &format_size(pool_bytes), why, &allowed))
}

#[cfg(test)]
mod tests;

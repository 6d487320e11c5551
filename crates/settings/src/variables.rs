//! The environment variables: the meaning and the effect of each.

use super::edit_distance::edit_distance;
use super::io_fault::IoFault;
use super::refusal::{in_range, parse_size_in, refusal};
use super::size::parse_size;
use super::{Caching, Conduit, GET_CACHE_BYTES_MAX, GET_CACHE_BYTES_MIN, PAGE_BYTES_MAX, page_bytes_min};
use crate::UserError;
use std::path::PathBuf;
use std::time::Duration;
use vgasnet_conduit::launchers::{HOST_TIMEOUT_S, PSHM_NODES_VARIABLE};

/// A variable: its help text, and the effect of its value.
pub struct Variable {
    /// Its name: `VGASNET_...`, or `GASNET_...` if GASNet's clients know it.
    pub name: &'static str,
    /// Its readers.
    pub audience: Audience,
    /// Its meaning.
    pub meaning: &'static str,
    /// The allowed values.
    pub allowed: &'static str,
    /// The default.
    pub default: &'static str,
    /// Takes the value. An error is the end of a sentence that begins `NAME=VALUE`.
    set: fn(&mut Settings, &str) -> Result<(), String>,
}

/// The readers of a variable's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Users of jobs.
    Users,
    /// Users of GASNet's clients. The names are GASNet's: [`super::Config::from_env`] and other functions take the
    /// values, not [`set`].
    GasnetClients,
    /// Users of the libraries before MPI, which read these variables. vgasnet itself ignores them.
    MpiPrograms,
    /// The parts of vgasnet among themselves, and tests. No document has these variables.
    Vgasnet,
}

/// The given values, each valid by itself.
#[derive(Default)]
pub(super) struct Settings {
    pub(super) storage_dir: Option<PathBuf>,
    pub(super) page_bytes: Option<u64>,
    pub(super) pool_bytes: Option<u64>,
    pub(super) segment_limit_bytes: Option<u64>,
    pub(super) caching: GivenCaching,
    pub(super) get_cache_bytes: Option<u64>,
    pub(super) checks_readonly: Option<bool>,
    pub(super) spills: Option<bool>,
    pub(super) spill_bytes: Option<u64>,
    pub(super) io_fault: Option<IoFault>,
    pub(super) strict: Option<bool>,
    pub(super) stats: Option<bool>,
    pub(super) stats_file: Option<PathBuf>,
    pub(super) unknown: Vec<String>,
}

/// The given values of [`Caching`].
#[derive(Default)]
pub(super) struct GivenCaching {
    cooperative: Option<bool>,
    cyclic_homes: Option<bool>,
    keeps_guests: Option<bool>,
    home_keeps: Option<bool>,
    peer_memory: Option<bool>,
    ships: Option<bool>,
}

impl GivenCaching {
    /// With the defaults filled in.
    pub(super) fn or_default(&self) -> Caching {
        Caching {
            cooperative: self.cooperative.unwrap_or(true),
            cyclic_homes: self.cyclic_homes.unwrap_or(false),
            keeps_guests: self.keeps_guests.unwrap_or(false),
            home_keeps: self.home_keeps.unwrap_or(false),
            peer_memory: self.peer_memory.unwrap_or(true),
            ships: self.ships.unwrap_or(true),
        }
    }
}

/// The variable for the transport.
pub const CONDUIT_VARIABLE: &str = "VGASNET_CONDUIT";

/// The variable for the silence after which a host is lost.
pub const HOST_TIMEOUT_VARIABLE: &str = "VGASNET_HOST_TIMEOUT";

const HOST_TIMEOUT_DEFAULT: &str = "30";

pub(super) const PEER_MEMORY_VARIABLE: &str = "VGASNET_PEER_MEMORY";

/// The variable for the choice of homes.
pub const HOMES_VARIABLE: &str = "VGASNET_HOMES";

pub(super) const PREFIX: &str = "VGASNET_";

/// Suffixes set by module systems and package managers for an installed library.
const OF_INSTALLATION: [&str; 10] =
    ["ROOT", "DIR", "HOME", "BASE", "PREFIX", "BIN", "INC", "INCLUDE", "LIB", "VERSION"];

/// GASNet's own variable for the largest segment. `VGASNET_MAX_SEGSIZE` has precedence.
pub(super) const GASNET_MAX_SEGSIZE: &str = "GASNET_MAX_SEGSIZE";

/// GASNet's variable for whether the end of a rank ends the job.
pub(super) const GASNET_CATCH_EXIT: &str = "GASNET_CATCH_EXIT";

/// GASNet-EX's variable for whether rank 0 shows the environment variables requested by its client.
pub const GASNET_VERBOSEENV: &str = "GASNET_VERBOSEENV";

pub(super) const VARIABLES: [Variable; 33 + cfg!(test_faults) as usize] = [
    Variable {
        name: "VGASNET_STORAGE_DIR",
        audience: Audience::Users,
        meaning: "directory of the backing files, one per rank, on the node's fastest disk",
        allowed: "an absolute path",
        default: "TMPDIR if set, else /var/tmp",
        set: |settings, value| parse_directory(value).map(|dir| settings.storage_dir = Some(dir)),
    },
    Variable {
        name: "VGASNET_PAGE_SIZE",
        audience: Audience::Users,
        meaning: "unit of caching and coherence; the same on every rank",
        allowed: "a power of two from 4K, or the system's page where that is larger, to 64M",
        default: "4M",
        set: |settings, value| parse_page_size(value).map(|bytes| settings.page_bytes = Some(bytes)),
    },
    Variable {
        name: "VGASNET_POOL_SIZE",
        audience: Audience::Users,
        meaning: "DRAM cache of each rank, rounded down to whole pages",
        allowed: "a size of at least one page, four beside a segment, and at most the rank's share of the host's available memory",
        default: "half of the rank's share of the host's available memory, at most 64G",
        set: |settings, value| parse_size(value).map(|bytes| settings.pool_bytes = Some(bytes)),
    },
    Variable {
        name: "VGASNET_MAX_SEGSIZE",
        audience: Audience::Users,
        meaning: "largest segment of each rank, rounded down to whole pages",
        allowed: "a size of at least one page; no more than the free space is ever offered",
        default: "GASNET_MAX_SEGSIZE, else the program's gasnet_max_segsize, else, of the rank's share of the free space in \
                  VGASNET_STORAGE_DIR, half; a quarter is offered, and at most 4 times its share of the available memory",
        set: |settings, value| parse_size(value).map(|bytes| settings.segment_limit_bytes = Some(bytes)),
    },
    Variable {
        name: "VGASNET_COOPERATIVE",
        audience: Audience::Users,
        meaning: "1: a page held by any rank comes from its memory; 0: from the disk",
        allowed: "0 or 1",
        default: "1",
        set: |settings, value| parse_switch(value).map(|on| settings.caching.cooperative = Some(on)),
    },
    Variable {
        name: HOMES_VARIABLE,
        audience: Audience::Users,
        meaning: "how pages are assigned to homes, which do their I/O and record their holders; owner: the segment's own rank; \
                  cyclic: round robin over all ranks, 4M or a page at a time; the same on every rank",
        allowed: "owner or cyclic",
        default: "owner",
        set: |settings, value| parse_homes(value).map(|cyclic| settings.caching.cyclic_homes = Some(cyclic)),
    },
    Variable {
        name: "VGASNET_IDLE_POOLS",
        audience: Audience::Users,
        meaning: "1: a page evicted from the last pool with a copy goes to an idle frame of another rank, if there is one",
        allowed: "0 or 1",
        default: "0",
        set: |settings, value| parse_switch(value).map(|on| settings.caching.keeps_guests = Some(on)),
    },
    Variable {
        name: "VGASNET_HOME_KEEPS",
        audience: Audience::Users,
        meaning: "1: a home that reads a page for another rank keeps a copy in its own pool",
        allowed: "0 or 1",
        default: "0, but 1 with VGASNET_COOPERATIVE=0",
        set: |settings, value| parse_switch(value).map(|on| settings.caching.home_keeps = Some(on)),
    },
    Variable {
        name: PEER_MEMORY_VARIABLE,
        audience: Audience::Users,
        meaning: "1: ranks of one host use each other's frames directly; 0: like ranks of other hosts",
        allowed: "0 or 1",
        default: "1",
        set: |settings, value| parse_switch(value).map(|on| settings.caching.peer_memory = Some(on)),
    },
    Variable {
        name: "VGASNET_SHIP",
        audience: Audience::Users,
        meaning: "1: small gets, puts and atomic operations run at the rank with the page, and loads and stores read a part of it; 0: \
                  the page moves each time",
        allowed: "0 or 1",
        default: "1",
        set: |settings, value| parse_switch(value).map(|on| settings.caching.ships = Some(on)),
    },
    Variable {
        name: "VGASNET_GET_CACHE_SIZE",
        audience: Audience::Users,
        meaning: "most memory of each rank, besides the pool, for copies of small gets from ranges declared read-only",
        allowed: "a size from 64K to 64G",
        default: "an eighth of the pool",
        set: |settings, value| parse_get_cache(value).map(|bytes| settings.get_cache_bytes = Some(bytes)),
    },
    Variable {
        name: "VGASNET_CHECK_READONLY",
        audience: Audience::Users,
        meaning: "1: the end of a read-only range looks for a rank that has written there",
        allowed: "0 or 1",
        default: "0",
        set: |settings, value| parse_switch(value).map(|on| settings.checks_readonly = Some(on)),
    },
    Variable {
        name: "VGASNET_CHECK",
        audience: Audience::Users,
        meaning: "1: errors ignored by a GASNet built without checks end the program: a second notify of a barrier, a wait without \
                  one, an unlock of a free lock, transfers in the rank's own memory outside its segment, handles of GASNet-EX never given \
                  out, unequal atomic domains, pointers that are misaligned or lead to memory that is not mapped; and a rank reports a wait of 5 s for others in a collective call of a file",
        allowed: "0 or 1",
        default: "0",
        set: |settings, value| parse_switch(value).map(|on| settings.strict = Some(on)),
    },
    Variable {
        name: "VGASNET_FILE_SPILL",
        audience: Audience::Users,
        meaning: "1: evicted pages of shared files go to the disk of VGASNET_STORAGE_DIR first, later to the file system; see \
                  docs/reference/files.md",
        allowed: "0 or 1",
        default: "0",
        set: |settings, value| parse_switch(value).map(|on| settings.spills = Some(on)),
    },
    Variable {
        name: "VGASNET_FILE_SPILL_SIZE",
        audience: Audience::Users,
        meaning: "most space of each rank for VGASNET_FILE_SPILL; pages beyond it go to the file system at once",
        allowed: "a size of at least one page",
        default: "half of the rank's share of the free space in VGASNET_STORAGE_DIR, less the segments",
        set: |settings, value| parse_size(value).map(|bytes| settings.spill_bytes = Some(bytes)),
    },
    Variable {
        name: "VGASNET_STATS",
        audience: Audience::Users,
        meaning: "1: the job counts the work of its ranks and prints a table at its end; see docs/reference/statistics.md",
        allowed: "0 or 1",
        default: "0",
        set: |settings, value| parse_switch(value).map(|on| settings.stats = Some(on)),
    },
    Variable {
        name: "VGASNET_STATS_FILE",
        audience: Audience::Users,
        meaning: "the job counts the work of its ranks, and rank 0 writes the counts to this file as JSON at the end",
        allowed: "a path; no symbolic link in a directory where others can make files",
        default: "none",
        set: |settings, value| parse_file(value).map(|path| settings.stats_file = Some(path)),
    },
    Variable {
        name: CONDUIT_VARIABLE,
        audience: Audience::Users,
        meaning: "transport between ranks",
        allowed: "smp, or mpi or gasnet where they were built in",
        default: "the launcher's, else smp",
        // [`wanted_transport`] takes the value.
        set: |_, value| parse_conduit(value).map(drop),
    },
    #[cfg(test_faults)]
    Variable {
        name: "VGASNET_TEST_IO_ERROR",
        audience: Audience::Vgasnet,
        meaning: "for tests: from the N-th on COUNT reads or writes of the backing file, with file- of shared files, or with \
                  spill- of what is kept of those, fail, or writes find the disk or a quota full",
        allowed: "read:N, read:N:COUNT, write:N, write:N:COUNT, full:N:COUNT, quota:N:COUNT or one of them after file- or spill-, N from 1",
        default: "none",
        set: |settings, value| super::io_fault::parse(value).map(|fault| settings.io_fault = Some(fault)),
    },
    Variable {
        name: "VGASNET_SMP_JOB",
        audience: Audience::Vgasnet,
        meaning: "set by vgasnetrun for the ranks that it starts; not for users",
        allowed: "what vgasnetrun writes",
        default: "none",
        set: |_, _| Ok(()),
    },
    Variable {
        name: HOST_TIMEOUT_VARIABLE,
        audience: Audience::Users,
        meaning: "of vgasnetrun, for conduits between hosts: after so many seconds of silence a host is lost, and the job ends",
        allowed: "a number from 5 to 3600",
        default: HOST_TIMEOUT_DEFAULT,
        set: |_, value| parse_host_timeout(value).map(drop),
    },
    Variable {
        name: "VGASNET_MPIEXEC",
        audience: Audience::Users,
        meaning: "of vgasnetrun: the launcher of MPI, and options for it, separated by spaces",
        allowed: "the mpiexec of MPICH, of Open MPI or of an MPI made from them, or srun",
        default: "the mpiexec of the library's MPI",
        set: |_, _| Ok(()),
    },
    Variable {
        name: "VGASNET_LIBRARY",
        audience: Audience::Users,
        meaning: "of the Python package: the shared library, or its directory",
        allowed: "a path",
        default: "the one of the package's own tree, else the one beside the vgasnetrun in PATH, else the system's",
        set: |_, _| Ok(()),
    },
    Variable {
        name: GASNET_MAX_SEGSIZE,
        audience: Audience::GasnetClients,
        meaning: "largest segment of each rank, unless VGASNET_MAX_SEGSIZE is set",
        allowed: "a size as 128.0 MB, or a fraction of the host's available memory as 0.5; /P behind it is for each rank, /H for all of \
                  a host together",
        default: "as for VGASNET_MAX_SEGSIZE",
        set: |_, _| Ok(()),
    },
    Variable {
        name: GASNET_CATCH_EXIT,
        audience: Audience::GasnetClients,
        meaning: "1: a rank with an exit status other than 0 ends the job; 0: such ranks wait for each other",
        allowed: "yes or no, true or false, 1 or 0, or their first letters",
        default: "1",
        set: |_, _| Ok(()),
    },
    Variable {
        name: PSHM_NODES_VARIABLE,
        audience: Audience::GasnetClients,
        meaning: "of gasnetrun_smp and the other launchers of clients: ranks of a job without -n",
        allowed: "a number from 1",
        default: "1",
        set: |_, _| Ok(()),
    },
    Variable {
        name: "GASNET_SSH_SERVERS",
        audience: Audience::GasnetClients,
        meaning: "of gasnetrun_mpi and the other launchers of clients for several hosts: the hosts to run on",
        allowed: "names with blanks or commas between them",
        default: "the hosts of the launcher or the batch system",
        set: |_, _| Ok(()),
    },
    Variable {
        name: GASNET_VERBOSEENV,
        audience: Audience::GasnetClients,
        meaning: "of clients of GASNet-EX, 1: rank 0 shows each variable the client asks for, once",
        allowed: "yes or no, true or false, 1 or 0, or their first letters",
        default: "0",
        set: |_, _| Ok(()),
    },
    Variable {
        name: "VGASNET_MPI_FILES",
        audience: Audience::MpiPrograms,
        meaning: "of libvgasnet-mpi-io: files with a matching name are cached, unless one rank of several opens one for itself; a \
                  pattern with a slash is matched with the whole path; see docs/reference/files.md",
        allowed: "patterns of the shell with colons between them, or newlines",
        default: "none",
        set: |_, _| Ok(()),
    },
    Variable {
        name: "VGASNET_MPI_CACHE",
        audience: Audience::MpiPrograms,
        meaning: "of libvgasnet-mpi-cache: when gets of a window may be served from copies; an info of the window has precedence; see \
                  docs/reference/cached-gets.md",
        allowed: "off, checked, told, phase or always",
        default: "off",
        set: |_, _| Ok(()),
    },
    Variable {
        name: "VGASNET_MPI_CACHE_SIZE",
        audience: Audience::MpiPrograms,
        meaning: "of libvgasnet-mpi-cache: most memory of each process for copies",
        allowed: "a number of bytes to 64G, with K, M or G behind it",
        default: "64M",
        set: |_, _| Ok(()),
    },
    Variable {
        name: "VGASNET_MPI_CACHE_STATS",
        audience: Audience::MpiPrograms,
        meaning: "of libvgasnet-mpi-cache: 1 shows statistics on stderr at the end; with a path each rank writes its own to a file of \
                  this name and its rank",
        allowed: "0, 1 or a path",
        default: "0",
        set: |_, _| Ok(()),
    },
    Variable {
        name: "VGASNET_LAUNCHER",
        audience: Audience::Vgasnet,
        meaning: "set by vgasnetrun for the agents that look after ranks on all hosts; not for users",
        allowed: "what vgasnetrun writes",
        default: "none",
        set: |_, _| Ok(()),
    },
    Variable {
        name: "VGASNET_AGENT",
        audience: Audience::Vgasnet,
        meaning: "set by vgasnetrun's agents for the ranks that they start; not for users",
        allowed: "what vgasnetrun writes",
        default: "none",
        set: |_, _| Ok(()),
    },
];

/// Takes a variable whose name begins with [`PREFIX`].
pub(super) fn set(settings: &mut Settings, name: &str, value: &str) -> Result<(), UserError> {
    let Some(variable) = VARIABLES.iter().find(|variable| variable.name == name) else {
        return note_unknown(settings, name);
    };
    (variable.set)(settings, value).map_err(|why| refusal(name, value, &why))
}

/// Refuses a name close to a known one as a mistake. Any other may have another purpose.
fn note_unknown(settings: &mut Settings, name: &str) -> Result<(), UserError> {
    const TYPING_ERRORS: usize = 2;
    let suffix = name.strip_prefix(PREFIX).unwrap_or(name);
    if OF_INSTALLATION.contains(&suffix) {
        return Ok(());
    }
    let upper = name.to_uppercase();
    let known =
        VARIABLES.iter().filter(|variable| variable.audience != Audience::Vgasnet).map(|variable| variable.name);
    // A name that is cut off counts as close.
    let is_cut_off = |known: &str| known.strip_prefix(&upper).is_some_and(|end| end.starts_with('_'));
    let distance = |known: &'static str| if is_cut_off(known) { 0 } else { edit_distance(&upper, known) };
    let (distance, nearest) = known.map(|known| (distance(known), known)).min().expect("the table is not empty");
    if distance <= TYPING_ERRORS {
        return Err(UserError::new(format!("{name} is not a variable of vgasnet; the nearest is {nearest}")));
    }
    settings.unknown.push(name.to_owned());
    Ok(())
}

pub(super) fn parse_directory(value: &str) -> Result<PathBuf, String> {
    if value.starts_with('/') && !value.contains('\0') {
        Ok(PathBuf::from(value))
    } else {
        Err("is not an absolute path".into())
    }
}

fn parse_file(value: &str) -> Result<PathBuf, String> {
    let is_name = !value.is_empty() && !value.contains('\0');
    is_name.then(|| PathBuf::from(value)).ok_or_else(|| "is no path".to_owned())
}

fn parse_get_cache(value: &str) -> Result<u64, String> {
    parse_size_in(value, GET_CACHE_BYTES_MIN..=GET_CACHE_BYTES_MAX)
}

fn parse_page_size(value: &str) -> Result<u64, String> {
    let bytes = parse_size(value)?;
    if !bytes.is_power_of_two() {
        return Err("is not a power of two".into());
    }
    in_range(bytes, page_bytes_min()..=PAGE_BYTES_MAX)
}

pub(super) fn parse_switch(value: &str) -> Result<bool, String> {
    match value {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("is neither 0 nor 1".into()),
    }
}

fn parse_homes(value: &str) -> Result<bool, String> {
    match value {
        "owner" => Ok(false),
        "cyclic" => Ok(true),
        _ => Err("is neither owner nor cyclic".into()),
    }
}

pub(super) fn parse_conduit(value: &str) -> Result<Conduit, String> {
    match value {
        "smp" => Ok(Conduit::Smp),
        "mpi" => Ok(Conduit::Mpi),
        "gasnet" => Ok(Conduit::Gasnet),
        _ => Err("is no conduit".into()),
    }
}

fn parse_host_timeout(value: &str) -> Result<Duration, String> {
    let seconds = value.parse().map_err(|_| "is not a number of seconds")?;
    in_range(seconds, HOST_TIMEOUT_S).map(Duration::from_secs)
}

/// The time-out for a value of [`HOST_TIMEOUT_VARIABLE`], or the default.
///
/// # Errors
/// The value is invalid; the text names the valid ones.
pub fn host_timeout(value: Option<&str>) -> Result<Duration, UserError> {
    let value = value.unwrap_or(HOST_TIMEOUT_DEFAULT);
    parse_host_timeout(value).map_err(|why| refusal(HOST_TIMEOUT_VARIABLE, value, &why))
}

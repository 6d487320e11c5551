//! Jobs as requested by the options, and the orders of their ranks.

use crate::Stop;
use crate::gets;
use crate::options::{Access, Modes, Setup};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use vgasnet_memory::block_frames;
use vgasnet_settings::{Config, Machine, environment, format_size, format_size_about};
use vgasnet_storage as storage;

/// The size of a get, and the unit for filling and checking data.
pub const BLOCK_BYTES: u64 = 4 << 20;

/// Memory allowed to a rank in addition to its pool.
const OUTSIDE_POOL_BYTES: u64 = 64 << 20;

/// Memory of a rank's program without the pool and the blocks: about 8M are used.
const PROGRAM_BYTES: u64 = 12 << 20;

/// The pool if neither an option nor the environment sets one. It is smaller than the default data: the benchmarks are
/// out of core.
const POOL_BYTES_DEFAULT: u64 = 256 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    Sequential,
    Random,
    PageSize,
    Sweep,
    FalseSharing,
    Hit,
    Triad,
    /// A baseline, run by a process that is not a rank.
    MappedTriad,
    Fault,
    FaultThreads,
    Messages,
    Lists,
    Operations,
    Collectives,
    Stream,
    Ahead,
    Loop,
    Blocks,
    /// A baseline, run by a process that is not a rank.
    MappedBlocks,
    Small,
    /// A baseline, run by a process that is not a rank.
    MappedSmall,
    Table,
    /// A baseline, run by a process that is not a rank.
    MappedTable,
    Gets,
}

impl Workload {
    /// Whether each rank has data.
    pub fn is_of_each_rank(self) -> bool {
        matches!(self, Workload::Hit | Workload::Operations | Workload::Small | Workload::Table | Workload::Gets)
    }

    /// Whether the workload measures small accesses. In other workloads small accesses bring pages to the pool instead
    /// of being shipped.
    fn is_of_small_accesses(self) -> bool {
        matches!(self, Workload::Small | Workload::Table | Workload::FalseSharing | Workload::Gets)
    }

    /// Its name in JSON.
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// Orders to a rank, in JSON on its command line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    pub workload: Workload,
    /// The data on rank 0, or on each rank if [`Workload::is_of_each_rank`]; for [`Workload::Collectives`] the bytes
    /// received by each rank.
    pub data_bytes: u64,
    /// [`Workload::Hit`]: only random gets. [`Workload::Sweep`]: random order.
    #[serde(default)]
    pub only_random: bool,
    /// Rounds of [`Workload::FalseSharing`], threads of [`Workload::Hit`] and [`Workload::Operations`], faults of a
    /// kind of [`Workload::Fault`], round trips of [`Workload::Messages`].
    pub count: u32,
    /// Numbers of loading threads, for [`Workload::FaultThreads`].
    pub threads: Vec<u32>,
    /// For [`Workload::Small`].
    #[serde(default)]
    pub accesses: Vec<Access>,
    /// For [`Workload::Gets`].
    #[serde(default)]
    pub gets: Option<gets::Orders>,
    pub repeat: u32,
    pub seed: u64,
    pub input: Option<PathBuf>,
    pub damage_offset: Option<u64>,
    /// The process that maps a file, as a baseline; or the reason for having none.
    pub mapping: Result<Mapping, String>,
    /// An existing file for rank 0's report.
    pub report: PathBuf,
    /// A descriptor of a file in memory with the checksum of each block of the input.
    pub sums_fd: Option<i32>,
}

/// The directory of a file mapped by a process, and the cgroup that limits the process's memory. The process enters the
/// cgroup itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mapping {
    pub dir: PathBuf,
    pub cgroup: PathBuf,
}

impl Spec {
    /// Orders without data: each benchmark adds its own.
    pub fn new(workload: Workload, setup: &Setup) -> Spec {
        Spec {
            workload,
            data_bytes: 0,
            only_random: false,
            count: 0,
            threads: Vec::new(),
            accesses: Vec::new(),
            gets: None,
            repeat: setup.repeat,
            seed: setup.seed,
            input: None,
            damage_offset: None,
            mapping: Err("this benchmark compares with no mapped file".into()),
            report: PathBuf::new(),
            sums_fd: None,
        }
    }

    /// Number of blocks of the data; the last may be partial.
    pub fn blocks(&self) -> u64 {
        self.data_bytes.div_ceil(BLOCK_BYTES)
    }

    pub fn block_bytes(&self, block: u64) -> usize {
        BLOCK_BYTES.min(self.data_bytes - block * BLOCK_BYTES) as usize
    }
}

/// One job: its ranks, their environment, their orders.
#[derive(Clone, Debug)]
pub struct Job {
    pub ranks: u32,
    pub config: Config,
    /// Environment variables of the ranks in addition to this process's.
    pub vars: Vec<(&'static str, String)>,
    pub spec: Spec,
    /// Threads that compute at the same time.
    pub busy: u16,
}

/// The layout of a segment: the data, then the mail (rank 0 only).
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// A place for each rank's words to rank 0.
    pub mail_offset: u64,
    pub segment_bytes: u64,
}

/// The bytes of a rank's place in the mail.
pub const MAIL_BYTES: u64 = 32;

impl Layout {
    pub fn new(rank: u32, ranks: u32, spec: &Spec, config: &Config) -> Layout {
        let is_first = rank == 0;
        let bytes_if =
            |is_there: bool, bytes: u64| if is_there { bytes.next_multiple_of(config.page_bytes) } else { 0 };
        let has_data = (is_first && spec.workload != Workload::Collectives) || spec.workload.is_of_each_rank();
        let mail_offset = bytes_if(has_data, spec.data_bytes);
        let end = mail_offset + bytes_if(is_first, u64::from(ranks) * MAIL_BYTES);
        Layout { mail_offset, segment_bytes: end.max(config.page_bytes) }
    }
}

impl Job {
    /// A job with checked settings.
    pub fn new(ranks: u32, cooperative: bool, peer_memory: bool, setup: &Setup, spec: Spec) -> Result<Job, Stop> {
        let mut vars = vec![
            ("VGASNET_COOPERATIVE", u8::from(cooperative).to_string()),
            ("VGASNET_PEER_MEMORY", u8::from(peer_memory).to_string()),
        ];
        if !spec.workload.is_of_small_accesses() {
            vars.push(("VGASNET_SHIP", "0".to_owned()));
        }
        if let Some(dir) = &setup.storage_dir {
            vars.push(("VGASNET_STORAGE_DIR", absolute(dir)?));
        }
        if setup.stats {
            vars.push(("VGASNET_STATS", "1".to_owned()));
        }
        let pool_default = std::env::var_os("VGASNET_POOL_SIZE").is_none().then_some(POOL_BYTES_DEFAULT);
        let sizes = [("VGASNET_PAGE_SIZE", setup.page), ("VGASNET_POOL_SIZE", setup.pool.or(pool_default))];
        vars.extend(sizes.into_iter().filter_map(|(name, bytes)| Some((name, format_size(bytes?)))));
        let others = environment().filter(|(name, _)| vars.iter().all(|(ours, _)| ours != name));
        let all = others.chain(vars.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let config = Config::from_env(all, ranks, &Machine::observe()).map_err(Stop::usage)?;
        Ok(Job { ranks, config, vars, spec, busy: setup.busy })
    }

    /// The size of rank 0's segment, the largest.
    pub fn segment_bytes_max(&self) -> u64 {
        Layout::new(0, self.ranks, &self.spec, &self.config).segment_bytes
    }

    /// The memory allowed to a rank. With small accesses it is no more than the pool, the blocks and the program.
    pub fn rank_memory_bytes(&self) -> u64 {
        let (pool_bytes, page_bytes) = (self.config.pool_bytes, self.config.page_bytes);
        let extra_bytes = match self.spec.workload {
            Workload::Small | Workload::Table => {
                let frames = u32::try_from(pool_bytes / page_bytes).unwrap_or(u32::MAX);
                u64::from(block_frames(frames, page_bytes as usize)) * page_bytes + PROGRAM_BYTES
            }
            _ => OUTSIDE_POOL_BYTES,
        };
        pool_bytes + extra_bytes
    }

    /// Refuses a job if its disk has no room for the segments and the files of the baselines.
    pub fn check_space(&self) -> Result<(), Stop> {
        let free_bytes = storage::free_bytes(&self.config.storage_dir).map_err(Stop::failure)?;
        let other_bytes = Layout::new(1, self.ranks, &self.spec, &self.config).segment_bytes;
        let others_bytes = u64::from(self.ranks - 1).saturating_mul(other_bytes);
        let is_out_of_core = self.spec.data_bytes > self.config.pool_bytes;
        let other_files = match self.spec.workload {
            Workload::FalseSharing
            | Workload::Messages
            | Workload::Lists
            | Workload::Operations
            | Workload::Collectives
            | Workload::Ahead
            | Workload::PageSize
            | Workload::Gets
            | Workload::Sweep => 0,
            Workload::Triad | Workload::MappedTriad => 2 * u64::from(is_out_of_core),
            Workload::Small => 2,
            Workload::Table => u64::from(self.ranks),
            _ => 1,
        };
        let plain_bytes = self.spec.data_bytes.saturating_mul(other_files);
        let needed_bytes =
            [self.segment_bytes_max(), others_bytes, plain_bytes].into_iter().fold(0, u64::saturating_add);
        if needed_bytes <= free_bytes {
            return Ok(());
        }
        Err(Stop::failure(format!(
            "{} ranks with {} of data need {} in {}, which has {} free; lower --size or --pool, or change --storage-dir",
            self.ranks,
            format_size_about(self.spec.data_bytes),
            format_size_about(needed_bytes),
            self.config.storage_dir.display(),
            format_size_about(free_bytes),
        )))
    }
}

/// The jobs for every combination of modes, in the order of their runs.
pub fn jobs(modes: &Modes, setup: &Setup, spec: &Spec) -> Result<Vec<Job>, Stop> {
    let mut jobs = Vec::new();
    for &ranks in &modes.ranks {
        for &peer_memory in modes.peer_memory.values() {
            for &cooperative in modes.cooperative.values() {
                jobs.push(Job::new(ranks, cooperative, peer_memory, setup, spec.clone())?);
            }
        }
    }
    jobs.iter().try_for_each(Job::check_space)?;
    Ok(jobs)
}

fn absolute(dir: &Path) -> Result<String, Stop> {
    let found = dir.canonicalize().map_err(|error| Stop::usage(format!("--storage-dir {}: {error}", dir.display())))?;
    Ok(found.display().to_string())
}

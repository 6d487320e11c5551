//! Jobs as requested by the options, and the orders of their ranks.

use crate::Stop;
use crate::benchmark::Benchmark;
use crate::options::{Modes, Setup};
use crate::rows::Row;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::any::Any;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use vgasnet_memory::block_frames;
use vgasnet_settings::{Caching, Config, Machine, environment, format_size, format_size_about};
use vgasnet_storage as storage;

/// The size of a get, and the unit for filling and checking data.
pub const BLOCK_BYTES: u64 = 4 << 20;

/// The data if no option sets its size.
pub const DATA_BYTES_DEFAULT: u64 = 1 << 30;

/// Memory allowed to a rank in addition to its pool.
pub const OUTSIDE_POOL_BYTES: u64 = 64 << 20;

/// Frames needed by loads and stores besides those that are measured, read ahead or written back.
pub const FRAMES_MIN: u64 = 7;

/// Memory of a rank's program without the pool and the blocks: about 8M are used.
const PROGRAM_BYTES: u64 = 12 << 20;

/// The pool if neither an option nor the environment sets one. It is smaller than the default data: the benchmarks are
/// out of core.
const POOL_BYTES_DEFAULT: u64 = 256 << 20;

/// The segments with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Data {
    None,
    /// Only rank 0's.
    First,
    Each,
}

/// Orders to a rank, in JSON on its command line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    pub benchmark: String,
    pub options: Value,
    /// The bytes of a segment with data.
    pub data_bytes: u64,
    pub data: Data,
    pub repeat: u32,
    pub seed: u64,
    /// The process that maps a file, as a baseline; or the reason for having none.
    pub mapping: Result<Mapping, String>,
    /// Whether these are orders to that process.
    pub is_mapped: bool,
    /// An existing file for rank 0's report.
    pub report: PathBuf,
}

/// The directory of a file mapped by a process, and the cgroup that limits the process's memory. The process enters the
/// cgroup itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mapping {
    pub dir: PathBuf,
    pub cgroup: PathBuf,
}

impl Spec {
    /// Number of blocks of the data; the last may be partial.
    pub fn blocks(&self) -> u64 {
        self.data_bytes.div_ceil(BLOCK_BYTES)
    }

    pub fn block_bytes(&self, block: u64) -> usize {
        BLOCK_BYTES.min(self.data_bytes - block * BLOCK_BYTES) as usize
    }

    /// Its form on a command line.
    pub fn to_text(&self) -> Result<String, String> {
        serde_json::to_string(self).map_err(|error| format!("what a rank is told: {error}"))
    }
}

/// One job: its ranks, their environment, their orders.
#[derive(Clone)]
pub struct Job {
    pub ranks: u32,
    pub config: Config,
    /// Environment variables of the ranks in addition to this process's.
    pub vars: Vec<(&'static str, String)>,
    pub spec: Spec,
    /// Threads that compute at the same time.
    pub busy: u16,
    /// Processes that map a file, as a baseline. Together they have the memory of as many ranks.
    pub mapped_processes: u32,
    /// Files of baselines, as large as the data.
    pub baseline_files: u64,
    pub is_small: bool,
    /// A file for the ranks, open until the job has ended.
    pub file: Option<Rc<dyn Any>>,
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
        let has_data = spec.data == Data::Each || (is_first && spec.data == Data::First);
        let mail_offset = bytes_if(has_data, spec.data_bytes);
        let end = mail_offset + bytes_if(is_first, u64::from(ranks) * MAIL_BYTES);
        Layout { mail_offset, segment_bytes: end.max(config.page_bytes) }
    }
}

impl Job {
    /// A job on one host with all kinds of caching.
    pub fn new<B: Benchmark>(options: &B, ranks: u32, setup: &Setup) -> Result<Job, Stop> {
        Job::in_modes(options, ranks, true, true, setup)
    }

    /// A job with checked settings.
    pub fn in_modes<B: Benchmark>(
        options: &B,
        ranks: u32,
        cooperative: bool,
        peer_memory: bool,
        setup: &Setup,
    ) -> Result<Job, Stop> {
        let mut vars = vec![
            ("VGASNET_COOPERATIVE", u8::from(cooperative).to_string()),
            ("VGASNET_PEER_MEMORY", u8::from(peer_memory).to_string()),
        ];
        if !B::IS_SMALL {
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
        let spec = Spec {
            benchmark: B::NAME.to_owned(),
            options: serde_json::to_value(options).map_err(Stop::usage)?,
            data_bytes: 1,
            data: B::DATA,
            repeat: setup.repeat,
            seed: setup.seed,
            mapping: Err("this benchmark compares with no mapped file".into()),
            is_mapped: false,
            report: PathBuf::new(),
        };
        let (busy, is_small) = (setup.busy, B::IS_SMALL);
        Ok(Job { ranks, config, vars, spec, busy, mapped_processes: 0, baseline_files: 0, is_small, file: None })
    }

    /// The data of each segment that has data, and the number of files for baselines.
    pub fn with_data(self, data_bytes: u64, baseline_files: u64) -> Job {
        Job { spec: Spec { data_bytes, ..self.spec }, baseline_files, ..self }
    }

    /// The same with data in whole pages.
    pub fn with_pages(self, size: u64, baseline_files: u64) -> Result<Job, Stop> {
        let whole = size.checked_next_multiple_of(self.config.page_bytes);
        let whole = whole.filter(|size| (1..=i64::MAX as u64 / 4).contains(size));
        let refused = || Stop::usage(format!("--size {size} is not possible; give 1 to {}", i64::MAX / 8));
        Ok(self.with_data(whole.ok_or_else(refused)?, baseline_files))
    }

    /// Refuses a pool without room for the measured `frames`. Loads and stores need one more.
    pub fn with_frames(self, frames: u64) -> Result<Job, Stop> {
        let (page_bytes, pool_bytes) = (self.config.page_bytes, self.config.pool_bytes);
        let pool_bytes_min = (frames + 1) * page_bytes;
        if pool_bytes >= pool_bytes_min {
            return Ok(self);
        }
        let [pool, page, least] = [pool_bytes, page_bytes, pool_bytes_min].map(format_size);
        Err(Stop::usage(format!(
            "--pool {pool} is too small for this benchmark with pages of {page}; give it at least {least}, or a smaller --page"
        )))
    }

    /// The size of rank 0's segment, the largest.
    pub fn segment_bytes_max(&self) -> u64 {
        Layout::new(0, self.ranks, &self.spec, &self.config).segment_bytes
    }

    /// The memory allowed to a rank. With small accesses it is no more than the pool, the blocks and the program.
    pub fn rank_memory_bytes(&self) -> u64 {
        let (pool_bytes, page_bytes) = (self.config.pool_bytes, self.config.page_bytes);
        if !self.is_small {
            return pool_bytes + OUTSIDE_POOL_BYTES;
        }
        let frames = u32::try_from(pool_bytes / page_bytes).unwrap_or(u32::MAX);
        pool_bytes + u64::from(block_frames(frames, page_bytes as usize)) * page_bytes + PROGRAM_BYTES
    }

    /// Refuses a job if its disk has no room for the segments and the files of the baselines.
    pub fn check_space(&self) -> Result<(), Stop> {
        let free_bytes = storage::free_bytes(&self.config.storage_dir).map_err(Stop::failure)?;
        let other_bytes = Layout::new(1, self.ranks, &self.spec, &self.config).segment_bytes;
        let others_bytes = u64::from(self.ranks - 1).saturating_mul(other_bytes);
        let plain_bytes = self.spec.data_bytes.saturating_mul(self.baseline_files);
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

    /// Its properties common to all rounds.
    pub fn setting(&self, mode: &str) -> Row {
        let Config { page_bytes, pool_bytes, caching: Caching { cooperative, peer_memory, .. }, .. } = self.config;
        let row = Row::default().show("mode", mode).show("ranks", self.ranks);
        let row = row.show("page_bytes", page_bytes).show("pool_bytes", pool_bytes);
        let row = row.show("cooperative", cooperative).show("peer_memory", peer_memory);
        row.keep("repeat", self.spec.repeat).keep("seed", self.spec.seed).keep("busy", self.busy)
    }
}

/// A job for every combination of modes, in the order of their runs.
pub fn in_all_modes<B: Benchmark>(options: &B, modes: &Modes, setup: &Setup) -> Result<Vec<Job>, Stop> {
    let mut jobs = Vec::new();
    for &ranks in &modes.ranks {
        for &peer_memory in modes.peer_memory.values() {
            for &cooperative in modes.cooperative.values() {
                jobs.push(Job::in_modes(options, ranks, cooperative, peer_memory, setup)?);
            }
        }
    }
    Ok(jobs)
}

fn absolute(dir: &Path) -> Result<String, Stop> {
    let found = dir.canonicalize().map_err(|error| Stop::usage(format!("--storage-dir {}: {error}", dir.display())))?;
    Ok(found.display().to_string())
}

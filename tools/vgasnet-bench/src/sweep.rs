//! Every rank reads the data of rank 0, with less or more data than the pools hold. Messages are counted.

use crate::Stop;
use crate::input::{Checked, Data};
use crate::options::{Setup, default_unless};
use crate::plan::{BLOCK_BYTES, Spec};
use crate::rank::{Rank, block_buffer, disk_bytes};
use crate::reads::{blocks, fill};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use vgasnet::job;
use vgasnet_measuring::progress;

/// The pool and page size if neither an option nor the environment sets them: many small pages, so that one message too
/// many shows.
const POOL_BYTES_DEFAULT: u64 = 64 << 20;
const PAGE_BYTES_DEFAULT: u64 = 256 << 10;

/// Sizes of the data, in halves of a pool.
const POOL_HALVES: [u64; 6] = [1, 2, 3, 4, 6, 8];

/// Measurements of all ranks by round.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Found {
    pub time_seconds_each: Vec<f64>,
    /// Messages of the protocol, barriers included.
    pub messages_each_all_ranks: Vec<u64>,
    /// In each round.
    pub bytes_read_all_ranks: u64,
    /// Bytes read from the disk in the last round.
    pub disk_read_bytes_all_ranks: u64,
}

/// The setup with this benchmark's own defaults.
pub fn defaults(setup: &Setup) -> Setup {
    let page = setup.page.or(default_unless("VGASNET_PAGE_SIZE", PAGE_BYTES_DEFAULT));
    Setup { page, ..setup.clone() }.with_pool(POOL_BYTES_DEFAULT)
}

/// The sizes of the data: the given ones, or steps up to four pools.
pub fn sizes_bytes(chosen: &[u64], pool_bytes: u64) -> Vec<u64> {
    let steps = POOL_HALVES.map(|halves| (pool_bytes / 2).saturating_mul(halves));
    if chosen.is_empty() { steps.to_vec() } else { chosen.to_vec() }
}

/// Makes the ranks count. Their statistics go to a temporary file, unless they are shown anyway.
pub struct Counting {
    file: Option<PathBuf>,
}

impl Counting {
    pub fn new(are_shown: bool) -> Result<Counting, Stop> {
        if are_shown {
            return Ok(Counting { file: None });
        }
        let path = std::env::temp_dir().join(format!("vgasnet-bench-statistics-{}", std::process::id()));
        // The name can be guessed, so a file placed there by another user must not be opened.
        std::fs::File::create_new(&path).map_err(|error| Stop::failure(format!("{}: {error}", path.display())))?;
        Ok(Counting { file: Some(path) })
    }

    /// The ranks' environment variable for this.
    pub fn variable(&self) -> Option<(&'static str, String)> {
        self.file.as_ref().map(|path| ("VGASNET_STATS_FILE", path.display().to_string()))
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        // If the file is gone, somebody else has removed it.
        self.file.iter().for_each(|path| std::fs::remove_file(path).unwrap_or_default());
    }
}

pub fn run(rank: &Rank, spec: &Spec) -> Found {
    let data = Data::open(spec);
    fill(rank, spec, &data);
    let (mut buffer, mut checked, mut found) = (block_buffer(), Checked::default(), Found::default());
    let bar = progress::bar(rank.is_first(), "reading", u64::from(spec.repeat));
    for round in 0..spec.repeat {
        rank.empty_pool();
        rank.barrier();
        let (sent, [on_disk, _], mut bytes_read) = (messages_sent(), disk_bytes(), 0);
        let time = rank.time(|| {
            for block in blocks(rank, spec, spec.only_random, round) {
                let bytes = &mut buffer[..spec.block_bytes(block)];
                rank.get(0, block * BLOCK_BYTES, bytes);
                data.check(block, bytes, &mut checked);
                bytes_read += bytes.len() as u64;
            }
        });
        let all = rank.gather([messages_sent() - sent, bytes_read, disk_bytes()[0] - on_disk, 0]);
        let sum = |word: usize| all.iter().map(|told| told[word]).sum();
        found.time_seconds_each.push(time.as_secs_f64());
        found.messages_each_all_ranks.push(sum(0));
        (found.bytes_read_all_ranks, found.disk_read_bytes_all_ranks) = (sum(1), sum(2));
        bar.inc(1);
    }
    found
}

fn messages_sent() -> u64 {
    job::protocol_messages_sent().expect("the launcher has had this rank count")
}

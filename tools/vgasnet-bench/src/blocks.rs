//! Loads of shuffled blocks of the own segment, and of a file that a process maps with as much memory.

use crate::cgroup;
use crate::cycle::load;
use crate::memory::Memory;
use crate::plan::{Mapping, Spec, Workload};
use crate::rank::{Rank, fail};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::Instant;
use vgasnet::storage::BackingFile;

/// The unit of shuffling.
const BLOCK_BYTES: usize = 1 << 20;

/// The size of the data is a multiple of this.
pub const UNIT_BYTES: u64 = BLOCK_BYTES as u64;

/// Measurements, round by round.
#[derive(Debug, Serialize, Deserialize)]
pub struct Found {
    pub seconds_each: Vec<f64>,
    /// Those of the mapped file; `Err` says why there are none.
    pub mapped_seconds_each: Result<Vec<f64>, String>,
}

pub fn run(rank: &Rank, spec: &Spec) -> Found {
    let mapped_seconds_each = spec.mapping.as_ref().map_err(String::clone).and_then(|mapping| ask(mapping, spec));
    let block = vec![1; BLOCK_BYTES];
    for offset in (0..spec.data_bytes).step_by(BLOCK_BYTES) {
        rank.put(0, offset, &block);
    }
    rank.write_back();
    rank.empty_pool();
    // SAFETY: the segment begins with the data, which nobody writes any more.
    let seconds_each = unsafe { rounds(rank.own_segment(), spec) };
    Found { seconds_each, mapped_seconds_each }
}

/// Loads all blocks in an order that each round draws anew.
///
/// # Safety
/// The data lies at `start`, and nobody writes it.
unsafe fn rounds(start: *const u8, spec: &Spec) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(spec.seed);
    let mut order: Vec<usize> = (0..spec.data_bytes as usize / BLOCK_BYTES).collect();
    let round = |_| {
        random.shuffle(&mut order);
        let begun = Instant::now();
        for block in &order {
            // SAFETY: the block is part of the data.
            unsafe { load(start.add(block * BLOCK_BYTES), BLOCK_BYTES) };
        }
        begun.elapsed().as_secs_f64()
    };
    (0..spec.repeat).map(round).collect()
}

/// Runs the process that maps a file to its end.
fn ask(mapping: &Mapping, spec: &Spec) -> Result<Vec<f64>, String> {
    let spec = Spec { workload: Workload::MappedBlocks, mapping: Ok(mapping.clone()), ..spec.clone() };
    let told = serde_json::to_string(&spec).map_err(|error| error.to_string())?;
    let program = std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))?;
    let run = Command::new(program).arg("rank").arg(told).stderr(Stdio::inherit()).output();
    let output = run.map_err(|error| format!("starting a process: {error}"))?;
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| Err(format!("its process ended with {}", output.status)))
}

/// The work of the process. It enters the cgroup before it touches memory, so that all its memory counts there.
pub fn serve(spec: &Spec) {
    let found = spec.mapping.as_ref().map_err(String::clone).and_then(|mapping| {
        cgroup::enter(&mapping.cgroup)?;
        mapped_rounds(mapping, spec).map_err(|error| format!("a file in {}: {error}", mapping.dir.display()))
    });
    serde_json::to_writer(std::io::stdout(), &found).unwrap_or_else(|error| fail(format!("an answer: {error}")));
}

fn mapped_rounds(mapping: &Mapping, spec: &Spec) -> std::io::Result<Vec<f64>> {
    let backing = BackingFile::create(&mapping.dir, spec.data_bytes).unwrap_or_else(|error| fail(error.to_string()));
    let file = File::from(backing.as_fd().try_clone_to_owned()?);
    // Direct I/O takes memory at a multiple of a block.
    let mut block = Memory::shared(BLOCK_BYTES);
    for offset in (0..spec.data_bytes).step_by(BLOCK_BYTES) {
        file.write_all_at(block.bytes(), offset)?;
    }
    file.sync_all()?;
    let memory = Memory::of_file(backing.as_fd(), spec.data_bytes as usize)?;
    // SAFETY: the mapping is as long as the data, of a file that nobody else has.
    Ok(unsafe { rounds(memory.start(), spec) })
}

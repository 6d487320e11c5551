//! Loads of shuffled blocks of the own segment, and of a file mapped by a process with the same memory.

use crate::cycle::load;
use crate::mapped::{self, Process, answer, written_file};
use crate::plan::{Mapping, Spec, Workload};
use crate::rank::Rank;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// The unit of shuffling.
const BLOCK_BYTES: usize = 1 << 20;

/// The size of the data is a multiple of this.
pub const UNIT_BYTES: u64 = BLOCK_BYTES as u64;

/// Measurements, round by round.
#[derive(Debug, Serialize, Deserialize)]
pub struct Found {
    pub seconds_each: Vec<f64>,
    /// For the mapped file; `Err` has the reason for having none.
    pub mapped_seconds_each: Result<Vec<f64>, String>,
}

pub fn run(rank: &Rank, spec: &Spec) -> Found {
    let mapped_seconds_each = Process::start(Workload::MappedBlocks, spec).step();
    let block = vec![1; BLOCK_BYTES];
    for offset in (0..spec.data_bytes).step_by(BLOCK_BYTES) {
        rank.put(0, offset, &block);
    }
    rank.write_back();
    rank.empty_pool();
    // SAFETY: the segment starts with the data, and the data is no longer written.
    let seconds_each = unsafe { rounds(rank.own_segment(), spec) };
    Found { seconds_each, mapped_seconds_each }
}

/// Loads all blocks in a new random order each round.
///
/// # Safety
/// The data lies at `start` and is not written.
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

/// The work of the process with the mapped file: all rounds in one step.
pub fn serve(spec: &Spec) {
    mapped::serve(spec, |mapping| {
        let found = mapped_rounds(mapping, spec);
        answer(found.map_err(|error| format!("a file in {}: {error}", mapping.dir.display())));
    });
}

fn mapped_rounds(mapping: &Mapping, spec: &Spec) -> std::io::Result<Vec<f64>> {
    let memory = written_file(&mapping.dir, spec.data_bytes, |_, _| ())?;
    // SAFETY: the mapping is as long as the data. The file has no other user.
    Ok(unsafe { rounds(memory.start(), spec) })
}

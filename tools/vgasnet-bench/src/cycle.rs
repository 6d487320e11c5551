//! A cyclic scan over twice the pool, by gets and by loads: the fraction of pages not read from the disk in each round.

use crate::plan::Spec;
use crate::rank::{Rank, disk_bytes, fail};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Rounds before the first that counts. They fill the pool and show the scan to the replacement policy.
const ROUNDS_BEFORE: u32 = 2;

/// Size of the scan, in pools.
pub const SEGMENT_POOLS: u64 = 2;

/// Frames needed by the scan, plus one.
pub const FRAMES_MIN: u64 = 7;

/// The size of a get.
const GET_BYTES: usize = 64 << 10;

/// Measurements by round.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Found {
    pub gets: Rounds,
    pub loads: Rounds,
}

/// Rounds of one way of reading.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Rounds {
    /// The fraction of pages not read from the disk.
    pub kept_each: Vec<f64>,
    pub seconds_each: Vec<f64>,
}

/// Rank 0 scans; the others are idle.
pub fn run(rank: &Rank, spec: &Spec) -> Found {
    if !rank.is_first() {
        return Found::default();
    }
    let page = vec![1; rank.page_bytes];
    for offset in (0..spec.data_bytes).step_by(rank.page_bytes) {
        rank.put(0, offset, &page);
    }
    rank.write_back();
    let mut buffer = vec![0; GET_BYTES];
    let gets = rounds(rank, spec, || {
        for offset in (0..spec.data_bytes).step_by(GET_BYTES) {
            rank.get(0, offset, &mut buffer);
        }
    });
    // SAFETY: the segment starts with the data, and the data is no longer written.
    let loads = rounds(rank, spec, || unsafe { load(rank.own_segment(), spec.data_bytes as usize) });
    Found { gets, loads }
}

fn rounds(rank: &Rank, spec: &Spec, mut scan: impl FnMut()) -> Rounds {
    let mut found = Rounds::default();
    for round in 0..ROUNDS_BEFORE + spec.repeat {
        let ([read_before, _], start) = (disk_bytes(), Instant::now());
        scan();
        let seconds = start.elapsed().as_secs_f64();
        let read_bytes = disk_bytes()[0] - read_before;
        // With other ranks, all pages may be in the other pools.
        if round == 0 && read_bytes == 0 && rank.ranks == 1 {
            fail("the kernel does not count what this process reads from the disk; use a --storage-dir on a disk");
        }
        if round >= ROUNDS_BEFORE {
            found.kept_each.push(1.0 - read_bytes as f64 / spec.data_bytes as f64);
            found.seconds_each.push(seconds);
        }
    }
    found
}

/// Loads one word per cache line.
///
/// # Safety
/// `start` is valid for reading `len_bytes`, and the bytes are not written meanwhile.
pub unsafe fn load(start: *const u8, len_bytes: usize) {
    const LINE_BYTES: usize = 64;
    for offset in (0..len_bytes).step_by(LINE_BYTES) {
        // SAFETY: the word lies in the range and is aligned.
        unsafe { start.add(offset).cast::<u64>().read_volatile() };
    }
}

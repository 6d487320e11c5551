//! The latency of a miss during read-ahead of a large range, compared with a miss on an idle disk.

use crate::plan::{BLOCK_BYTES, Spec};
use crate::rank::{Rank, block_buffer, fail};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::{Duration, Instant};
use vgasnet::ops::Advice;
use vgasnet_measuring::progress;

/// Misses in one measurement.
const MISSES: u64 = 32;

/// A pause before each miss, so that the disk is busy with other reads by then.
const PAUSE: Duration = Duration::from_millis(3);

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Found {
    /// The size of the read-ahead.
    pub ahead_bytes: u64,
    pub idle_us_each: Vec<f64>,
    /// Misses with read-ahead in flight both before and after.
    pub beside_us_each: Vec<f64>,
}

/// Bytes of the unrelated pages. Each is missed at most once a round.
pub fn unrelated_bytes(page_bytes: u64) -> u64 {
    2 * MISSES * page_bytes
}

pub fn run(rank: &Rank, spec: &Spec) -> Found {
    let unrelated = unrelated_bytes(rank.page_bytes as u64);
    let ahead_bytes = spec.data_bytes - unrelated;
    let mut found = Found { ahead_bytes, ..Found::default() };
    let buffer = block_buffer();
    for block in 0..spec.blocks() {
        rank.put(0, block * BLOCK_BYTES, &buffer[..spec.block_bytes(block)]);
    }
    let bar = progress::bar(true, "misses", u64::from(spec.repeat));
    let mut random = fastrand::Rng::with_seed(spec.seed);
    for _ in 0..spec.repeat {
        // No two adjacent pages: they would look like a stream.
        let mut pages: Vec<u64> = (0..MISSES).map(|page| 2 * page).collect();
        rank.write_back();
        advise(rank, 0, spec.data_bytes, Advice::DontNeed);
        random.shuffle(&mut pages);
        found.idle_us_each.extend(pages.iter().map(|page| miss_us(rank, ahead_bytes, *page)));
        advise(rank, 0, spec.data_bytes, Advice::DontNeed);
        advise(rank, 0, ahead_bytes, Advice::WillNeed);
        random.shuffle(&mut pages);
        for page in pages {
            let us = miss_us(rank, ahead_bytes, page);
            if rank.runtime.driver().engine().pending().ahead == 0 {
                break;
            }
            found.beside_us_each.push(us);
        }
        rank.runtime.driver().wait_until(&|| rank.runtime.driver().engine().pending().ahead == 0);
        bar.inc(1);
    }
    if found.beside_us_each.is_empty() {
        fail("all was read ahead before the first miss; give a larger --size");
    }
    found
}

fn miss_us(rank: &Rank, start_bytes: u64, page: u64) -> f64 {
    std::thread::sleep(PAUSE);
    let start = Instant::now();
    rank.get(0, start_bytes + page * rank.page_bytes as u64, black_box(&mut [0]));
    start.elapsed().as_secs_f64() * 1e6
}

fn advise(rank: &Rank, offset: u64, len_bytes: u64, advice: Advice) {
    let address = rank.own_segment().addr() + offset as usize;
    let advised = rank.runtime.ops().advise(address, len_bytes as usize, advice);
    advised.unwrap_or_else(|error| fail(error.to_string()));
}

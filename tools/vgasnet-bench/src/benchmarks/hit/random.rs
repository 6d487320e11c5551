//! Gets of 8 bytes at random places in resident pages, compared with plain loads of the same pattern.

use crate::at_random::{Places, mean_of_ranks, owners_and_threads, thread_time_ns};
use crate::calls;
use crate::prelude::*;

/// Sizes of the working set: within a processor's own cache, and beyond. Sizes too large for the pool are omitted.
const WORKING_SETS: [u64; 3] = [1 << 20, 16 << 20, 128 << 20];

/// Gets of a thread in one measurement.
const GETS: usize = 1 << 18;

/// The largest working set for a pool.
pub fn data_bytes(pool_bytes: u64) -> u64 {
    fitting(pool_bytes).max().unwrap_or(0)
}

fn fitting(pool_bytes: u64) -> impl Iterator<Item = u64> {
    WORKING_SETS.into_iter().filter(move |bytes| *bytes <= pool_bytes / 2)
}

/// Processor time of a get and of a load, with one thread and with `threads` per rank and all ranks at once. Each value
/// is the mean over all ranks in a round. Neither operation sleeps. A loop of gets takes longer, so it would be preempted
/// more often on a busy machine; processor time is not affected. Collective.
pub fn run(rank: &Rank, spec: &Spec, threads: u32) -> Vec<Row> {
    let mut found = Vec::new();
    for bytes in fitting(rank.pool_bytes) {
        let mut memory = Memory::allocated(bytes as usize, true);
        memory.bytes().fill(1);
        let start = memory.start().expose_provenance();
        // Every rank's pages are fetched into its own pool, for itself and its neighbour.
        for offset in (0..bytes).step_by(rank.page_bytes) {
            rank.get(rank.me, offset, &mut [0; 8]);
        }
        rank.barrier();
        for (neighbour, threads) in owners_and_threads(rank, threads) {
            let whose = if neighbour { "neighbour's" } else { "own" };
            let label = format!("8 bytes in {}, {threads} threads, {whose} pool", format_size(bytes));
            let row = Row::labelled(label).keep("working_set_bytes", bytes).keep("threads", threads);
            let mut row = row.keep("neighbour", neighbour);
            for round in 0..=spec.repeat {
                let load = mean_of_ranks(rank, threads, |thread| loads(rank, start, bytes, thread));
                let get = mean_of_ranks(rank, threads, |thread| gets(rank, neighbour, bytes, thread));
                // The first round brings the pages into place.
                if round > 0 {
                    row.add("get_ns", get);
                    row.add("load_ns", load);
                }
            }
            let over_load_ns = row.number("get_ns") - row.number("load_ns");
            found.push(row.show("over_load_ns", over_load_ns));
        }
    }
    found
}

fn loads(rank: &Rank, memory: usize, bytes: u64, thread: u32) -> f64 {
    let mut places = Places::new(rank, thread, bytes);
    let start_ns = thread_time_ns();
    let mut sum = 0u64;
    for _ in 0..GETS {
        // SAFETY: the place is aligned and inside the memory, which is not written.
        sum = sum
            .wrapping_add(unsafe { std::ptr::with_exposed_provenance::<u64>(memory + places.next()).read_volatile() });
    }
    black_box(sum);
    (thread_time_ns() - start_ns) / GETS as f64
}

fn gets(rank: &Rank, neighbour: bool, bytes: u64, thread: u32) -> f64 {
    let from = if neighbour { (rank.me + 1) % rank.ranks } else { rank.me };
    let base = rank.segment_base(from);
    let mut places = Places::new(rank, thread, bytes);
    let start_ns = thread_time_ns();
    let mut sum = 0u64;
    for _ in 0..GETS {
        let mut value = [0; size_of::<u64>()];
        calls::get(&mut value, from, base + places.next());
        sum = sum.wrapping_add(u64::from_ne_bytes(value));
    }
    black_box(sum);
    (thread_time_ns() - start_ns) / GETS as f64
}

//! Whole engines under a simulated network and simulated disks, driven by one thread that draws what happens next from
//! a seed.
//!
//! The protocol's own simulation has only state machines, to which one thing happens at a time. Here the engine, the
//! storage server, page tables, pools and completions are around them. Client threads pin and copy meanwhile; others
//! load from and store to their rank's segment, through a mapper that notes what it maps.
//!
//! A failure prints the command that replays it. `ENGINE_SIM_SEEDS` sets how many seeds a run tries, `ENGINE_SIM_FIRST`
//! where it begins, `ENGINE_SIM_SEED` runs one.

mod blocks;
mod busy;
mod check;
mod cleaning;
mod client;
mod crowd;
mod directed;
mod disk;
mod files;
mod forged;
mod job;
mod mapped;
mod mapper;
mod model;
mod phases;
mod pinned;
mod pins;
mod run;
mod runtimes;
mod seen;
mod small_operations;
mod threads;
mod touch;
mod uncooperative;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

/// Runs a seed. When it fails, says how to run it again, and calls `on_failure` before it panics.
fn run_seed(seed: u64, on_failure: impl FnOnce()) -> run::Summary {
    match catch_unwind(AssertUnwindSafe(|| run::run(seed))) {
        Ok(summary) => summary,
        Err(cause) => {
            eprintln!(
                "replay: ENGINE_SIM_SEED={seed} cargo test --release --test engine_simulation random -- --nocapture"
            );
            on_failure();
            resume_unwind(cause)
        }
    }
}

#[test]
fn random_jobs_keep_every_invariant() {
    if let Some(seed) = number("ENGINE_SIM_SEED") {
        println!("{:?}", run_seed(seed, || ()));
        return;
    }
    let first = number("ENGINE_SIM_FIRST").unwrap_or(0);
    let end = first + number("ENGINE_SIM_SEEDS").unwrap_or(300);
    let next = AtomicU64::new(first);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let total = std::thread::scope(|scope| {
        let worker = || {
            let mut total = run::Summary::default();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= end {
                    return total;
                }
                total += run_seed(seed, || next.store(end, Ordering::Relaxed));
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let mut total = run::Summary::default();
        for worker in workers {
            total += worker.join().unwrap_or_else(|cause| resume_unwind(cause));
        }
        total
    });
    println!("seeds {first}..{end}: {total:?}");
    total.assert_covers(end - first);
}

#[test]
fn a_seed_is_one_run() {
    for seed in [3, 4, 5] {
        assert_eq!(run::run(seed), run::run(seed));
    }
}

//! Runs of many seeds, on all processors.

use std::fmt::Debug;
use std::ops::AddAssign;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// The seeds of a test.
pub struct Seeds {
    /// `VARIABLE_SEED` is the only seed to run, `VARIABLE_FIRST` the first one, `VARIABLE_SEEDS` their number.
    pub variable: &'static str,
    /// A filter for `cargo test` that selects only this test.
    pub filter: &'static str,
    /// How many seeds are run by default.
    pub default: u64,
}

impl Seeds {
    /// Runs the seeds. Returns the sum of their results and their number, or `None` if a single seed was asked for.
    pub fn run<S: Default + AddAssign + Debug + Send>(&self, run: impl Fn(u64) -> S + Sync) -> Option<(S, u64)> {
        let number = |what: &str| number(&format!("{}_{what}", self.variable));
        if let Some(seed) = number("SEED") {
            println!("{:?}", self.run_one(seed, &run, || ()));
            return None;
        }
        let first = number("FIRST").unwrap_or(0);
        let end = first + number("SEEDS").unwrap_or(self.default);
        let next = AtomicU64::new(first);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let worker = || {
            let mut total = S::default();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= end {
                    return total;
                }
                total += self.run_one(seed, &run, || next.store(end, Ordering::Relaxed));
            }
        };
        let total = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
            let mut total = S::default();
            for worker in workers {
                total += worker.join().unwrap_or_else(|cause| resume_unwind(cause));
            }
            total
        });
        println!("seeds {first}..{end}: {total:?}");
        Some((total, end - first))
    }

    /// Runs a seed. On failure prints the command to repeat it, and calls `on_failure` before it panics.
    fn run_one<S>(&self, seed: u64, run: impl Fn(u64) -> S, on_failure: impl FnOnce()) -> S {
        catch_unwind(AssertUnwindSafe(|| run(seed))).unwrap_or_else(|cause| {
            let Seeds { variable, filter, .. } = self;
            eprintln!(
                "replay: {variable}_SEED={seed} cargo test --profile quick -p vgasnet --test engine_simulation {filter} -- --nocapture"
            );
            on_failure();
            resume_unwind(cause)
        })
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

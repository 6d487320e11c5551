//! Every rank puts ten single bytes into one page of rank 0, then waits at a barrier, repeatedly.

use crate::plan::{Job, Spec};
use crate::rank::{Rank, fail};
use serde::{Deserialize, Serialize};
use vgasnet_measuring::progress;

/// Puts of a rank between two barriers.
pub const PUTS: u64 = 10;

/// Number of ranks in the job with a target.
const JUDGED_RANKS: u32 = 4;

/// Whether the job has a target. If ranks share memory, a rank's puts reach another rank's frame directly.
pub fn is_judged(job: &Job) -> bool {
    job.ranks == JUDGED_RANKS && !job.config.peer_memory
}

/// Measurements of rank 0 by repetition.
#[derive(Debug, Serialize, Deserialize)]
pub struct Found {
    pub time_seconds_each: Vec<f64>,
    /// The same number of barriers without puts.
    pub barriers_seconds_each: Vec<f64>,
}

pub fn run(rank: &Rank, spec: &Spec) -> Found {
    let rounds = spec.count;
    let mut found = Found { time_seconds_each: Vec::new(), barriers_seconds_each: Vec::new() };
    let bar = progress::bar(rank.is_first(), "sharing a page", u64::from(spec.repeat) * u64::from(rounds));
    for repetition in 0..spec.repeat {
        let barriers = rank.time(|| (0..rounds).for_each(|_| rank.barrier()));
        let time = rank.time(|| {
            for round in 0..rounds {
                for put in 0..PUTS {
                    rank.put(0, place(rank.me, put), &[value(repetition, round)]);
                }
                rank.barrier();
                bar.inc(1);
            }
        });
        check(rank, value(repetition, rounds - 1));
        found.time_seconds_each.push(time.as_secs_f64());
        found.barriers_seconds_each.push(barriers.as_secs_f64());
    }
    found
}

/// The ranks' bytes are adjacent.
fn place(rank: u32, put: u64) -> u64 {
    u64::from(rank) * PUTS + put
}

fn value(repetition: u32, round: u32) -> u8 {
    (repetition.wrapping_mul(7).wrapping_add(round) % 255) as u8 + 1
}

/// Checks that this rank sees the last puts of every rank.
fn check(rank: &Rank, value: u8) {
    let mut bytes = vec![0; place(rank.ranks, 0) as usize];
    rank.get(0, 0, &mut bytes);
    if let Some(at) = bytes.iter().position(|byte| *byte != value) {
        let (putter, read) = (at as u64 / PUTS, bytes[at]);
        fail(format!(
            "byte {at} of the shared page is {read}; rank {putter} put {value} there before the last barrier"
        ));
    }
    rank.barrier();
}

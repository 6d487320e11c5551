//! Every rank puts ten single bytes into one page of rank 0, then waits at a barrier, repeatedly.

use crate::Stop;
use crate::prelude::*;

/// Puts of a rank between two barriers.
const PUTS: u64 = 10;

/// Every rank puts ten single bytes into one page, then waits at a barrier, repeatedly
#[derive(Args, Serialize, Deserialize)]
pub struct FalseSharing {
    #[command(flatten)]
    modes: Modes,

    #[command(flatten)]
    setup: Setup,

    /// Rounds of puts and a barrier in each repetition
    #[arg(long, visible_alias = "size", value_name = "N", default_value_t = 100, value_parser = within(1..=1_000_000))]
    rounds: u32,

    /// Exit with status 1 if a figure is worse than wanted, for 4 ranks without shared memory
    #[arg(long)]
    check: bool,
}

/// Whether a job has a target. If ranks share memory, a rank's puts reach another rank's frame directly.
fn is_judged(ranks: u32, peer_memory: bool) -> bool {
    ranks == 4 && !peer_memory
}

impl Benchmark for FalseSharing {
    const NAME: &'static str = "false-sharing";
    const IS_SMALL: bool = true;

    fn plan(&self) -> Result<Vec<Job>, Stop> {
        let jobs = in_all_modes(self, &self.modes, &self.setup)?;
        if self.check && !jobs.iter().any(|job| is_judged(job.ranks, job.config.caching.peer_memory)) {
            return Err(Stop::usage("--check is about 4 ranks that do not share memory; give -n 4 --peer-memory off"));
        }
        Ok(jobs)
    }

    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
        let rounds = self.rounds;
        let mut row = Row::default().show("rounds", rounds).keep("puts_per_rank_and_round", PUTS);
        let bar = progress::bar(rank.is_first(), "sharing a page", u64::from(spec.repeat) * u64::from(rounds));
        for repetition in 0..spec.repeat {
            row.add("barriers_seconds", rank.time(|| (0..rounds).for_each(|_| rank.barrier())).as_secs_f64());
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
            row.add("time_seconds", time.as_secs_f64());
        }
        let barrier_seconds = row.number("barriers_seconds") / f64::from(rounds);
        let round_seconds = row.number("time_seconds") / f64::from(rounds);
        let row = row
            .hide(&["barriers_seconds"])
            .show("round_seconds", round_seconds)
            .show("puts_per_second", (u64::from(rank.ranks) * PUTS) as f64 / round_seconds)
            .show("barrier_seconds", barrier_seconds)
            .ratio("round_to_barrier", "round_seconds", "barrier_seconds");
        let judged = is_judged(rank.ranks, rank.has_peer_memory()).then_some(row.number("round_to_barrier"));
        Figures::of(row).target(
            "round_to_barrier",
            "round of ten puts a rank to a barrier",
            judged,
            Bound::AtMost,
            10.0,
        )
    }
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

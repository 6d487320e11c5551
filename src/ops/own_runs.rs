//! Runs of a list between two segments: their local side lies in the own one.
//!
//! They are copied through a buffer, many at a time, so that a small pool does not alternate between the pages of both
//! sides for each run. A run with a missing page goes through a buffer of its own without a waiting thread.

use super::bounce_buffer::{OnTheWay, PageCopy};
use super::hits::Batch;
use super::{Direction, Operation, Ops, Remote, Run};
use std::ops::Range;
use vgasnet_engine::request::CompletionId;
use vgasnet_settings::UserError;

/// Maximum number of runs copied through a buffer together.
const RUNS_MAX: usize = 1024;

/// Maximum bytes of runs copied through a buffer together. A run of this size goes by itself.
pub(super) const OWN_RUN_BYTES_MAX: usize = 64 << 10;

/// Runs copied through a buffer together, with their offsets in it.
#[derive(Default)]
pub(super) struct OwnRuns {
    runs: Vec<(usize, Run)>,
    len_bytes: usize,
}

impl OwnRuns {
    /// Adds a run. Returns whether there was room.
    pub(super) fn add(&mut self, run: Run) -> bool {
        let has_room = self.runs.len() < RUNS_MAX && self.len_bytes + run.len_bytes <= OWN_RUN_BYTES_MAX;
        if has_room {
            self.runs.push((self.len_bytes, run));
            self.len_bytes += run.len_bytes;
        }
        has_room
    }
}

/// The two sides of the runs, and their completion.
struct Way {
    direction: Direction,
    from_rank: u32,
    to_rank: u32,
    completion: CompletionId,
}

impl Way {
    fn from(&self, run: &Run) -> Remote {
        let address = if self.direction == Direction::Get { run.remote } else { run.local };
        Remote { rank: self.from_rank, address, len_bytes: run.len_bytes }
    }

    fn to(&self, run: &Run) -> Remote {
        let address = if self.direction == Direction::Get { run.local } else { run.remote };
        Remote { rank: self.to_rank, address, len_bytes: run.len_bytes }
    }
}

impl Ops {
    /// Performs runs between the segment of `rank` and the own one with all pages open, and starts the others, which
    /// count in `completion`.
    ///
    /// # Errors
    /// A run is not inside its segment, or lies in a range declared read-only by this rank.
    pub(super) fn start_own_runs(
        &self,
        direction: Direction,
        rank: u32,
        own_runs: &mut OwnRuns,
        completion: CompletionId,
    ) -> Result<(), UserError> {
        let OwnRuns { mut runs, len_bytes } = std::mem::take(own_runs);
        if runs.is_empty() {
            return Ok(());
        }
        let own = self.space.rank.0;
        let (from_rank, to_rank) = if direction == Direction::Get { (rank, own) } else { (own, rank) };
        let way = Way { direction, from_rank, to_rank, completion };
        if self.readonly.is_any() {
            runs.iter().try_for_each(|(_, run)| self.readonly.check_write(&way.to(run)))?;
        }
        let mut buffer = vec![0_u8; len_bytes];
        let start = buffer.as_mut_ptr().expose_provenance();
        self.get_own_runs(&way, start, &mut runs)?;
        self.put_own_runs(&way, start, &runs)
    }

    /// Gets runs into the buffer at `start`. Runs with a missing page are started apart and removed from the list.
    fn get_own_runs(&self, way: &Way, start: usize, runs: &mut Vec<(usize, Run)>) -> Result<(), UserError> {
        let mut misses: Vec<(Range<usize>, Option<PageCopy>)> = Vec::new();
        let mut gets = runs.iter().map(|(at, run)| {
            let Remote { address, len_bytes, .. } = way.from(run);
            Run { local: start + at, remote: address, len_bytes }
        });
        let mut batch = Batch::new();
        while batch.refill(&mut gets) {
            loop {
                // SAFETY: each run has its own part of the buffer, of its length.
                let missed = unsafe { self.hits.runs(Direction::Get, way.from_rank, &mut batch) };
                let Some(run) = batch.take() else { break };
                let get = Operation::Get(std::ptr::with_exposed_provenance_mut(run.local));
                if self.keeps_copies(&get) {
                    // SAFETY: the run has its own part of the buffer, of its length.
                    unsafe { self.transfer(get, run.at(way.from_rank))? };
                } else {
                    let at = run.local - start;
                    misses.push((at..at + run.len_bytes, missed.map(|_| PageCopy::NoSource)));
                }
            }
        }
        if misses.is_empty() {
            return Ok(());
        }
        let mut on_the_way = OnTheWay::new(way.completion);
        let mut start_missed = |(at, run): &(usize, Run)| {
            let next = misses.partition_point(|(missed, _)| missed.end <= *at);
            let Some((_, known)) = misses.get(next).filter(|(missed, _)| missed.start <= *at) else { return Ok(true) };
            self.bring(way.from(run), way.to(run), *known, |from, to, missing| {
                self.start_through(&mut on_the_way, from, to, missing)
            })?;
            Ok(false)
        };
        let mut error = None;
        runs.retain(|run| start_missed(run).unwrap_or_else(|refused| error.replace(refused).is_some()));
        self.submit_missing(&mut on_the_way.parts);
        error.map_or(Ok(()), Err)
    }

    /// Puts runs from the buffer, or starts to, with a copy.
    fn put_own_runs(&self, way: &Way, start: usize, runs: &[(usize, Run)]) -> Result<(), UserError> {
        let mut puts = runs.iter().map(|(at, run)| {
            let Remote { address, len_bytes, .. } = way.to(run);
            Run { local: start + at, remote: address, len_bytes }
        });
        let mut missing = Vec::new();
        let mut batch = Batch::new();
        while batch.refill(&mut puts) {
            loop {
                // SAFETY: each run has its own part of the buffer, of its length.
                let missed = unsafe { self.hits.runs(Direction::Put, way.to_rank, &mut batch) };
                let Some(run) = batch.take() else { break };
                let put = Operation::PutNow(std::ptr::with_exposed_provenance(run.local));
                // SAFETY: as above; the put has read the buffer when this returns.
                unsafe {
                    let resolved = self.resolve_after(missed, put, run.at(way.to_rank))?;
                    self.add_rest(resolved, way.completion, &mut missing)?;
                }
            }
        }
        self.submit_missing(&mut missing);
        Ok(())
    }
}

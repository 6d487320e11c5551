//! Transfers between lists of regions: vectors, indexed and strided ones.
//!
//! Both sides are paired up into contiguous runs, and each run is done like a get or put. The engine gets all misses
//! together and fetches their pages in parallel.
//!
//! Source: the interface of GASNet-1's vector, indexed and strided transfers (reference, K.4).

use super::hits::Batch;
use super::nonblocking::{Kind, note_source};
use super::own_runs::{OWN_RUN_BYTES_MAX, OwnRuns};
use super::{Operation, Ops, Remote, Run};
use vgasnet_engine::request::{CompletionId, Handle, Part};
use vgasnet_memory::Piece;
use vgasnet_protocol::coherence::Access;
use vgasnet_settings::UserError;

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the rank to local memory.
    Get,
    /// From local memory to the rank; the memory belongs to the transfer until it is complete.
    Put,
}

impl Direction {
    /// The access to the rank's pages.
    pub(super) fn access(self) -> Access {
        match self {
            Direction::Get => Access::Read,
            Direction::Put => Access::Write,
        }
    }

    fn operation(self, local: usize) -> Operation {
        match self {
            Direction::Get => Operation::Get(std::ptr::with_exposed_provenance_mut(local)),
            Direction::Put => Operation::Put(std::ptr::with_exposed_provenance(local)),
        }
    }
}

impl Ops {
    /// Transfers between local memory and the segment of `rank`, and returns when the transfer is complete.
    ///
    /// # Errors
    /// A run is not inside the rank's segment, or its local side is null.
    ///
    /// # Safety
    /// The local side of each run is valid for its length, or null.
    pub unsafe fn transfer_runs(
        &self,
        direction: Direction,
        rank: u32,
        runs: impl Iterator<Item = Run>,
    ) -> Result<(), UserError> {
        let completion = self.completions().begin();
        // SAFETY: the local side of each run is valid for its length or null, and this function waits for the
        // completion.
        let started = unsafe { self.start_runs(direction, rank, runs, completion) };
        // After an error the job ends. Gets that joined an unsubmitted one would wait for ever.
        started?;
        self.driver.finish(completion);
        Ok(())
    }

    /// Starts a transfer. `None`: it is complete already.
    ///
    /// # Errors
    /// As [`Ops::transfer_runs`].
    ///
    /// # Safety
    /// The local side of each run is valid for its length, or null, until the handle has been synced.
    pub unsafe fn start_runs_explicit(
        &self,
        direction: Direction,
        rank: u32,
        runs: impl Iterator<Item = Run>,
    ) -> Result<Option<Handle>, UserError> {
        let completion = self.completions().begin();
        // SAFETY: the local side of each run is valid for its length or null until the handle of this completion is
        // synced.
        let started = unsafe { self.start_runs(direction, rank, runs, completion) };
        let handle = self.handle_unless_done(completion);
        started.map(|()| handle)
    }

    /// Starts a transfer counted among this thread's implicit gets or puts, or in its open access region.
    ///
    /// # Errors
    /// As [`Ops::transfer_runs`].
    ///
    /// # Safety
    /// The local side of each run is valid for its length, or null, until the thread has synced its implicit
    /// operations.
    pub unsafe fn start_runs_implicit(
        &self,
        direction: Direction,
        rank: u32,
        runs: impl Iterator<Item = Run>,
    ) -> Result<(), UserError> {
        let completion = self.implicit_completion(if direction == Direction::Get { Kind::Get } else { Kind::Put });
        // SAFETY: the local side of each run is valid for its length or null until the thread's implicit operations are
        // synced.
        unsafe { self.start_runs(direction, rank, runs, completion) }
    }

    /// As [`Ops::start_runs_implicit`] of a put; a sync of sources waits until the put has read the local side.
    ///
    /// # Errors
    /// As [`Ops::transfer_runs`].
    ///
    /// # Safety
    /// The local side of each run is valid for its length, or null, until the thread has synced its sources.
    pub unsafe fn start_runs_implicit_put(&self, rank: u32, runs: impl Iterator<Item = Run>) -> Result<(), UserError> {
        note_source();
        // SAFETY: the sources are synced with the puts, so the local side is valid as long as the put may read it.
        unsafe { self.start_runs_implicit(Direction::Put, rank, runs) }
    }

    /// Performs the hits and starts the other parts, which count in `completion`.
    ///
    /// # Safety
    /// The local side of each run is valid for its length, or null, until nothing is pending in `completion`.
    unsafe fn start_runs(
        &self,
        direction: Direction,
        rank: u32,
        mut runs: impl Iterator<Item = Run>,
        completion: CompletionId,
    ) -> Result<(), UserError> {
        // Even an empty transfer needs a valid rank.
        self.space.pieces(rank, 0, 0)?;
        let mut waiting = Missing::default();
        let mut batch = Batch::new();
        while batch.refill(&mut runs) {
            if direction == Direction::Put && self.readonly.is_any() {
                batch.left().iter().try_for_each(|run| self.readonly.check_write(&run.at(rank)))?;
            }
            loop {
                // SAFETY: the local side of each run is valid for its length, or null.
                let missed = unsafe { self.hits.runs(direction, rank, &mut batch) };
                let Some(run) = batch.take() else { break };
                // SAFETY: the local side of the run is valid for its length, or null, until nothing is pending in
                // `completion`.
                unsafe { self.start_run(direction, run.at(rank), (run, missed), completion, &mut waiting)? };
            }
        }
        self.submit_missing(&mut waiting.parts);
        self.start_own_runs(direction, rank, &mut waiting.own, completion)
    }

    /// Performs a run, or leaves it or parts of it in `waiting`. The run comes with its piece if that has missed.
    ///
    /// # Safety
    /// As [`Ops::start_runs`].
    unsafe fn start_run(
        &self,
        direction: Direction,
        remote: Remote,
        (run, missed): (Run, Option<Piece>),
        completion: CompletionId,
        waiting: &mut Missing,
    ) -> Result<(), UserError> {
        let is_local = self.is_in_own_memory(remote);
        if is_local || self.space.own_segment().overlaps(run.local, run.len_bytes) {
            if !is_local && run.len_bytes < OWN_RUN_BYTES_MAX {
                if !waiting.own.add(run) {
                    self.submit_missing(&mut waiting.parts);
                    self.start_own_runs(direction, remote.rank, &mut waiting.own, completion)?;
                    waiting.own.add(run);
                }
                return Ok(());
            }
            // The run may wait, and gets that joined an unsubmitted one would wait for ever.
            self.submit_missing(&mut waiting.parts);
        }
        // SAFETY: the local side of the run is valid for its length, or null, until nothing is pending in `completion`.
        unsafe {
            let resolved = self.resolve_after(missed, direction.operation(run.local), remote)?;
            self.add_rest(resolved, completion, &mut waiting.parts)
        }
    }
}

/// The misses of a transfer.
#[derive(Default)]
struct Missing {
    parts: Vec<Part>,
    own: OwnRuns,
}

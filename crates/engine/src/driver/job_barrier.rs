//! The client's barrier of all ranks, and the barrier at the end of the job.

use super::Driver;
use super::host_barriers::Passed;
use crate::request::CompletionId;
use std::time::{Duration, Instant};
use vgasnet_protocol::Rank;
use vgasnet_protocol::barrier::{Misuse, Name};
use vgasnet_stats::{self as stats, Row};
use vgasnet_sys::interposed;

/// A rank that waits for the end polls the conduit's step counts at this interval: a rank that does not wait passes on
/// no messages.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

impl Driver {
    /// Arrives at the barrier. Without cooperative caching, this rank's dirty pages are written back first.
    ///
    /// # Errors
    /// The client has notified already.
    pub fn barrier_notify(&self, name: Name) -> Result<(), Misuse> {
        // For a library loaded by dlopen: barriers are frequent and off the fast paths.
        interposed::look_again();
        self.flush_before_barrier();
        match self.barriers.of_host() {
            Some(barriers) => {
                if barriers.named().notify(name)? {
                    self.wake_other_ranks();
                }
            }
            None => self.engine().notify_barrier(name)?,
        }
        self.poll();
        Ok(())
    }

    /// Without cooperative caching, writes this rank's dirty pages back. Called before any barrier of all ranks.
    pub fn flush_before_barrier(&self) {
        if self.barriers.flush() {
            self.flush();
        }
    }

    /// Begins the barrier of ranks that all share memory; `None` if they do not. Returns its completion, unless it is
    /// complete.
    pub fn begin_host_barrier(&self) -> Option<Option<CompletionId>> {
        let (awaited, lets_go) = self.barriers.of_host()?.unnamed().begin(self.completions());
        if lets_go {
            self.wake_other_ranks();
        }
        Some(awaited)
    }

    /// Whether a barrier of ranks that share memory is complete and no thread of this rank has taken note yet.
    #[inline]
    pub(super) fn is_host_barrier_released(&self) -> bool {
        self.barriers.is_released()
    }

    /// Takes note of a completed barrier. Returns whether there was one.
    #[inline]
    pub(super) fn pass_host_barrier(&self) -> bool {
        self.is_host_barrier_released() && self.pass_released()
    }

    #[inline(never)]
    fn pass_released(&self) -> bool {
        let Some(barriers) = self.barriers.of_host() else { return false };
        let Passed { is_over, lets_go } = barriers.unnamed().pass(self.completions());
        if lets_go {
            self.wake_other_ranks();
        }
        let is_over = barriers.named().pass() | is_over;
        if is_over {
            self.notify();
        }
        is_over
    }

    fn wake_other_ranks(&self) {
        let others = (0..self.conduit.ranks()).map(Rank).filter(|rank| *rank != self.space.rank);
        others.for_each(|rank| self.conduit.wake_caller(rank));
    }

    /// Writes this rank's dirty pages back and waits. Afterwards it owns none, except those pinned by the client.
    pub fn flush(&self) {
        let _waiting = stats::wait(Row::WaitFlush);
        self.engine().flush();
        self.wait_until(&|| self.engine().is_flushed());
    }

    /// Waits until every rank has arrived. Returns whether the names match.
    ///
    /// # Errors
    /// The client has not notified.
    pub fn barrier_wait(&self, name: Name) -> Result<bool, Misuse> {
        loop {
            if let Some(matched) = self.finish_barrier(name)? {
                return Ok(matched);
            }
            let _waiting = stats::wait(Row::WaitBarrier);
            match self.barriers.of_host() {
                Some(barriers) => self.wait_until(&|| barriers.named().is_over()),
                None => self.wait_until(&|| self.engine().barrier().is_released()),
            }
        }
    }

    /// As [`Driver::barrier_wait`], but returns `None` instead of waiting.
    ///
    /// # Errors
    /// The client has not notified.
    pub fn barrier_try(&self, name: Name) -> Result<Option<bool>, Misuse> {
        self.poll();
        self.finish_barrier(name)
    }

    fn finish_barrier(&self, name: Name) -> Result<Option<bool>, Misuse> {
        match self.barriers.of_host() {
            Some(barriers) => barriers.named().finish(name),
            None => self.engine().barrier().finish(name),
        }
    }

    /// Whether every rank has arrived and the client has not ended the barrier.
    pub fn barrier_is_released(&self) -> bool {
        match self.barriers.of_host() {
            Some(barriers) => barriers.named().may_finish(),
            None => self.engine().barrier().is_released(),
        }
    }

    /// The name of the last barrier.
    ///
    /// # Errors
    /// No barrier has just ended, or the names did not match.
    pub fn barrier_result(&self) -> Result<Name, Misuse> {
        match self.barriers.of_host() {
            Some(barriers) => barriers.named().result(),
            None => self.engine().barrier().result(),
        }
    }

    /// Announces the end of this rank's program, which the conduit has counted as a step, and serves the other ranks
    /// until all programs have ended, or until shortly after `end`. Returns whether all have.
    pub fn leave(&self, end: Option<Instant>) -> bool {
        if self.barriers.begin_leaving() {
            self.engine().leave();
            self.step();
        }
        let _waiting = stats::wait(Row::WaitEnd);
        loop {
            let look_at = Instant::now() + LOOK_INTERVAL;
            self.wait_until_or(&|| self.engine().everyone_left(), Some(end.map_or(look_at, |end| end.min(look_at))));
            if self.engine().everyone_left() || self.conduit.have_all_stepped() {
                return true;
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return false;
            }
        }
    }
}

//! The barrier of all ranks, and the one at the end of the job.

use super::Driver;
use std::sync::atomic::Ordering;
use vgasnet_protocol::barrier::{Misuse, Name};

impl Driver {
    /// Arrives at the barrier. Without cooperative caching, this rank's dirty pages are written back first.
    ///
    /// # Errors
    /// The client has notified already.
    pub fn barrier_notify(&self, name: Name) -> Result<(), Misuse> {
        if self.flushes_at_barriers {
            self.engine().flush();
            self.wait_until(&|| self.engine().is_flushed());
        }
        let notified = self.engine().notify_barrier(name);
        self.poll();
        notified
    }

    /// Waits until every rank has arrived, and says whether the names match.
    ///
    /// # Errors
    /// The client has not notified.
    pub fn barrier_wait(&self, name: Name) -> Result<bool, Misuse> {
        loop {
            if let Some(matched) = self.engine().barrier().finish(name)? {
                return Ok(matched);
            }
            self.wait_until(&|| self.engine().barrier().is_released());
        }
    }

    /// As [`Driver::barrier_wait`], but `None` where it would wait.
    ///
    /// # Errors
    /// The client has not notified.
    pub fn barrier_try(&self, name: Name) -> Result<Option<bool>, Misuse> {
        self.poll();
        self.engine().barrier().finish(name)
    }

    /// What the barrier that has just ended was called.
    ///
    /// # Errors
    /// None has just ended, or it did not match.
    pub fn barrier_result(&self) -> Result<Name, Misuse> {
        self.engine().barrier().result()
    }

    /// Says that this rank's program is over, and waits until every rank's is, or `done` says that it is late enough.
    /// Until then this rank serves the others. Returns whether every rank's program is over.
    pub fn leave(&self, done: &dyn Fn() -> bool) -> bool {
        if !self.leaving.swap(true, Ordering::SeqCst) {
            self.engine().leave();
            self.step();
        }
        self.wait_until(&|| self.engine().everyone_left() || done());
        self.engine().everyone_left()
    }
}

//! An operation of a queue, as its request and its thread see it.

use std::ffi::c_int;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The result of an operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// MPI's code.
    pub code: c_int,
    /// Bytes moved.
    pub bytes: u64,
}

/// An operation of a queue.
#[derive(Debug, Default)]
pub struct Operation {
    outcome: Mutex<Option<Outcome>>,
    is_done: Condvar,
}

impl Operation {
    /// The result, once the request is complete.
    pub fn outcome(&self) -> Outcome {
        self.lock().unwrap_or_default()
    }

    /// Waits until it is done.
    pub fn wait(&self) -> Outcome {
        let mut outcome = self.lock();
        loop {
            match *outcome {
                Some(outcome) => return outcome,
                None => outcome = self.is_done.wait(outcome).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// It is done.
    pub fn end(&self, outcome: Outcome) {
        *self.lock() = Some(outcome);
        self.is_done.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Outcome>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

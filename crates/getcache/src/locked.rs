//! The lock around the state machine.

use std::sync::{Mutex, PoisonError};

/// A value behind a lock. A program can supply its own, for example to defer signals while the lock is held.
pub trait Locked<T> {
    /// A lock around this value.
    fn new(value: T) -> Self;

    /// Runs `work` on the value in mutual exclusion.
    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R;
}

impl<T> Locked<T> for Mutex<T> {
    fn new(value: T) -> Mutex<T> {
        Mutex::new(value)
    }

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

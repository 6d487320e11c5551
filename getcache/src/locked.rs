//! The lock around the state machine.

use std::sync::{Mutex, PoisonError};

/// A value behind a lock. A program that defers signals while it has a lock, say, brings one of its own.
pub trait Locked<T> {
    /// A lock around this value.
    fn new(value: T) -> Self;

    /// Does something with the value while no other thread has it.
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

//! The locks of the library.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. Its holders do not panic.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The engine behind its lock.

use crate::Engine;
use std::sync::{Mutex, MutexGuard, PoisonError};
use vgasnet_sys::Signalproof;

/// The engine, locked.
pub type Locked<'a> = Signalproof<MutexGuard<'a, Engine>>;

/// The engine of a rank, shared by its threads.
pub(super) struct SharedEngine(Mutex<Engine>);

impl SharedEngine {
    pub(super) fn new(engine: Engine) -> SharedEngine {
        SharedEngine(Mutex::new(engine))
    }

    /// Locks the engine for a request, so that the next drive is a full one. Defers the thread's signals.
    pub(super) fn lock(&self) -> Locked<'_> {
        let mut engine = Signalproof::lock(&self.0);
        engine.unsettle();
        engine
    }

    /// As [`SharedEngine::lock`], for a thread that has signals deferred.
    pub(super) fn lock_deferred(&self) -> MutexGuard<'_, Engine> {
        let mut engine = self.lock_to_drive();
        engine.unsettle();
        engine
    }

    /// Locks the engine to drive it, for a thread that has signals deferred.
    pub(super) fn lock_to_drive(&self) -> MutexGuard<'_, Engine> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

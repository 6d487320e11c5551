//! Whether the calling thread runs a handler of Active Messages, and which.

use std::cell::Cell;

thread_local! {
    /// The number of the handler that runs; 0 outside of handlers.
    static RUNNING: Cell<u64> = const { Cell::new(0) };
    /// How many handlers have begun.
    static BEGUN: Cell<u64> = const { Cell::new(0) };
}

/// Whether this thread runs a handler now: then it runs no other, and may only reply.
#[inline]
pub fn is_in_handler() -> bool {
    RUNNING.get() != 0
}

/// Which handler this thread runs, by a number that no other of this thread has; 0 if it runs none.
pub fn running_handler() -> u64 {
    RUNNING.get()
}

/// Runs `handler` as a handler.
pub(super) fn in_handler(handler: impl FnOnce()) {
    let number = BEGUN.get() + 1;
    BEGUN.set(number);
    let before = RUNNING.replace(number);
    handler();
    RUNNING.set(before);
}

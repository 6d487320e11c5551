//! The Active Message handler that the calling thread runs, if any.

use std::cell::Cell;

thread_local! {
    /// The number of the running handler; 0 outside of handlers.
    static RUNNING: Cell<u64> = const { Cell::new(0) };
    /// Number of handlers begun.
    static BEGUN: Cell<u64> = const { Cell::new(0) };
}

/// Whether this thread is running a handler. Then it runs no other, and may only reply.
#[inline]
pub fn is_in_handler() -> bool {
    RUNNING.get() != 0
}

/// A number of the handler that this thread runs, unique in the thread; 0 if it runs none.
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

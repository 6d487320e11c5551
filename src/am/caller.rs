//! Whether the calling thread runs a handler of Active Messages.

use std::cell::Cell;

thread_local! {
    static IN_HANDLER: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs a handler now: then it runs no other, and may only reply.
pub fn is_in_handler() -> bool {
    IN_HANDLER.get()
}

/// Runs `handler` as a handler.
pub(super) fn in_handler(handler: impl FnOnce()) {
    let before = IN_HANDLER.replace(true);
    handler();
    IN_HANDLER.set(before);
}

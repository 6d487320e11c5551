//! The message that a put between lists sends to its target when it is done, as its thread has asked before.
//!
//! Source: GASNet-EX, "VIS Put Peer Completion".

use std::cell::Cell;

/// The longest payload of such a message, in bytes.
pub const PEER_COMPLETION_BYTES_MAX: usize = 127;

/// A message for the end of a put.
#[derive(Clone, Copy, Debug)]
pub struct PeerCompletion {
    /// The index of its handler.
    pub handler: u8,
    /// The first byte of the payload.
    pub payload: *const u8,
    /// The payload's length.
    pub payload_bytes: usize,
}

thread_local! {
    /// That of this thread's next put.
    static NEXT: Cell<Option<PeerCompletion>> = const { Cell::new(None) };
}

/// Sets that of this thread's next put between lists, in place of one that was set before.
pub fn set_peer_completion(completion: Option<PeerCompletion>) {
    NEXT.set(completion);
}

/// Whether this thread's next put between lists has one.
#[inline]
pub fn has_peer_completion() -> bool {
    NEXT.get().is_some()
}

/// Takes that of this thread's next put between lists.
#[inline]
pub fn take_peer_completion() -> Option<PeerCompletion> {
    NEXT.take()
}

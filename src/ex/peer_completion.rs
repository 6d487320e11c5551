//! The message sent to the target of a put between lists when the put is complete. The thread asks for it before the
//! put.
//!
//! Source: GASNet-EX, "VIS Put Peer Completion".

use std::cell::Cell;

/// The longest payload of this message, in bytes.
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
    /// The message for this thread's next put between lists.
    static NEXT: Cell<Option<PeerCompletion>> = const { Cell::new(None) };
}

/// Sets the message for this thread's next put between lists. Replaces an earlier one.
pub fn set_peer_completion(completion: Option<PeerCompletion>) {
    NEXT.set(completion);
}

/// Whether this thread's next put between lists has a message.
#[inline]
pub fn has_peer_completion() -> bool {
    NEXT.get().is_some()
}

/// Takes the message for this thread's next put between lists.
#[inline]
pub fn take_peer_completion() -> Option<PeerCompletion> {
    NEXT.take()
}

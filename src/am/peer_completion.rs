//! Messages that tell a rank of the completion of another rank's operation on it. They are requests of the library, and
//! its handler calls the client's as if for a reply: GASNet-EX specifies this for puts between lists.

use super::Am;
use super::caller::is_in_handler;
use super::send::{Destination, Envelope};
use vgasnet_protocol::active_message::{Args, Category, Head};
use vgasnet_settings::UserError;

/// The index of the library's handler for them; the argument is the index of the client's handler.
const PEER_COMPLETION: u8 = 2;

/// The handler of a message, and its parameters.
pub(super) struct Target {
    pub(super) handler: u8,
    pub(super) is_reply: bool,
    pub(super) args: Args,
}

impl Target {
    /// The target of an arrived message.
    pub(super) fn of(head: &Head, args: &Args) -> Target {
        let asked = args.as_slice().first().and_then(|index| u8::try_from(*index).ok());
        match asked.filter(|_| head.handler == PEER_COMPLETION && head.category == Category::Medium) {
            Some(handler) => Target { handler, is_reply: true, args: no_args() },
            None => Target { handler: head.handler, is_reply: head.is_reply, args: *args },
        }
    }
}

fn no_args() -> Args {
    Args::new(&[]).expect("fewer than allowed")
}

impl Am {
    /// Makes a rank run a handler for a Medium reply without arguments. The payload is free for reuse on return.
    ///
    /// # Errors
    /// As [`Am::request`].
    ///
    /// # Safety
    /// The payload is valid for its length.
    pub unsafe fn complete_at_peer(
        &self,
        to: u32,
        handler: u8,
        payload: *const u8,
        payload_bytes: usize,
    ) -> Result<(), UserError> {
        let envelope = Envelope { handler, payload, payload_bytes, destination: Destination::Buffer, args: no_args() };
        if to == self.space().rank.0 && !is_in_handler() {
            self.check(to, &envelope)?;
            // SAFETY: the payload is valid for its length, and the envelope has passed `check`.
            unsafe { self.run_here(&envelope, true) };
            return Ok(());
        }
        let args = Args::new(&[i32::from(handler)]).expect("fewer than allowed");
        // SAFETY: the payload is valid for its length.
        unsafe { self.request(to, &Envelope { handler: PEER_COMPLETION, args, ..envelope }) }
    }
}

//! Arrivals from the conduit: the sink decodes and notes them, and the engine acts on them afterwards.

use super::{Engine, TAG_BARRIER, TAG_FAREWELL, storage_server};
use crate::error::UserError;
use vgasnet_conduit::{Arrival, Token};
use vgasnet_protocol::Rank;
use vgasnet_protocol::barrier::BarrierMessage;
use vgasnet_protocol::coherence::{CoherenceMessage, Event};

/// The least first byte of the messages for the rooms above the engine.
pub const TAG_ABOVE: u8 = 40;

/// Takes the messages for the rooms above the engine. It notes them and returns.
pub trait Receiver: Send + Sync {
    /// Takes a message whose first byte is at least [`TAG_ABOVE`].
    fn on_message(&self, from: Rank, bytes: &[u8]) -> Received;
}

/// The outcome of [`Receiver::on_message`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// An event for which a thread may wait.
    Event,
    /// Nothing to do yet.
    Noted,
    /// The message makes no sense.
    Malformed,
}

#[derive(Debug)]
pub(super) enum Arrived {
    Protocol(Rank, CoherenceMessage),
    Barrier(BarrierMessage),
    Farewell(BarrierMessage),
    Complete(Token),
    /// An event of the rooms above, which have taken its message.
    Event,
    Malformed(Rank, u8),
}

impl Engine {
    pub(super) fn poll_conduit(&mut self) -> Result<bool, UserError> {
        let (arrived, receiver) = (&mut self.arrived, &*self.receiver);
        let mut worked = self.conduit.poll(&mut |arrival| arrived.extend(note(arrival, receiver)));
        let mut arrived = std::mem::take(&mut self.arrived);
        for one in arrived.drain(..) {
            worked = true;
            self.on_arrived(one)?;
        }
        self.arrived = arrived;
        Ok(worked)
    }

    fn on_arrived(&mut self, arrived: Arrived) -> Result<(), UserError> {
        match arrived {
            Arrived::Event => self.has_event = true,
            Arrived::Protocol(from, message) => self.handle(Event::Message { from, message }),
            Arrived::Barrier(message) => {
                self.barrier.on_message(message, &mut self.outbox.for_barrier(TAG_BARRIER));
                self.look_at_barriers();
            }
            Arrived::Farewell(message) => {
                self.farewell.on_message(message, &mut self.outbox.for_barrier(TAG_FAREWELL));
                self.look_at_barriers();
            }
            Arrived::Complete(token) => match storage_server::operation_of(token) {
                Some(id) => self.storage.on_transferred(id, &mut self.events, &mut self.work),
                None => {
                    let outgoing = self.transfers.remove(token.0 as usize / 2);
                    self.handle(Event::Transferred(outgoing));
                }
            },
            Arrived::Malformed(from, tag) => {
                return Err(UserError::new(format!(
                    "rank {from} sent a message of unknown kind {tag}; do all ranks run the same version of vgasnet?"
                )));
            }
        }
        Ok(())
    }
}

/// Decodes what arrives, in the conduit's sink. Messages for the rooms above are handed on at once.
fn note(arrival: Arrival<'_>, receiver: &dyn Receiver) -> Option<Arrived> {
    let (from, bytes) = match arrival {
        Arrival::Complete(token) => return Some(Arrived::Complete(token)),
        Arrival::Message { from, bytes } => (from, bytes),
    };
    let tag = bytes.first().copied().unwrap_or_default();
    let known = match tag {
        TAG_BARRIER => BarrierMessage::decode(bytes).map(Arrived::Barrier).ok(),
        TAG_FAREWELL => BarrierMessage::decode(bytes).map(Arrived::Farewell).ok(),
        TAG_ABOVE.. => match receiver.on_message(from, bytes) {
            Received::Event => Some(Arrived::Event),
            Received::Noted => return None,
            Received::Malformed => None,
        },
        _ => CoherenceMessage::decode(bytes).ok().map(|message| Arrived::Protocol(from, message)),
    };
    Some(known.unwrap_or(Arrived::Malformed(from, tag)))
}

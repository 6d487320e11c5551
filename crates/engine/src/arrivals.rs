//! Arrivals from the conduit. The sink decodes and queues them; the engine acts on them afterwards.

use super::bundle::{TAG_BUNDLE, unbundle};
use super::meetings::{self, ReportPart, TAG_BARRIER, TAG_FAREWELL, TAG_REPORT, TAG_REPORT_TAKEN};
use std::sync::Arc;
use vgasnet_conduit::{Arrival, Conduit, Token};
use vgasnet_protocol::barrier::BarrierMessage;
use vgasnet_protocol::byte_message::{TAG_ANSWER, TAG_REQUEST};
use vgasnet_protocol::coherence::CoherenceMessage;
use vgasnet_protocol::file_locks::TAG_FILE_LOCKS;
use vgasnet_protocol::file_message::TAG_FILE;
use vgasnet_protocol::guests::GuestMessage;
use vgasnet_protocol::writes::TAG_WRITES;
use vgasnet_protocol::{LoanMessage, Rank, Violation};
use vgasnet_settings::UserError;

/// Least first byte of messages for the rooms above the engine. [`TAG_FILE`], the engine's own, is an exception.
pub const TAG_ABOVE: u8 = 40;

/// Receives messages for the rooms above the engine. It queues them and returns.
pub trait Receiver: Send + Sync {
    /// Takes a message with a first byte of at least [`TAG_ABOVE`].
    ///
    /// # Errors
    /// The message is malformed. The text describes it.
    fn on_message(&self, from: Rank, bytes: &[u8]) -> Result<Received, &'static str>;
}

/// The outcome of [`Receiver::on_message`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// An event for which a thread may wait.
    Event,
    /// Nothing to do yet.
    Noted,
}

#[derive(Debug)]
pub(super) enum Arrived {
    Protocol(Rank, CoherenceMessage),
    Barrier(Rank, BarrierMessage),
    Farewell(Rank, BarrierMessage),
    /// A neighbour wants its frame back, which is mapped as this page.
    AskedBack(Rank, u32),
    /// An ending rank's closing report, or the acknowledgement of this rank's own.
    ReportPart(Rank, ReportPart),
    ReportTaken,
    /// A request for bytes of pages, or the answer to one.
    ByteRequest(Rank, Vec<u8>),
    ByteAnswer(Rank, Vec<u8>),
    /// A question about writes, or the answer to one.
    Writes(Rank, Vec<u8>),
    /// A question about a file, or the answer to one.
    File(Rank, Vec<u8>),
    /// A message about a guest page.
    Guest(Rank, GuestMessage),
    /// A message about file locks.
    Locks(Rank, Vec<u8>),
    Complete(Token),
    /// An event of the rooms above, which have taken its message.
    Event,
    Violation(Violation),
    /// The transport has found state that no rank of this version writes.
    Corrupt(String),
}

impl Arrived {
    /// Whether it is a message of the engine's own that the statistics count.
    pub(super) fn is_counted(&self) -> bool {
        use Arrived::{
            AskedBack, Barrier, ByteAnswer, ByteRequest, Farewell, Guest, Locks, Protocol, ReportPart, ReportTaken,
            Writes,
        };
        matches!(
            self,
            Protocol(..)
                | Barrier(..)
                | Farewell(..)
                | AskedBack(..)
                | ByteRequest(..)
                | ByteAnswer(..)
                | Writes(..)
                | Guest(..)
                | Locks(..)
                | ReportPart(..)
                | ReportTaken
        )
    }
}

/// Decodes arrivals, and keeps the memory of their list.
pub(super) struct Arrivals {
    receiver: Arc<dyn Receiver>,
    list: Vec<Arrived>,
}

impl Arrivals {
    /// Messages for the rooms above go to `receiver`.
    pub(super) fn new(receiver: Arc<dyn Receiver>) -> Arrivals {
        Arrivals { receiver, list: Vec::new() }
    }

    /// Polls the conduit. Returns whether it has done anything, and the arrivals in order.
    /// [`Arrivals::return_list`] gives the emptied list back.
    pub(super) fn poll(&mut self, conduit: &dyn Conduit) -> (bool, Vec<Arrived>) {
        debug_assert!(self.list.is_empty(), "arrivals are handled before the next poll");
        let (list, receiver) = (&mut self.list, &*self.receiver);
        let worked = conduit.poll(&mut |arrival| note_all(arrival, receiver, list));
        (worked, std::mem::take(list))
    }

    /// Takes the list back for the next poll.
    pub(super) fn return_list(&mut self, list: Vec<Arrived>) {
        debug_assert!(list.is_empty(), "all arrivals are handled");
        self.list = list;
    }
}

/// The error line about a malformed message.
pub(super) fn refused(violation: Violation) -> UserError {
    UserError::new(violation.to_string())
}

/// Decodes an arrival, which may be a bundle of several coherence messages.
fn note_all(arrival: Arrival<'_>, receiver: &dyn Receiver, arrived: &mut Vec<Arrived>) {
    match arrival {
        Arrival::Message { from, bytes } if bytes.first() == Some(&TAG_BUNDLE) => {
            arrived.extend(unbundle(bytes).map(|message| {
                let known = CoherenceMessage::decode(message).map(|message| Arrived::Protocol(from, message));
                known.unwrap_or(Arrived::Violation(Violation::new(from, MALFORMED)))
            }));
        }
        _ => arrived.extend(note(arrival, receiver)),
    }
}

const MALFORMED: &str = "a message of unknown kind or length";

/// Decodes an arrival in the conduit's sink. Messages for the rooms above are handed on at once.
fn note(arrival: Arrival<'_>, receiver: &dyn Receiver) -> Option<Arrived> {
    let (from, bytes) = match arrival {
        Arrival::Complete(token) => return Some(Arrived::Complete(token)),
        Arrival::Corrupt(what) => return Some(Arrived::Corrupt(what)),
        Arrival::Message { from, bytes } => (from, bytes),
    };
    let known = match bytes.first().copied().unwrap_or_default() {
        TAG_BARRIER => BarrierMessage::decode(bytes).map(|message| Arrived::Barrier(from, message)).ok(),
        TAG_FAREWELL => BarrierMessage::decode(bytes).map(|message| Arrived::Farewell(from, message)).ok(),
        LoanMessage::TAG => {
            LoanMessage::decode(bytes).map(|LoanMessage::AskedBack { index }| Arrived::AskedBack(from, index)).ok()
        }
        TAG_REPORT => meetings::decode_report(bytes).map(|part| Arrived::ReportPart(from, part)),
        TAG_REQUEST => Some(Arrived::ByteRequest(from, bytes.to_vec())),
        TAG_ANSWER => Some(Arrived::ByteAnswer(from, bytes.to_vec())),
        TAG_FILE_LOCKS => Some(Arrived::Locks(from, bytes.to_vec())),
        TAG_FILE => Some(Arrived::File(from, bytes.to_vec())),
        TAG_WRITES => Some(Arrived::Writes(from, bytes.to_vec())),
        tag if GuestMessage::TAGS.contains(&tag) => {
            GuestMessage::decode(bytes).map(|message| Arrived::Guest(from, message)).ok()
        }
        TAG_REPORT_TAKEN => (bytes.len() == 1).then_some(Arrived::ReportTaken),
        TAG_ABOVE.. => match receiver.on_message(from, bytes) {
            Ok(Received::Event) => Some(Arrived::Event),
            Ok(Received::Noted) => return None,
            Err(what) => return Some(Arrived::Violation(Violation::new(from, what))),
        },
        _ => CoherenceMessage::decode(bytes).ok().map(|message| Arrived::Protocol(from, message)),
    };
    Some(known.unwrap_or(Arrived::Violation(Violation::new(from, MALFORMED))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes messages with tag 40, notes those with 41 and refuses the others.
    struct Above;

    impl Receiver for Above {
        fn on_message(&self, _: Rank, bytes: &[u8]) -> Result<Received, &'static str> {
            match bytes[0] {
                TAG_ABOVE => Ok(Received::Event),
                41 => Ok(Received::Noted),
                _ => Err("a message that is none"),
            }
        }
    }

    fn decoded(bytes: &[u8]) -> Vec<Arrived> {
        let mut arrived = Vec::new();
        note_all(Arrival::Message { from: Rank(3), bytes }, &Above, &mut arrived);
        arrived
    }

    #[test]
    fn messages_for_the_rooms_above_are_handed_on_at_once() {
        assert!(matches!(decoded(&[TAG_ABOVE])[..], [Arrived::Event]));
        assert!(decoded(&[41]).is_empty());
        assert!(matches!(decoded(&[42])[..], [Arrived::Violation(_)]));
    }

    #[test]
    fn malformed_messages_are_violations_of_their_senders() {
        let barrier = BarrierMessage::decode(&[TAG_BARRIER]);
        assert!(barrier.is_err());
        for bytes in [&[TAG_BARRIER][..], &[TAG_REPORT, 0, 0], &[TAG_REPORT_TAKEN, 0], &[], &[TAG_BUNDLE, 9, 0]] {
            let arrived = decoded(bytes);
            assert!(matches!(arrived[..], [Arrived::Violation(_)]), "{bytes:?}: {arrived:?}");
            assert!(!arrived[0].is_counted());
        }
    }
}

//! Arrivals from the conduit. The sink decodes and queues them; the engine acts on them afterwards.

use super::closing_reports::{self, ReportPart, TAG_REPORT, TAG_REPORT_TAKEN};
use super::outbox::unbundle;
use super::{Engine, TAG_BARRIER, TAG_BUNDLE, TAG_FAREWELL, storage_server};
use vgasnet_conduit::{Arrival, Token};
use vgasnet_protocol::barrier::BarrierMessage;
use vgasnet_protocol::byte_message::{TAG_ANSWER, TAG_REQUEST};
use vgasnet_protocol::coherence::{CoherenceMessage, Event};
use vgasnet_protocol::file_locks::TAG_FILE_LOCKS;
use vgasnet_protocol::file_message::TAG_FILE;
use vgasnet_protocol::guests::GuestMessage;
use vgasnet_protocol::writes::TAG_WRITES;
use vgasnet_protocol::{LoanMessage, Rank, Violation};
use vgasnet_settings::UserError;
use vgasnet_stats::{self as stats, Row};

/// Least first byte of messages for the rooms above the engine.
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

impl Engine {
    pub(super) fn poll_conduit(&mut self) -> Result<bool, UserError> {
        let (arrived, receiver) = (&mut self.arrived, &*self.receiver);
        let mut worked = self.conduit.poll(&mut |arrival| note_all(arrival, receiver, arrived));
        let mut arrived = std::mem::take(&mut self.arrived);
        for one in arrived.drain(..) {
            worked = true;
            self.on_arrived(one)?;
        }
        self.arrived = arrived;
        Ok(worked)
    }

    fn on_arrived(&mut self, arrived: Arrived) -> Result<(), UserError> {
        use Arrived::{AskedBack, Barrier, ByteAnswer, ByteRequest, Farewell, Guest, Protocol, Writes};
        if matches!(
            arrived,
            Protocol(..)
                | Barrier(..)
                | Farewell(..)
                | AskedBack(..)
                | ByteRequest(..)
                | ByteAnswer(..)
                | Writes(..)
                | Guest(..)
        ) {
            stats::count(Row::ProtocolReceived);
        }
        self.is_settled &= matches!(arrived, Arrived::Event);
        match arrived {
            Arrived::Event => self.has_event = true,
            Arrived::Protocol(from, message) => self.handle(Event::Message { from, message }),
            Arrived::Barrier(from, message) => {
                let taken = self.barrier.on_message(from, message, &mut self.outbox.for_barrier(TAG_BARRIER));
                taken.map_err(refused)?;
                self.look_at_barriers();
            }
            Arrived::Farewell(from, message) => {
                let taken = self.farewell.on_message(from, message, &mut self.outbox.for_barrier(TAG_FAREWELL));
                taken.map_err(refused)?;
                self.look_at_barriers();
            }
            Arrived::AskedBack(from, index) => {
                self.on_asked_back(index).map_err(|what| refused(Violation::new(from, what)))?;
            }
            Arrived::ReportPart(from, part) => {
                self.on_report_part(from, &part).map_err(|what| refused(Violation::new(from, what)))?;
            }
            Arrived::ReportTaken => self.on_report_taken(),
            ByteRequest(from, bytes) => {
                self.on_byte_request(from, bytes).map_err(|what| refused(Violation::new(from, what)))?;
            }
            ByteAnswer(from, bytes) => {
                self.on_byte_answer(from, &bytes).map_err(|what| refused(Violation::new(from, what)))?;
            }
            Writes(from, bytes) => {
                self.on_writes_message(from, &bytes).map_err(|what| refused(Violation::new(from, what)))?;
            }
            Guest(from, message) => {
                self.on_guest_message(from, message).map_err(|what| refused(Violation::new(from, what)))?;
            }
            Arrived::Locks(from, bytes) => self.on_lock_message(from, &bytes).map_err(refused)?,
            Arrived::File(from, bytes) => {
                self.on_file_message(from, &bytes).map_err(|what| refused(Violation::new(from, what)))?;
            }
            Arrived::Complete(token) => match storage_server::operation_of(token) {
                Some(id) => self.storage.on_transferred(id, &mut self.events),
                None => self.on_transferred(token),
            },
            Arrived::Violation(violation) => return Err(refused(violation)),
            Arrived::Corrupt(what) => return Err(UserError::new(what)),
        }
        Ok(())
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
        TAG_REPORT => closing_reports::decode(bytes).map(|part| Arrived::ReportPart(from, part)),
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

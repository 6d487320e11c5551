//! Joins arrivals from the conduit with the parts of the engine that they are for.

use super::Engine;
use crate::arrivals::{Arrived, refused};
use crate::storage_server;
use vgasnet_protocol::Violation;
use vgasnet_protocol::coherence::Event;
use vgasnet_settings::UserError;
use vgasnet_stats::{self as stats, Row};

impl Engine {
    pub(super) fn poll_conduit(&mut self) -> Result<bool, UserError> {
        let (mut worked, mut arrived) = self.arrivals.poll(&*self.conduit);
        for one in arrived.drain(..) {
            worked = true;
            self.on_arrived(one)?;
        }
        self.arrivals.return_list(arrived);
        Ok(worked)
    }

    fn on_arrived(&mut self, arrived: Arrived) -> Result<(), UserError> {
        if arrived.is_counted() {
            stats::count(Row::ProtocolReceived);
        }
        if !matches!(arrived, Arrived::Event) {
            self.status.unsettle();
        }
        match arrived {
            Arrived::Event => self.status.note_news(),
            Arrived::Protocol(from, message) => self.handle(Event::Message { from, message }),
            Arrived::Barrier(from, message) => self.on_barrier(from, message)?,
            Arrived::Farewell(from, message) => self.on_farewell(from, message)?,
            Arrived::AskedBack(from, index) => {
                self.on_asked_back(index).map_err(|what| refused(Violation::new(from, what)))?;
            }
            Arrived::ReportPart(from, part) => {
                self.on_report_part(from, &part).map_err(|what| refused(Violation::new(from, what)))?;
            }
            Arrived::ReportTaken => self.on_report_taken(),
            Arrived::ByteRequest(from, bytes) => {
                self.on_byte_request(from, bytes).map_err(|what| refused(Violation::new(from, what)))?;
            }
            Arrived::ByteAnswer(from, bytes) => {
                self.on_byte_answer(from, &bytes).map_err(|what| refused(Violation::new(from, what)))?;
            }
            Arrived::Writes(from, bytes) => {
                self.on_writes_message(from, &bytes).map_err(|what| refused(Violation::new(from, what)))?;
            }
            Arrived::Guest(from, message) => {
                self.on_guest_message(from, message).map_err(|what| refused(Violation::new(from, what)))?;
            }
            Arrived::Locks(from, bytes) => self.on_lock_message(from, &bytes).map_err(refused)?,
            Arrived::File(from, bytes) => {
                self.on_file_message(from, &bytes).map_err(|what| refused(Violation::new(from, what)))?;
            }
            Arrived::Complete(token) => match storage_server::operation_of(token) {
                Some(id) => self.storage.on_transferred(id, self.queue.todo()),
                None => self.on_transferred(token),
            },
            Arrived::Violation(violation) => return Err(refused(violation)),
            Arrived::Corrupt(what) => return Err(UserError::new(what)),
        }
        Ok(())
    }
}

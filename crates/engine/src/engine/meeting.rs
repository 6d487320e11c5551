//! Joins the job's meetings ([`Meetings`]) with the rank's messages and waiting threads.

use super::Engine;
use crate::arrivals::refused;
use crate::meetings::{Meetings, ReportPart, TAG_REPORT_TAKEN};
use vgasnet_protocol::Rank;
use vgasnet_protocol::barrier::{Barrier, BarrierMessage, Misuse, Name};
use vgasnet_settings::UserError;

impl Engine {
    /// The client's barrier.
    pub fn barrier(&mut self) -> &mut Barrier {
        self.meetings.barrier()
    }

    /// Arrives at the client's barrier.
    ///
    /// # Errors
    /// The client has notified already.
    pub fn notify_barrier(&mut self, name: Name) -> Result<(), Misuse> {
        let notified = self.meetings.notify(name, |to, bytes| self.outbox.send(to, bytes));
        self.look_at_barriers();
        notified
    }

    /// Notes that this rank's program has ended. Called once.
    pub fn leave(&mut self) {
        self.meetings.leave(|to, bytes| self.outbox.send(to, bytes));
        self.look_at_barriers();
    }

    /// Whether every rank's program has ended.
    pub fn everyone_left(&self) -> bool {
        self.meetings.everyone_left()
    }

    /// Handles a message of the client's barrier.
    pub(super) fn on_barrier(&mut self, from: Rank, message: BarrierMessage) -> Result<(), UserError> {
        let taken = self.meetings.on_barrier(from, message, |to, bytes| self.outbox.send(to, bytes));
        taken.map_err(refused)?;
        self.look_at_barriers();
        Ok(())
    }

    /// Handles a message of the barrier at the end of the job.
    pub(super) fn on_farewell(&mut self, from: Rank, message: BarrierMessage) -> Result<(), UserError> {
        let taken = self.meetings.on_farewell(from, message, |to, bytes| self.outbox.send(to, bytes));
        taken.map_err(refused)?;
        self.look_at_barriers();
        Ok(())
    }

    fn look_at_barriers(&mut self) {
        self.status.note_news_if(self.meetings.is_any_over());
    }

    /// Handles a part of a rank's closing report.
    pub(super) fn on_report_part(&mut self, from: Rank, part: &ReportPart) -> Result<(), &'static str> {
        if self.meetings.take_report(from, part)? {
            self.status.note_news();
            // Through shared memory no message is lost.
            if !self.conduit.capabilities().wakes_on_arrival {
                self.outbox.send(from, &[TAG_REPORT_TAKEN]);
            }
        }
        Ok(())
    }

    /// Rank 0 has this rank's whole closing report.
    pub(super) fn on_report_taken(&mut self) {
        self.meetings.on_report_taken();
        self.status.note_news();
    }

    /// Sends this rank's closing report to rank 0.
    pub(crate) fn send_report(&mut self, report: &[u8]) {
        for message in Meetings::report_messages(report, self.conduit.message_bytes_max()) {
            self.outbox.send(Rank(0), &message);
        }
    }

    /// Whether this rank's closing report needs no more of it: rank 0 has it, or, where no message is lost, all
    /// messages have been sent.
    pub(crate) fn is_report_delivered(&self) -> bool {
        let is_safe = self.conduit.capabilities().wakes_on_arrival;
        self.meetings.is_report_taken() || (is_safe && self.outbox.is_empty())
    }

    /// Number of ranks with complete closing reports.
    pub(crate) fn reports_complete(&self) -> usize {
        self.meetings.reports_complete()
    }

    /// The complete closing reports.
    pub(crate) fn closing_reports(&self) -> Vec<(Rank, Vec<u8>)> {
        self.meetings.reports().map(|(rank, bytes)| (rank, bytes.to_vec())).collect()
    }
}

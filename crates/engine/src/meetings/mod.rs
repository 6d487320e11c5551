//! Meetings of all ranks: the client's barrier, the barrier at the end of the job, and the closing reports.

mod closing_reports;

pub(crate) use closing_reports::{ReportPart, TAG_REPORT, TAG_REPORT_TAKEN, decode as decode_report};

use closing_reports::ClosingReports;
use vgasnet_protocol::barrier::{Barrier, BarrierMessage, Misuse, Name};
use vgasnet_protocol::{Rank, Violation};

/// First byte of the client barrier's messages. The coherence protocol's own tags are smaller.
pub(crate) const TAG_BARRIER: u8 = 32;

/// First byte of the messages of the barrier at the end of the job.
pub(crate) const TAG_FAREWELL: u8 = 33;

/// One rank's state of the job's meetings. Messages go to `send` with their first byte.
pub(crate) struct Meetings {
    rank: Rank,
    barrier: Barrier,
    farewell: Barrier,
    reports: ClosingReports,
}

impl Meetings {
    /// Before the first meeting of `ranks` ranks.
    pub(crate) fn new(rank: Rank, ranks: u32) -> Meetings {
        let [barrier, farewell] = [Barrier::new(rank, ranks), Barrier::new(rank, ranks)];
        Meetings { rank, barrier, farewell, reports: ClosingReports::default() }
    }

    /// The client's barrier.
    pub(crate) fn barrier(&mut self) -> &mut Barrier {
        &mut self.barrier
    }

    /// Arrives at the client's barrier.
    ///
    /// # Errors
    /// The client has notified already.
    pub(crate) fn notify(&mut self, name: Name, mut send: impl FnMut(Rank, &[u8])) -> Result<(), Misuse> {
        self.barrier.notify(name, &mut |to, message| send(to, &message.encode(TAG_BARRIER)))
    }

    /// Notes that this rank's program has ended. Called once.
    pub(crate) fn leave(&mut self, mut send: impl FnMut(Rank, &[u8])) {
        let left = self.farewell.notify(Name::Anonymous, &mut |to, message| send(to, &message.encode(TAG_FAREWELL)));
        assert_eq!(left, Ok(()), "a rank leaves once");
    }

    /// Handles a message of the client's barrier.
    ///
    /// # Errors
    /// The message is impossible.
    pub(crate) fn on_barrier(
        &mut self,
        from: Rank,
        message: BarrierMessage,
        mut send: impl FnMut(Rank, &[u8]),
    ) -> Result<(), Violation> {
        self.barrier.on_message(from, message, &mut |to, message| send(to, &message.encode(TAG_BARRIER)))
    }

    /// Handles a message of the barrier at the end of the job.
    ///
    /// # Errors
    /// The message is impossible.
    pub(crate) fn on_farewell(
        &mut self,
        from: Rank,
        message: BarrierMessage,
        mut send: impl FnMut(Rank, &[u8]),
    ) -> Result<(), Violation> {
        self.farewell.on_message(from, message, &mut |to, message| send(to, &message.encode(TAG_FAREWELL)))
    }

    /// Whether threads waiting for one of the barriers may go on.
    pub(crate) fn is_any_over(&self) -> bool {
        self.barrier.is_released() || self.farewell.is_released()
    }

    /// Whether every rank's program has ended.
    pub(crate) fn everyone_left(&self) -> bool {
        self.farewell.is_released()
    }

    /// The messages of this rank's closing report, to rank 0.
    pub(crate) fn report_messages(report: &[u8], message_bytes_max: usize) -> impl Iterator<Item = Vec<u8>> + '_ {
        closing_reports::messages(report, message_bytes_max)
    }

    /// Handles a part of a rank's closing report. Returns whether the report is complete.
    ///
    /// # Errors
    /// The part is impossible.
    pub(crate) fn take_report(&mut self, from: Rank, part: &ReportPart) -> Result<bool, &'static str> {
        if self.rank != Rank(0) || from == Rank(0) {
            return Err("a closing report, which is for rank 0");
        }
        self.reports.take(from, part)
    }

    /// Rank 0 has this rank's whole report.
    pub(crate) fn on_report_taken(&mut self) {
        self.reports.on_taken();
    }

    /// Whether rank 0 has this rank's whole report.
    pub(crate) fn is_report_taken(&self) -> bool {
        self.reports.is_own_taken()
    }

    /// Number of ranks with complete reports.
    pub(crate) fn reports_complete(&self) -> usize {
        self.reports.count()
    }

    /// The complete reports.
    pub(crate) fn reports(&self) -> impl Iterator<Item = (Rank, &[u8])> {
        self.reports.complete()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Passes messages on until none is left, by their first bytes.
    fn deliver(ranks: &mut [Meetings], mut messages: VecDeque<(Rank, Rank, Vec<u8>)>) {
        while let Some((from, to, bytes)) = messages.pop_front() {
            let message = BarrierMessage::decode(&bytes).expect("a barrier's message");
            let send = |next: Rank, bytes: &[u8]| messages.push_back((to, next, bytes.to_vec()));
            let meetings = &mut ranks[to.0 as usize];
            let taken = match bytes[0] {
                TAG_BARRIER => meetings.on_barrier(from, message, send),
                _ => meetings.on_farewell(from, message, send),
            };
            assert_eq!(taken, Ok(()));
        }
    }

    #[test]
    fn the_end_of_the_job_is_no_barrier_of_the_client() {
        let mut ranks: Vec<Meetings> = (0..3).map(|rank| Meetings::new(Rank(rank), 3)).collect();
        let mut messages = VecDeque::new();
        for rank in 0..3 {
            let from = Rank(rank);
            ranks[rank as usize].leave(|to, bytes| messages.push_back((from, to, bytes.to_vec())));
        }
        deliver(&mut ranks, messages);
        assert!(ranks.iter().all(Meetings::everyone_left));
        assert!(ranks.iter_mut().all(|meetings| !meetings.barrier().is_released()));
        let mut messages = VecDeque::new();
        for rank in 0..3 {
            let (from, name) = (Rank(rank), Name::Anonymous);
            let notified =
                ranks[rank as usize].notify(name, |to, bytes| messages.push_back((from, to, bytes.to_vec())));
            assert_eq!(notified, Ok(()));
        }
        deliver(&mut ranks, messages);
        assert!(ranks.iter_mut().all(|meetings| meetings.barrier().is_released()));
    }

    #[test]
    fn reports_are_for_rank_0_and_of_the_others() {
        let report = Meetings::report_messages(b"report", 64).next().expect("one message");
        let part = decode_report(&report).expect("a part");
        let mut meetings = Meetings::new(Rank(0), 3);
        assert!(meetings.take_report(Rank(0), &part).is_err());
        assert_eq!(meetings.take_report(Rank(2), &part), Ok(true));
        assert_eq!(meetings.reports().collect::<Vec<_>>(), [(Rank(2), &b"report"[..])]);
        assert!(Meetings::new(Rank(1), 3).take_report(Rank(2), &part).is_err());
    }
}

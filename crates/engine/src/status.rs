//! The engine's state as its driver sees it: settled, with news for waiting threads, or broken.

use vgasnet_settings::UserError;

/// Whether the engine is settled, has an event for waiting threads, or has to end the job.
#[derive(Debug, Default)]
pub(super) struct Status {
    /// Nothing is in flight and no request has arrived since the last full drive, except messages for the rooms above.
    is_settled: bool,
    /// An event other than an operation's completion has happened, and threads may be waiting for it.
    has_news: bool,
    /// The error that ends the job.
    broken: Option<UserError>,
}

impl Status {
    /// Whether only messages for the rooms above have arrived since the last full drive left nothing in flight.
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// A request or a message has arrived: the next drive is a full one.
    pub(super) fn unsettle(&mut self) {
        self.is_settled = false;
    }

    /// A full drive has ended. `is_quiet`: it has left nothing in flight.
    pub(super) fn end_drive(&mut self, is_quiet: bool) {
        self.is_settled = is_quiet;
    }

    /// Notes an event for which threads may be waiting.
    pub(super) fn note_news(&mut self) {
        self.has_news = true;
    }

    /// As [`Status::note_news`], if it has happened.
    pub(super) fn note_news_if(&mut self, has_happened: bool) {
        self.has_news |= has_happened;
    }

    /// Whether an event has happened since the last call.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Notes an error that ends the job. The protocol handles no further event.
    pub(super) fn break_by(&mut self, error: UserError) {
        self.broken = Some(error);
    }

    /// Whether the job has to end.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// # Errors
    /// The job has to end.
    pub(super) fn check(&self) -> Result<(), UserError> {
        self.broken.clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_taken_once_and_an_error_stays() {
        let mut status = Status::default();
        status.note_news_if(false);
        assert!(!status.take_news());
        status.note_news();
        status.note_news_if(false);
        assert!(status.take_news() && !status.take_news());
        assert!(!status.is_settled(), "the first drive is a full one");
        status.end_drive(true);
        assert!(status.is_settled() && !status.is_broken() && status.check().is_ok());
        status.break_by(UserError::new("the disk is gone".to_owned()));
        assert!(status.is_broken() && status.check().is_err() && status.check().is_err());
    }
}

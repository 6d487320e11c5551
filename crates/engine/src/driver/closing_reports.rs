//! Closing reports: the bytes that each rank sends to rank 0 when its program has ended.
//!
//! A rank sends its report before it exits, so rank 0 waits for no rank that is gone. A rank unable to send one has
//! none.

use super::Driver;
use std::time::{Duration, Instant};
use vgasnet_protocol::Rank;

/// Timeout for reports and their acknowledgement. Later ones have been lost in the network.
const PATIENCE: Duration = Duration::from_secs(5);

impl Driver {
    /// Sends the report of this rank to rank 0. Called once, by any other rank. Returns when delivery is certain, or
    /// after a few seconds.
    pub fn send_closing_report(&self, report: &[u8]) {
        assert_ne!(self.space.rank, Rank(0), "rank 0 receives the reports");
        self.engine().send_report(report);
        self.wait_until_or(&|| self.engine().is_report_delivered(), Some(Instant::now() + PATIENCE));
    }

    /// The reports received. Called by rank 0 when all programs have ended: then every rank has sent its report or is
    /// about to, unless it was lost.
    pub fn receive_closing_reports(&self) -> Vec<(Rank, Vec<u8>)> {
        assert_eq!(self.space.rank, Rank(0), "rank 0 receives the reports");
        let others = self.conduit.ranks() as usize - 1;
        let has_all = || self.engine().reports_complete() == others;
        self.wait_until_or(&has_all, Some(Instant::now() + PATIENCE));
        self.engine().closing_reports()
    }
}

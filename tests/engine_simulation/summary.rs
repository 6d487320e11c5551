//! Counts of the events of runs.

use crate::seen::Seen;
use std::ops::AddAssign;

/// Counts of the events of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub steps: u64,
    pub operations: u64,
    pub barriers: u64,
    pub messages: u64,
    pub transfers: u64,
    /// Runs ended by an I/O error.
    pub io_errors: u64,
    /// Pages that could not be read ahead.
    pub forgotten: u64,
    pub uncooperative: u64,
    /// Pages written back ahead of need.
    pub cleaned_ahead: u64,
    /// Pages kept for other ranks.
    pub guests: u64,
    /// Runs with some rank that has no access to another one's memory.
    pub staged: u64,
    pub seen: Seen,
}

impl AddAssign for Summary {
    fn add_assign(&mut self, other: Summary) {
        self.steps += other.steps;
        self.operations += other.operations;
        self.barriers += other.barriers;
        self.messages += other.messages;
        self.transfers += other.transfers;
        self.io_errors += other.io_errors;
        self.forgotten += other.forgotten;
        self.uncooperative += other.uncooperative;
        self.staged += other.staged;
        self.cleaned_ahead += other.cleaned_ahead;
        self.guests += other.guests;
        self.seen += other.seen;
    }
}

impl Summary {
    /// Fails if `seeds` runs have missed one of the rare paths. Fewer than 300 runs may miss one by chance.
    pub fn assert_covers(&self, seeds: u64) {
        if seeds < 300 {
            return;
        }
        let Summary { io_errors, uncooperative, staged, barriers, cleaned_ahead, guests, .. } = *self;
        let rare = [io_errors, uncooperative, staged, barriers, cleaned_ahead, guests].into_iter();
        let rare = rare.chain(self.seen.counts());
        assert!({ rare }.all(|count| count >= seeds / 50), "{self:?}");
    }
}

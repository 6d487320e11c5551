//! The exchange between ranks with a thread each.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use vgasnet_conduit::{ConduitError, Rank};

/// After this time without the others, one of them has failed.
const PATIENCE: Duration = Duration::from_secs(120);

/// Gives everyone's contribution to everyone.
pub(crate) struct Rendezvous {
    meeting: Mutex<Meeting>,
    complete: Condvar,
}

#[derive(Default)]
struct Meeting {
    /// The contributions so far.
    contributions: Vec<Option<Vec<u8>>>,
    /// Number of completed exchanges.
    over: u64,
    /// The result of the last exchange. The next one does not complete before every rank has read it.
    outcome: Vec<Vec<u8>>,
}

impl Rendezvous {
    pub(crate) fn new(ranks: usize) -> Rendezvous {
        let meeting = Meeting { contributions: vec![None; ranks], ..Meeting::default() };
        Rendezvous { meeting: Mutex::new(meeting), complete: Condvar::new() }
    }

    pub(crate) fn exchange(&self, rank: Rank, mine: &[u8]) -> Result<Vec<Vec<u8>>, ConduitError> {
        let deadline = Instant::now() + PATIENCE;
        let mut meeting = self.meeting.lock().unwrap_or_else(PoisonError::into_inner);
        let this = meeting.over;
        assert!(meeting.contributions[rank.index()].is_none(), "rank {rank} exchanges from two threads at once");
        meeting.contributions[rank.index()] = Some(mine.to_vec());
        if meeting.contributions.iter().all(Option::is_some) {
            meeting.outcome = meeting.contributions.iter_mut().filter_map(Option::take).collect();
            meeting.over += 1;
            self.complete.notify_all();
        }
        while meeting.over == this {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let missing = meeting.contributions.iter().position(Option::is_none).unwrap_or_default();
                return Err(ConduitError(format!("rank {missing} did not come to the exchange within {PATIENCE:?}")));
            }
            meeting = self.complete.wait_timeout(meeting, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(meeting.outcome.clone())
    }
}

//! Messages and transfers in flight between ranks, and their next steps.

use fastrand::Rng;
use vgasnet_conduit::{Busy, Rank, Region, Token, Urgency};

use crate::Settings;

/// Maximum number of messages in flight to one rank. More are refused, so memory is bounded.
const INBOX_MAX: usize = 1024;

/// Part of them reserved for urgent messages.
const INBOX_KEPT_FREE: usize = 128;

/// Maximum number of transfers of one rank in flight.
const TRANSFERS_MAX: usize = 256;

/// Maximum number of consecutive refusals of a rank although there is room.
const REFUSALS_MAX: u32 = 3;

/// Maximum number of arrivals per poll.
const POLL_ARRIVALS_MAX: usize = 64;

/// The traffic of a hub so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages accepted.
    pub messages: u64,
    /// Puts and gets accepted.
    pub transfers: u64,
}

/// An arrival, in flight or due.
#[derive(Debug)]
pub(crate) enum OwnedArrival {
    Message { from: Rank, bytes: Vec<u8> },
    Complete(Token),
}

struct Delayed {
    /// Polls of the receiver until it is due.
    polls_left: u32,
    arrival: OwnedArrival,
}

/// A put or get.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    /// The rank that started it.
    pub(crate) rank: Rank,
    /// Source and destination of the bytes, of equal length.
    pub(crate) from: Region,
    pub(crate) to: Region,
    pub(crate) token: Token,
}

/// A put or get in flight.
struct Flying {
    what: Move,
    /// Polls of any rank until the next half moves.
    polls_left: u32,
    /// The half still to be moved, after the first one.
    other_half: Option<Half>,
}

#[derive(Clone, Copy, Debug)]
enum Half {
    First,
    Second,
}

pub(crate) struct Network {
    random: Rng,
    settings: Settings,
    inboxes: Vec<Vec<Delayed>>,
    flying: Vec<Flying>,
    /// Transfers of each rank without a reported completion.
    transfers: Vec<usize>,
    refusals: Vec<u32>,
    traffic: Traffic,
}

impl Network {
    pub(crate) fn new(settings: Settings) -> Network {
        let ranks = settings.hosts.len();
        Network {
            random: Rng::with_seed(settings.seed),
            inboxes: (0..ranks).map(|_| Vec::new()).collect(),
            flying: Vec::new(),
            transfers: vec![0; ranks],
            refusals: vec![0; ranks],
            traffic: Traffic::default(),
            settings,
        }
    }

    pub(crate) fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Number of messages and transfers in flight or not handed out.
    pub(crate) fn in_flight(&self) -> usize {
        self.flying.len() + self.inboxes.iter().map(Vec::len).sum::<usize>()
    }

    /// Whether something in flight needs polls of `rank`.
    pub(crate) fn has_arrivals(&self, rank: Rank) -> bool {
        !self.inboxes[rank.index()].is_empty() || self.transfers[rank.index()] > 0
    }

    pub(crate) fn send(&mut self, from: Rank, to: Rank, message: Vec<u8>, urgency: Urgency) -> Result<(), Busy> {
        let most = match urgency {
            Urgency::Now => INBOX_MAX,
            Urgency::WhenCalled => INBOX_MAX - INBOX_KEPT_FREE,
        };
        let has_room = self.inboxes[to.index()].len() < most;
        self.admit(from, has_room)?;
        self.traffic.messages += 1;
        self.post(to, OwnedArrival::Message { from, bytes: message });
        Ok(())
    }

    /// Starts a put or get.
    ///
    /// # Safety
    /// Both regions are valid until the completion has been handed out; until then nobody writes the source and nobody
    /// else accesses the target.
    pub(crate) unsafe fn transfer(&mut self, what: Move) -> Result<(), Busy> {
        let rank = what.rank;
        self.admit(rank, self.transfers[rank.index()] < TRANSFERS_MAX)?;
        self.traffic.transfers += 1;
        self.transfers[rank.index()] += 1;
        let polls_left = self.delay();
        self.flying.push(Flying { what, polls_left, other_half: None });
        if polls_left == 0 {
            self.fly(self.flying.len() - 1);
        }
        Ok(())
    }

    /// One poll of `rank`: advances every transfer, and returns the arrivals due for `rank`.
    pub(crate) fn poll(&mut self, rank: Rank) -> Vec<OwnedArrival> {
        for at in (0..self.flying.len()).rev() {
            if self.flying[at].polls_left > 0 {
                self.flying[at].polls_left -= 1;
            } else {
                self.fly(at);
            }
        }
        let mut due = Vec::new();
        self.inboxes[rank.index()].retain_mut(|delayed| {
            let stays = delayed.polls_left > 0 || due.len() == POLL_ARRIVALS_MAX;
            delayed.polls_left = delayed.polls_left.saturating_sub(1);
            if !stays {
                due.push(std::mem::replace(&mut delayed.arrival, OwnedArrival::Complete(Token(0))));
            }
            stays
        });
        self.transfers[rank.index()] -=
            due.iter().filter(|arrival| matches!(arrival, OwnedArrival::Complete(_))).count();
        if self.settings.delay_percent > 0 {
            self.random.shuffle(&mut due);
        }
        due
    }

    /// Moves the halves of the transfer at `at` that are due.
    fn fly(&mut self, at: usize) {
        loop {
            let Flying { what, other_half, .. } = self.flying[at];
            let half = other_half.unwrap_or_else(|| if self.random.bool() { Half::First } else { Half::Second });
            // SAFETY: by the contract of `transfer` the regions are valid and untouched until completion, which
            // follows.
            unsafe { move_half(what, half) };
            if other_half.is_some() {
                self.flying.swap_remove(at);
                self.post(what.rank, OwnedArrival::Complete(what.token));
                return;
            }
            self.flying[at].other_half = Some(match half {
                Half::First => Half::Second,
                Half::Second => Half::First,
            });
            self.flying[at].polls_left = self.delay();
            if self.flying[at].polls_left > 0 {
                return;
            }
        }
    }

    fn post(&mut self, to: Rank, arrival: OwnedArrival) {
        let polls_left = self.delay();
        self.inboxes[to.index()].push(Delayed { polls_left, arrival });
    }

    fn delay(&mut self) -> u32 {
        let is_late = self.random.u32(0..100) < self.settings.delay_percent;
        if is_late { self.random.u32(1..=self.settings.delay_polls_max.max(1)) } else { 0 }
    }

    fn admit(&mut self, rank: Rank, has_room: bool) -> Result<(), Busy> {
        let refusals = &mut self.refusals[rank.index()];
        let is_refused = *refusals < REFUSALS_MAX && self.random.u32(0..100) < self.settings.busy_percent;
        *refusals = if is_refused { *refusals + 1 } else { 0 };
        if is_refused || !has_room { Err(Busy) } else { Ok(()) }
    }
}

/// Copies one half of a transfer.
///
/// # Safety
/// Both regions are valid, nobody writes the source, and nobody else accesses the target.
unsafe fn move_half(what: Move, half: Half) {
    let len_bytes = what.from.len_bytes;
    let (start, end) = match half {
        Half::First => (0, len_bytes / 2),
        Half::Second => (len_bytes / 2, len_bytes),
    };
    // SAFETY: the range is inside both regions; the caller guarantees exclusive access. `copy_from` allows overlap.
    unsafe { what.to.at(start).copy_from(what.from.at(start), end - start) };
}

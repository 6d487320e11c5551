//! Flow control of requests: how many requests of one rank may wait at another.
//!
//! A request takes credit from its sender's window at the target. The credit comes back when its handler has run: with
//! the reply if there was one, otherwise in a message of its own for several requests. So at most a window of requests
//! waits at a rank for each sender. A reply needs no credit: its receiver has sent the request for it, and the
//! request's credit is still out.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use vgasnet_protocol::Rank;
use vgasnet_sys::Signalproof;

/// Maximum requests of one rank waiting at another.
pub const WINDOW_REQUESTS: u32 = 64;

/// Maximum cost of requests of one rank waiting at another, in bytes of payload. A single request may cost more.
pub const WINDOW_COST: u32 = 128 << 10;

/// Requests and their cost, in one word so that both change together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    /// Number of requests.
    pub requests: u32,
    /// Bytes of payload.
    pub cost: u32,
}

impl Amount {
    fn of(bits: u64) -> Amount {
        Amount { requests: (bits >> 32) as u32, cost: bits as u32 }
    }

    fn bits(self) -> u64 {
        u64::from(self.requests) << 32 | u64::from(self.cost)
    }
}

/// The windows of one rank at all others, and the credit that it owes them.
#[derive(Debug)]
pub(super) struct Flow {
    sent: Box<[AtomicU64]>,
    owed: Box<[AtomicU64]>,
    /// The ranks owed credit, each once. Some may have been paid by now.
    creditors: Mutex<Vec<Rank>>,
    /// Whether any rank is listed.
    has_creditors: AtomicBool,
    is_creditor: Box<[AtomicBool]>,
    /// Number of returns of credit.
    returns: AtomicU64,
}

impl Flow {
    /// Nothing sent, nothing owed, among `ranks` ranks.
    pub(super) fn new(ranks: u32) -> Flow {
        let none = || (0..ranks).map(|_| AtomicU64::new(0)).collect();
        let is_creditor = (0..ranks).map(|_| AtomicBool::new(false)).collect();
        Flow {
            sent: none(),
            owed: none(),
            creditors: Mutex::new(Vec::new()),
            has_creditors: AtomicBool::new(false),
            is_creditor,
            returns: AtomicU64::new(0),
        }
    }

    /// Takes credit for a request, if there is some.
    pub(super) fn take(&self, to: Rank, cost: u32) -> bool {
        let more = |bits| {
            let Amount { requests, cost: sent } = Amount::of(bits);
            let fits = requests < WINDOW_REQUESTS && (requests == 0 || sent.saturating_add(cost) <= WINDOW_COST);
            fits.then(|| Amount { requests: requests + 1, cost: sent + cost }.bits())
        };
        self.sent[to.index()].fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).is_ok()
    }

    /// Takes credit back. Returns false if it was not out.
    #[must_use]
    pub(super) fn give_back(&self, from: Rank, back: Amount) -> bool {
        let less = |bits| {
            let Amount { requests, cost } = Amount::of(bits);
            Some(Amount { requests: requests.checked_sub(back.requests)?, cost: cost.checked_sub(back.cost)? }.bits())
        };
        let was_taken = self.sent[from.index()].fetch_update(Ordering::AcqRel, Ordering::Relaxed, less).is_ok();
        self.returns.fetch_add(1, Ordering::SeqCst);
        was_taken
    }

    /// Number of returns of credit. A sender without credit tries again when this has changed.
    pub(super) fn returns(&self) -> u64 {
        self.returns.load(Ordering::SeqCst)
    }

    /// Notes that a request of `from` was handled without a reply. Returns the credit to give back now, if it is large.
    pub(super) fn on_handled(&self, from: Rank, cost: u32) -> Option<Amount> {
        let owed = &self.owed[from.index()];
        let more = Amount { requests: 1, cost }.bits();
        let before = Amount::of(owed.fetch_add(more, Ordering::AcqRel));
        if before.requests + 1 >= WINDOW_REQUESTS / 4 || before.cost + cost >= WINDOW_COST / 4 {
            return self.pay(from);
        }
        if !self.is_creditor[from.index()].swap(true, Ordering::AcqRel) {
            let mut creditors = Signalproof::lock(&self.creditors);
            creditors.push(from);
            self.has_creditors.store(true, Ordering::Release);
        }
        None
    }

    /// Takes owed credit of one rank, to be given back when idle; `None` if none is owed.
    pub(super) fn pay_one(&self) -> Option<(Rank, Amount)> {
        while self.has_creditors.load(Ordering::Acquire) {
            let rank = {
                let mut creditors = Signalproof::lock(&self.creditors);
                let rank = creditors.pop();
                if rank.is_none() {
                    self.has_creditors.store(false, Ordering::Relaxed);
                }
                rank
            }?;
            // In this order: credit owed from now on lists the rank again.
            self.is_creditor[rank.index()].store(false, Ordering::Release);
            if let Some(amount) = self.pay(rank) {
                return Some((rank, amount));
            }
        }
        None
    }

    fn pay(&self, rank: Rank) -> Option<Amount> {
        let owed = Amount::of(self.owed[rank.index()].swap(0, Ordering::AcqRel));
        (owed != Amount::default()).then_some(owed)
    }

    /// Whether no credit is out and nothing is owed.
    #[cfg(test)]
    fn is_settled(&self) -> bool {
        self.sent.iter().chain(&self.owed).all(|amount| amount.load(Ordering::Acquire) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO: Rank = Rank(1);

    #[test]
    fn a_window_has_an_end_and_opens_again() {
        let flow = Flow::new(2);
        assert!((0..WINDOW_REQUESTS).all(|_| flow.take(TO, 0)));
        assert!(!flow.take(TO, 0) && flow.take(Rank(0), 0));
        assert!(flow.give_back(TO, Amount { requests: 2, cost: 0 }));
        assert!(flow.take(TO, 10) && flow.take(TO, 0) && !flow.take(TO, 0));
        assert!(!flow.give_back(TO, Amount { requests: 1, cost: 11 }), "more than was taken");
    }

    #[test]
    fn one_request_may_cost_anything_but_not_two() {
        let flow = Flow::new(2);
        assert!(flow.take(TO, 10 * WINDOW_COST) && !flow.take(TO, 1));
        assert!(flow.give_back(TO, Amount { requests: 1, cost: 10 * WINDOW_COST }));
        assert!(flow.is_settled());
        assert!(flow.take(TO, WINDOW_COST / 2) && flow.take(TO, WINDOW_COST / 2) && !flow.take(TO, 1));
    }

    #[test]
    fn debts_are_paid_when_they_are_large_or_when_there_is_time() {
        let flow = Flow::new(2);
        let paid: Vec<Amount> = (0..WINDOW_REQUESTS).filter_map(|_| flow.on_handled(TO, 1)).collect();
        assert_eq!(paid, [Amount { requests: WINDOW_REQUESTS / 4, cost: WINDOW_REQUESTS / 4 }; 4]);
        assert_eq!(flow.on_handled(TO, WINDOW_COST), Some(Amount { requests: 1, cost: WINDOW_COST }));
        assert_eq!((flow.on_handled(TO, 3), flow.on_handled(Rank(0), 4)), (None, None));
        let all = [(TO, Amount { requests: 1, cost: 3 }), (Rank(0), Amount { requests: 1, cost: 4 })];
        let settled: Vec<_> = std::iter::from_fn(|| flow.pay_one()).collect();
        assert!(all.iter().all(|debt| settled.contains(debt)), "{settled:?}");
        assert!(flow.pay_one().is_none() && flow.is_settled());
    }
}

//! The client side: the requests of one rank, each as its state at every home of its bytes.
//!
//! ```text
//!              Refused                    all homes below have granted
//!   Tried ───────────────────▶ Lacking ───────────────────────────────▶ Waits
//!     │ Granted                   ▲                                       │ Granted
//!     └──────────▶ Granted ───────┘                                       ▼
//!                          a home below lacks or waits                 Granted
//! ```

use super::message::{AskName, AskPart, LockMessage, LockPurpose};
use super::range::are_in_order;
use super::{Action, LockId, LockRange};
use crate::{Rank, Space, Violation};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// State of a request at one home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum AskState {
    /// Holds nothing and asks for nothing: its try was refused, or its grant was returned.
    Lacking,
    /// The ask is in flight or queued.
    Asked { waits: bool },
    /// Holds all its ranges there, by an ask of this kind.
    Granted { waits: bool },
}

/// A request's part at one home.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct AtHome {
    home: Rank,
    state: AskState,
    /// Emptied once the whole request is granted.
    ranges: Vec<LockRange>,
}

/// A request, from [`LockClient::lock`] to [`LockClient::unlock`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Request {
    number: u64,
    file: Space,
    purpose: LockPurpose,
    is_granted: bool,
    /// By home, ascending: the order in which all requests of all ranks wait.
    at: Vec<AtHome>,
}

/// The requests of one rank.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockClient {
    /// Maximum number of ranges in a message.
    ranges_max: usize,
    last: u64,
    requests: BTreeMap<u64, Request>,
}

impl LockClient {
    /// A client without requests.
    pub fn new(ranges_max: usize) -> LockClient {
        LockClient { ranges_max, last: 0, requests: BTreeMap::new() }
    }

    /// Asks each of these homes for its ranges, which are sorted.
    pub fn lock(
        &mut self,
        file: Space,
        purpose: LockPurpose,
        ranges: BTreeMap<Rank, Vec<LockRange>>,
        actions: &mut Vec<Action>,
    ) -> LockId {
        debug_assert!(ranges.values().all(|ranges| are_in_order(ranges)), "each home gets its ranges in order");
        self.last += 1;
        let number = self.last;
        // With one home the request holds nothing while it waits.
        let waits = ranges.len() == 1;
        let lacking = |(home, ranges)| AtHome { home, state: AskState::Lacking, ranges };
        let at = ranges.into_iter().map(lacking).collect();
        let mut request = Request { number, file, purpose, is_granted: false, at };
        for index in 0..request.at.len() {
            request.ask(index, waits, self.ranges_max, actions);
        }
        request.go_on(self.ranges_max, actions);
        let before = self.requests.insert(number, request);
        assert!(before.is_none(), "request {number} is new");
        LockId(number)
    }

    /// Unlocks a granted request.
    pub fn unlock(&mut self, id: LockId, actions: &mut Vec<Action>) {
        assert!(self.is_granted(id), "{id:?} is not granted");
        let mut request = self.requests.remove(&id.0).expect("it is granted");
        (0..request.at.len()).for_each(|index| request.give_back(index, actions));
        debug_assert!(request.at.iter().all(|at| !at.is_granted()), "no home keeps a lock of {id:?}");
    }

    /// A home has granted or refused an ask.
    pub fn on_answer(
        &mut self,
        from: Rank,
        name: AskName,
        grants: bool,
        actions: &mut Vec<Action>,
    ) -> Result<(), Violation> {
        let asked = AskState::Asked { waits: name.waits };
        let request = self.requests.get_mut(&name.number);
        let found = request.and_then(|request| {
            let index = request.at.binary_search_by_key(&from, |at| at.home).ok()?;
            (request.at[index].state == asked && (grants || !name.waits)).then_some((request, index))
        });
        let Some((request, index)) = found else {
            return Err(Violation::new(from, "an answer about a lock that this rank has not asked for"));
        };
        debug_assert!(!request.is_granted, "request {} waits for an answer", name.number);
        request.at[index].state = if grants { AskState::Granted { waits: name.waits } } else { AskState::Lacking };
        request.go_on(self.ranges_max, actions);
        Ok(())
    }

    /// Whether a request is granted.
    pub fn is_granted(&self, id: LockId) -> bool {
        self.requests.get(&id.0).is_some_and(|request| request.is_granted)
    }

    /// The requests about a file, pending or granted.
    pub fn requests_of(&self, file: Space) -> impl Iterator<Item = LockId> + '_ {
        self.requests.values().filter(move |request| request.file == file).map(|request| LockId(request.number))
    }

    /// Whether there is no request.
    pub fn is_quiet(&self) -> bool {
        self.requests.is_empty()
    }
}

impl Request {
    /// Continues after an answer.
    fn go_on(&mut self, ranges_max: usize, actions: &mut Vec<Action>) {
        let is_missing = |at: &AtHome| matches!(at.state, AskState::Lacking | AskState::Asked { waits: true });
        if let Some(missing) = self.at.iter().position(is_missing) {
            debug_assert!(!self.is_granted, "request {} lacks no home once it is granted", self.number);
            // Grants below are kept, as if taken in order. Grants above must not be kept while the request waits; a try
            // there is returned as soon as it is granted.
            (missing + 1..self.at.len()).for_each(|above| self.give_back(above, actions));
            let has_all_below = self.at[..missing].iter().all(AtHome::is_granted);
            if has_all_below && self.at[missing].state == AskState::Lacking {
                self.ask(missing, true, ranges_max, actions);
            }
        } else if self.at.iter().all(AtHome::is_granted) {
            assert!(!self.is_granted, "request {} is granted once", self.number);
            self.is_granted = true;
            self.at.iter_mut().for_each(|at| at.ranges = Vec::new());
            actions.push(Action::Granted(LockId(self.number)));
        }
    }

    /// Asks a home, in as many messages as needed.
    fn ask(&mut self, index: usize, waits: bool, ranges_max: usize, actions: &mut Vec<Action>) {
        let name = AskName { number: self.number, waits };
        let (file, purpose) = (self.file, self.purpose);
        let AtHome { home, state, ranges } = &mut self.at[index];
        assert_eq!(*state, AskState::Lacking, "{home:?} is asked once at a time");
        assert!(!ranges.is_empty(), "{home:?} is asked for some range");
        *state = AskState::Asked { waits };
        let count = u32::try_from(ranges.len()).expect("a request has fewer than 2^32 ranges");
        let mut first = 0;
        for part in ranges.chunks(ranges_max) {
            let message = LockMessage::Ask(AskPart { name, file, purpose, ranges: count, first });
            actions.push(Action::Send { to: *home, bytes: message.encode(part) });
            first += part.len() as u32;
        }
        debug_assert_eq!(first, count, "{home:?} gets each range once");
    }

    /// Returns a home's grant, if there is one.
    fn give_back(&mut self, index: usize, actions: &mut Vec<Action>) {
        let at = &mut self.at[index];
        if let AskState::Granted { waits } = at.state {
            at.state = AskState::Lacking;
            actions.push(Action::send(at.home, LockMessage::Unlock(AskName { number: self.number, waits })));
        }
    }
}

impl AtHome {
    fn is_granted(&self) -> bool {
        matches!(self.state, AskState::Granted { .. })
    }
}

//! The split-phase barrier, as a state machine.
//!
//! ```text
//!           notify            every Arrived came          Released came            finish
//!   Between ───────▶ Notified ──────────────────▶ Told ──────────────────▶ Released ───────▶ Between
//!                        └──────────── at the root ──────────────────────────▲
//! ```
//!
//! Ranks form a tree. A rank that has notified and heard from all its children tells its parent; the root sends the
//! outcome back down. A phase costs 2 (n - 1) messages among n ranks.
//!
//! Source: GASNet specification 1.8, barriers; the rule for ids and flags is the one GASNet has had since 1.20.

use crate::wire::{self, Encoded, Malformed};
use crate::{Rank, Violation, messages};

/// Maximum number of children of a rank in the tree.
const CHILDREN_MAX: u32 = 4;

messages! {
    /// The name of a phase: one rank's in [`Barrier::notify`], or all ranks' combined in the outcome.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Name {
        /// No id: it matches any.
        0 => Anonymous,
        /// This id.
        1 => Id(id: i32),
        /// Ids differ, or a rank asked for a mismatch.
        2 => Mismatch,
    }
}

impl Name {
    /// Combines the names of two ranks, or of two subtrees.
    pub fn join(self, other: Name) -> Name {
        match (self, other) {
            (Name::Anonymous, name) | (name, Name::Anonymous) => name,
            (Name::Id(a), Name::Id(b)) if a == b => self,
            _ => Name::Mismatch,
        }
    }

    /// Combines the name at the notify with `name` at the wait, given the `outcome` of all ranks. An id at the wait
    /// counts only if some rank notified with one.
    pub fn at_wait(self, name: Name, outcome: Name) -> Name {
        let name = if outcome == Name::Anonymous && name != Name::Mismatch { Name::Anonymous } else { name };
        if self == Name::Anonymous { outcome.join(name) } else { self.join(name) }
    }
}

messages! {
    /// A message between a rank and its parent or child in the tree.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BarrierMessage {
        /// To the parent: all ranks of this subtree have notified, with this combined name.
        0 => Arrived(name: Name),
        /// To a child: all ranks have notified, with this combined name.
        1 => Released(outcome: Name),
    }
}

messages! {
    /// A message of one of the driver's barriers.
    struct Tagged {
        tag: u8,
        message: BarrierMessage,
    }
}

/// A call forbidden by the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// A second notify before the wait for the phase.
    NotifiedTwice,
    /// A wait or try without a notify.
    NotNotified,
    /// A result without a barrier that has just matched.
    NoResult,
}

/// One rank's part of the barrier.
#[derive(Debug)]
pub struct Barrier {
    rank: u32,
    ranks: u32,
    /// The children arrived for the next phase: one bit each, the first child lowest.
    arrived: u8,
    /// Their combined name, including this rank's once it has notified.
    gathered: Name,
    phase: Phase,
    /// The name of the last phase, if it matched.
    last: Option<Name>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The client has not notified.
    Between,
    /// The client has notified, with this name.
    Notified(Name),
    /// All ranks below have notified too, and the parent knows.
    Told(Name),
    /// All ranks have notified; the client has not ended the phase.
    Released { own: Name, outcome: Name },
}

impl Barrier {
    /// The part of `rank` in a barrier of ranks `0..ranks`.
    pub fn new(rank: Rank, ranks: u32) -> Barrier {
        assert!(rank.0 < ranks, "rank {rank} is one of the {ranks} ranks of the barrier");
        Barrier { rank: rank.0, ranks, arrived: 0, gathered: Name::Anonymous, phase: Phase::Between, last: None }
    }

    /// The client notifies. `send` gets the resulting messages.
    ///
    /// # Errors
    /// [`Misuse::NotifiedTwice`] if the client has not ended the previous phase.
    pub fn notify(&mut self, name: Name, send: &mut dyn FnMut(Rank, BarrierMessage)) -> Result<(), Misuse> {
        if self.phase != Phase::Between {
            return Err(Misuse::NotifiedTwice);
        }
        self.phase = Phase::Notified(name);
        self.gathered = self.gathered.join(name);
        self.pass_on(send);
        Ok(())
    }

    /// A message arrived from a rank, in the barrier's numbering. `send` gets the resulting messages.
    ///
    /// # Errors
    /// The sender is neither child nor parent of this rank, or has no reason to send this now.
    pub fn on_message(
        &mut self,
        from: Rank,
        message: BarrierMessage,
        send: &mut dyn FnMut(Rank, BarrierMessage),
    ) -> Result<(), Violation> {
        match (message, self.phase) {
            (BarrierMessage::Arrived(name), Phase::Between | Phase::Notified(_) | Phase::Released { .. }) => {
                let place = self.children().position(|child| child == from);
                let bit = place.map_or(0, |place| 1 << place);
                if bit == 0 || self.arrived & bit != 0 {
                    return Err(Violation::new(from, "an arrival at a barrier that this rank does not wait for"));
                }
                self.arrived |= bit;
                debug_assert!(self.arrived.count_ones() <= CHILDREN_MAX, "each child arrives once");
                self.gathered = self.gathered.join(name);
                self.pass_on(send);
            }
            (BarrierMessage::Released(outcome), Phase::Told(own)) if Some(from) == self.parent() => {
                self.release(own, outcome, send);
            }
            _ => return Err(Violation::new(from, "a message of a barrier out of turn")),
        }
        Ok(())
    }

    /// Whether the client has notified and not ended the phase.
    pub fn is_in_phase(&self) -> bool {
        self.phase != Phase::Between
    }

    /// Whether all ranks have notified and the client may end the phase.
    pub fn is_released(&self) -> bool {
        matches!(self.phase, Phase::Released { .. })
    }

    /// Ends the phase if all ranks have notified. Returns whether their names match each other and the client's `name`
    /// at the wait; `None` if the phase goes on.
    ///
    /// # Errors
    /// [`Misuse::NotNotified`] if the client has not notified.
    pub fn finish(&mut self, name: Name) -> Result<Option<bool>, Misuse> {
        match self.phase {
            Phase::Between => Err(Misuse::NotNotified),
            Phase::Notified(_) | Phase::Told(_) => Ok(None),
            Phase::Released { own, outcome } => {
                self.phase = Phase::Between;
                let matched = outcome != Name::Mismatch && own.at_wait(name, outcome) != Name::Mismatch;
                self.last = matched.then_some(outcome);
                Ok(Some(matched))
            }
        }
    }

    /// The name of the phase that has just ended; the same on every rank.
    ///
    /// # Errors
    /// [`Misuse::NoResult`] if no phase has ended, the last one did not match, or the client has notified again.
    pub fn result(&self) -> Result<Name, Misuse> {
        self.last.filter(|_| self.phase == Phase::Between).ok_or(Misuse::NoResult)
    }

    fn children(&self) -> impl Iterator<Item = Rank> + use<> {
        let first = u64::from(self.rank) * u64::from(CHILDREN_MAX) + 1;
        let end = (first + u64::from(CHILDREN_MAX)).min(u64::from(self.ranks));
        (first..end).map(|child| Rank(child as u32))
    }

    fn parent(&self) -> Option<Rank> {
        self.rank.checked_sub(1).map(|above| Rank(above / CHILDREN_MAX))
    }

    /// Tells the parent, or at the root releases all ranks, once this subtree is complete.
    fn pass_on(&mut self, send: &mut dyn FnMut(Rank, BarrierMessage)) {
        let Phase::Notified(own) = self.phase else { return };
        debug_assert!(self.arrived.count_ones() as usize <= self.children().count(), "only children arrive here");
        if self.arrived.count_ones() as usize != self.children().count() {
            return;
        }
        let gathered = core::mem::replace(&mut self.gathered, Name::Anonymous);
        self.arrived = 0;
        match self.parent() {
            None => self.release(own, gathered, send),
            Some(parent) => {
                self.phase = Phase::Told(own);
                send(parent, BarrierMessage::Arrived(gathered));
            }
        }
    }

    fn release(&mut self, own: Name, outcome: Name, send: &mut dyn FnMut(Rank, BarrierMessage)) {
        let is_on = matches!(self.phase, Phase::Notified(_) | Phase::Told(_));
        assert!(is_on, "a phase is released once, after this rank has notified, and not in {:?}", self.phase);
        self.phase = Phase::Released { own, outcome };
        for child in self.children() {
            send(child, BarrierMessage::Released(outcome));
        }
    }
}

impl BarrierMessage {
    /// The message as bytes; the first byte is `tag`.
    pub fn encode(self, tag: u8) -> Encoded {
        wire::encode(&Tagged { tag, message: self })
    }

    /// Reads the bytes of [`BarrierMessage::encode`], with any tag.
    ///
    /// # Errors
    /// The bytes are something else.
    pub fn decode(bytes: &[u8]) -> Result<BarrierMessage, Malformed> {
        wire::decode(bytes).map(|Tagged { message, .. }| message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    struct TestJob {
        ranks: Vec<Barrier>,
        /// Sender, receiver and message.
        mail: Vec<(Rank, Rank, BarrierMessage)>,
        random: fastrand::Rng,
    }

    impl TestJob {
        fn new(ranks: u32, seed: u64) -> TestJob {
            let barrier = |rank| Barrier::new(Rank(rank), ranks);
            TestJob {
                ranks: (0..ranks).map(barrier).collect(),
                mail: Vec::new(),
                random: fastrand::Rng::with_seed(seed),
            }
        }

        fn notify(&mut self, rank: usize, name: Name) -> Result<(), Misuse> {
            self.ranks[rank].notify(name, &mut |to, message| self.mail.push((Rank(rank as u32), to, message)))
        }

        fn deliver(&mut self) {
            while !self.mail.is_empty() {
                let (from, to, message) = self.mail.swap_remove(self.random.usize(0..self.mail.len()));
                let bytes = message.encode(99);
                let message = BarrierMessage::decode(&bytes).expect("a message survives encoding");
                let mut send = |next, message| self.mail.push((to, next, message));
                self.ranks[to.index()].on_message(from, message, &mut send).expect("it makes sense");
            }
        }

        /// Runs one phase with each rank's names at notify and wait; returns each rank's match.
        fn phase(&mut self, names: &[(Name, Name)]) -> Vec<bool> {
            let mut order: Vec<usize> = (0..names.len()).collect();
            self.random.shuffle(&mut order);
            for rank in order {
                assert_eq!(self.ranks[rank].finish(names[rank].1), Err(Misuse::NotNotified));
                self.notify(rank, names[rank].0).expect("between phases");
                assert_eq!(self.notify(rank, names[rank].0), Err(Misuse::NotifiedTwice));
                if self.random.bool() {
                    self.deliver();
                }
            }
            self.deliver();
            let finish = |(rank, name): (&mut Barrier, &(Name, Name))| rank.finish(name.1);
            let outcomes = self.ranks.iter_mut().zip(names).map(finish);
            outcomes.map(|outcome| outcome.expect("notified").expect("released")).collect()
        }
    }

    const A: Name = Name::Anonymous;
    const M: Name = Name::Mismatch;
    const fn id(id: i32) -> Name {
        Name::Id(id)
    }

    #[test]
    fn no_rank_passes_before_all_have_come() {
        for ranks in 1..=if cfg!(miri) { 8 } else { 40 } {
            let mut job = TestJob::new(ranks, u64::from(ranks));
            for phase in 0..5 {
                for rank in 1..ranks as usize {
                    job.notify(rank, id(phase)).expect("between phases");
                    job.deliver();
                    assert!(job.ranks.iter().all(|rank| !rank.is_released()));
                }
                job.notify(0, id(phase)).expect("between phases");
                job.deliver();
                for rank in &mut job.ranks {
                    assert_eq!(rank.finish(id(phase)), Ok(Some(true)));
                }
            }
        }
    }

    #[test]
    fn messages_out_of_turn_are_refused() {
        use BarrierMessage::{Arrived, Released};
        let mut never = |_: Rank, _: BarrierMessage| panic!("nothing follows from a violation");
        // Rank 1 of 7 has rank 0 above it, and ranks 5 and 6 below.
        let mut barrier = Barrier::new(Rank(1), 7);
        for (from, message) in [(0, Released(A)), (0, Arrived(A)), (1, Arrived(A)), (4, Arrived(A)), (7, Arrived(A))] {
            assert!(barrier.on_message(Rank(from), message, &mut never).is_err(), "{from}: {message:?}");
        }
        assert_eq!(barrier.on_message(Rank(5), Arrived(A), &mut never), Ok(()));
        assert!(barrier.on_message(Rank(5), Arrived(A), &mut never).is_err(), "a second time");
        barrier.notify(A, &mut never).expect("between phases");
        assert!(barrier.on_message(Rank(0), Released(A), &mut never).is_err(), "rank 6 has not come");
        let mut sent = Vec::new();
        let mut send = |to: Rank, message| sent.push((to.0, message));
        assert_eq!(barrier.on_message(Rank(6), Arrived(A), &mut send), Ok(()));
        assert!(barrier.on_message(Rank(6), Arrived(A), &mut send).is_err(), "before it is released");
        assert!(barrier.on_message(Rank(5), Released(A), &mut send).is_err(), "by a child");
        assert_eq!(barrier.on_message(Rank(0), Released(A), &mut send), Ok(()));
        assert!(barrier.on_message(Rank(0), Released(A), &mut send).is_err(), "a second time");
        assert_eq!(sent, [(0, Arrived(A)), (5, Released(A)), (6, Released(A))]);
        let mut root = Barrier::new(Rank(0), 2);
        root.notify(A, &mut never).expect("between phases");
        assert!(root.on_message(Rank(1), Released(A), &mut never).is_err(), "the root is released by nobody");
    }

    #[test]
    fn the_result_is_what_the_notifies_had_in_common() {
        let mut job = TestJob::new(3, 2);
        assert_eq!(job.ranks[0].result(), Err(Misuse::NoResult));
        for (names, result) in [
            ([(A, A), (id(5), A), (A, id(5))], id(5)),
            ([(A, id(7)), (A, A), (A, id(8))], A),
            ([(id(-1), id(-1)), (id(-1), A), (A, A)], id(-1)),
        ] {
            assert_eq!(job.phase(&names), [true; 3]);
            assert!(job.ranks.iter().all(|rank| rank.result() == Ok(result)));
        }
        job.notify(0, A).expect("between phases");
        assert_eq!(job.ranks[0].result(), Err(Misuse::NoResult));
        job.notify(1, M).expect("between phases");
        job.notify(2, A).expect("between phases");
        job.deliver();
        for rank in &mut job.ranks {
            assert_eq!(rank.finish(A), Ok(Some(false)));
            assert_eq!(rank.result(), Err(Misuse::NoResult));
        }
    }

    #[test]
    fn ids_and_flags_match_as_gasnet_has_it() {
        let mut job = TestJob::new(3, 1);
        let all = |name| [(name, name); 3];
        assert_eq!(job.phase(&all(A)), [true; 3]);
        assert_eq!(job.phase(&all(id(5))), [true; 3]);
        assert_eq!(job.phase(&all(M)), [false; 3]);
        assert_eq!(job.phase(&[(id(5), id(5)), (id(6), id(6)), (id(5), id(5))]), [false; 3]);
        assert_eq!(job.phase(&[(A, A), (id(5), id(5)), (A, A)]), [true; 3]);
        assert_eq!(job.phase(&[(A, A), (M, M), (id(1), id(1))]), [false; 3]);
        // An id at the notify only; then at the wait only, the others' id or a different one.
        assert_eq!(job.phase(&[(id(5), A), (id(5), id(5)), (id(5), A)]), [true; 3]);
        assert_eq!(job.phase(&[(A, id(5)), (id(5), id(5)), (A, id(6))]), [true, true, false]);
        assert_eq!(job.phase(&[(A, id(5)), (A, id(6)), (A, A)]), [true; 3]);
        // An id at the wait differing from the one at the notify is a mismatch on that rank only.
        assert_eq!(job.phase(&[(id(5), id(6)), (id(5), id(5)), (id(5), id(5))]), [false, true, true]);
        assert_eq!(job.phase(&[(id(5), M), (id(5), id(5)), (A, A)]), [false, true, true]);
    }
}

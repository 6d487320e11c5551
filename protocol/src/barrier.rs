//! The split-phase barrier, as a state machine without I/O.
//!
//! Ranks form a tree. A rank that has notified and heard from all its children tells its parent; the root sends the
//! outcome back down. A phase costs 2 (n - 1) messages.
//!
//! Source: GASNet specification 1.8, barriers; the rule for ids and flags is the one GASNet has had since 1.20.

use crate::wire::{self, Encoded, Layout, Malformed};
use crate::{Rank, messages};

/// Children of a rank in the tree.
const CHILDREN_MAX: u32 = 4;

messages! {
    /// What ranks say about a phase: alone in [`Barrier::notify`], together in the outcome.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Name {
        /// Any id will do.
        0 => Anonymous,
        /// This id.
        1 => Id(id: i32),
        /// The ids differ, or somebody asked for a mismatch.
        2 => Mismatch,
    }
}

impl Name {
    /// What two ranks, or two parts of the tree, say together.
    fn join(self, other: Name) -> Name {
        match (self, other) {
            (Name::Anonymous, name) | (name, Name::Anonymous) => name,
            (Name::Id(a), Name::Id(b)) if a == b => self,
            _ => Name::Mismatch,
        }
    }
}

messages! {
    /// A message between a rank and its parent or child in the tree.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BarrierMessage {
        /// To the parent: everyone below has notified.
        0 => Arrived(name: Name),
        /// To a child: everyone has notified.
        1 => Released(outcome: Name),
    }
}

/// A call that the specification forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// A second notify before the phase was waited for.
    NotifiedTwice,
    /// A wait or try without a notify.
    NotNotified,
    /// The result is asked for where no barrier has just matched.
    NoResult,
}

/// One rank's part of the barrier.
#[derive(Debug)]
pub struct Barrier {
    rank: u32,
    ranks: u32,
    /// Children that have arrived for the phase being gathered.
    arrived: u32,
    /// What they say together, with this rank once it has notified.
    gathered: Name,
    phase: Phase,
    /// What the last barrier was called, if it matched.
    last: Option<Name>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The client has not notified.
    Between,
    /// It has, with this name.
    Notified(Name),
    /// Everyone has; the client does not know yet.
    Released { own: Name, outcome: Name },
}

impl Barrier {
    /// A barrier among `ranks` ranks.
    pub fn new(rank: Rank, ranks: u32) -> Barrier {
        Barrier { rank: rank.0, ranks, arrived: 0, gathered: Name::Anonymous, phase: Phase::Between, last: None }
    }

    /// The client arrives. Messages to send are handed to `send`.
    pub fn notify(&mut self, name: Name, send: &mut dyn FnMut(Rank, BarrierMessage)) -> Result<(), Misuse> {
        if self.phase != Phase::Between {
            return Err(Misuse::NotifiedTwice);
        }
        self.phase = Phase::Notified(name);
        self.gathered = self.gathered.join(name);
        self.pass_on(send);
        Ok(())
    }

    /// A message came.
    pub fn on_message(&mut self, message: BarrierMessage, send: &mut dyn FnMut(Rank, BarrierMessage)) {
        match message {
            BarrierMessage::Arrived(name) => {
                self.arrived += 1;
                self.gathered = self.gathered.join(name);
                self.pass_on(send);
            }
            BarrierMessage::Released(outcome) => self.release(outcome, send),
        }
    }

    /// Whether the client has notified, and not ended the phase.
    pub fn is_in_phase(&self) -> bool {
        self.phase != Phase::Between
    }

    /// Whether everyone has notified.
    pub fn is_released(&self) -> bool {
        matches!(self.phase, Phase::Released { .. })
    }

    /// Ends the phase if everyone has notified: whether the names match as seen from here.
    pub fn finish(&mut self, name: Name) -> Result<Option<bool>, Misuse> {
        match self.phase {
            Phase::Between => Err(Misuse::NotNotified),
            Phase::Notified(_) => Ok(None),
            Phase::Released { own, outcome } => {
                self.phase = Phase::Between;
                let named = |name| if own == Name::Anonymous { outcome.join(name) } else { own.join(name) };
                let matched = outcome != Name::Mismatch && named(self.named_at_wait(name, outcome)) != Name::Mismatch;
                self.last = matched.then_some(outcome);
                Ok(Some(matched))
            }
        }
    }

    /// What the barrier was called that has just ended and matched; the same on every rank.
    pub fn result(&self) -> Result<Name, Misuse> {
        self.last.filter(|_| self.phase == Phase::Between).ok_or(Misuse::NoResult)
    }

    /// An id given at the wait counts only where some rank named one.
    fn named_at_wait(&self, name: Name, outcome: Name) -> Name {
        if outcome == Name::Anonymous && name != Name::Mismatch { Name::Anonymous } else { name }
    }

    fn children(&self) -> impl Iterator<Item = Rank> + use<> {
        let first = u64::from(self.rank) * u64::from(CHILDREN_MAX) + 1;
        let end = (first + u64::from(CHILDREN_MAX)).min(u64::from(self.ranks));
        (first..end).map(|child| Rank(child as u32))
    }

    /// Tells the parent, or everyone, once this part of the tree is complete.
    fn pass_on(&mut self, send: &mut dyn FnMut(Rank, BarrierMessage)) {
        let complete = matches!(self.phase, Phase::Notified(_)) && self.arrived as usize == self.children().count();
        if !complete {
            return;
        }
        let gathered = core::mem::replace(&mut self.gathered, Name::Anonymous);
        self.arrived = 0;
        if self.rank == 0 {
            self.release(gathered, send);
        } else {
            send(Rank((self.rank - 1) / CHILDREN_MAX), BarrierMessage::Arrived(gathered));
        }
    }

    fn release(&mut self, outcome: Name, send: &mut dyn FnMut(Rank, BarrierMessage)) {
        let Phase::Notified(own) = self.phase else {
            panic!("a barrier was released that rank {} has not joined", self.rank)
        };
        self.phase = Phase::Released { own, outcome };
        for child in self.children() {
            send(child, BarrierMessage::Released(outcome));
        }
    }
}

impl BarrierMessage {
    /// The message as bytes, the first of which is `tag`.
    pub fn encode(self, tag: u8) -> Encoded {
        let mut bytes = Encoded::new();
        tag.write(&mut bytes);
        self.write(&mut bytes);
        bytes
    }

    /// Reads what [`BarrierMessage::encode`] wrote behind the tag.
    ///
    /// # Errors
    /// The bytes are something else.
    pub fn decode(bytes: &[u8]) -> Result<BarrierMessage, Malformed> {
        wire::decode(bytes.get(1..).ok_or(Malformed)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    struct Job {
        ranks: Vec<Barrier>,
        mail: Vec<(Rank, BarrierMessage)>,
        random: fastrand::Rng,
    }

    impl Job {
        fn new(ranks: u32, seed: u64) -> Job {
            let barrier = |rank| Barrier::new(Rank(rank), ranks);
            Job { ranks: (0..ranks).map(barrier).collect(), mail: Vec::new(), random: fastrand::Rng::with_seed(seed) }
        }

        fn notify(&mut self, rank: usize, name: Name) -> Result<(), Misuse> {
            self.ranks[rank].notify(name, &mut |to, message| self.mail.push((to, message)))
        }

        fn deliver(&mut self) {
            while !self.mail.is_empty() {
                let (to, message) = self.mail.swap_remove(self.random.usize(0..self.mail.len()));
                let bytes = message.encode(99);
                let message = BarrierMessage::decode(&bytes).expect("a message survives encoding");
                self.ranks[to.index()].on_message(message, &mut |to, message| self.mail.push((to, message)));
            }
        }

        /// One phase: what each rank notifies and waits with, and whether it sees a match.
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
    fn nobody_passes_before_all_have_come() {
        for ranks in 1..=40 {
            let mut job = Job::new(ranks, u64::from(ranks));
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
    fn the_result_is_what_the_notifies_had_in_common() {
        let mut job = Job::new(3, 2);
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
        let mut job = Job::new(3, 1);
        let all = |name| [(name, name); 3];
        assert_eq!(job.phase(&all(A)), [true; 3]);
        assert_eq!(job.phase(&all(id(5))), [true; 3]);
        assert_eq!(job.phase(&all(M)), [false; 3]);
        assert_eq!(job.phase(&[(id(5), id(5)), (id(6), id(6)), (id(5), id(5))]), [false; 3]);
        assert_eq!(job.phase(&[(A, A), (id(5), id(5)), (A, A)]), [true; 3]);
        assert_eq!(job.phase(&[(A, A), (M, M), (id(1), id(1))]), [false; 3]);
        // Named at the notify, anonymous at the wait; and the other way round, with the others' id and with another.
        assert_eq!(job.phase(&[(id(5), A), (id(5), id(5)), (id(5), A)]), [true; 3]);
        assert_eq!(job.phase(&[(A, id(5)), (id(5), id(5)), (A, id(6))]), [true, true, false]);
        assert_eq!(job.phase(&[(A, id(5)), (A, id(6)), (A, A)]), [true; 3]);
        // A different id at the wait than at the notify is a mismatch there only.
        assert_eq!(job.phase(&[(id(5), id(6)), (id(5), id(5)), (id(5), id(5))]), [false, true, true]);
        assert_eq!(job.phase(&[(id(5), M), (id(5), id(5)), (A, A)]), [false, true, true]);
    }
}

//! The barrier whose ranks give names: GASNet-1's.
//!
//! Its phases are those of the protocol's barrier. Each rank is a leaf of a tree there whose root are all ranks together: it tells the root
//! its name by the words that they share, and finds the outcome there.

use super::meeting::{Line, Meeting, NONE};
use crate::sys::Signalproof;
use std::sync::Mutex;
use vgasnet_protocol::Rank;
use vgasnet_protocol::barrier::{Barrier, BarrierMessage, Misuse, Name};

#[cfg(all(loom, test))]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(all(loom, test)))]
use std::sync::atomic::{AtomicU64, Ordering};

/// The place of a rank in its tree of two.
const LEAF: Rank = Rank(1);
const ROOT: Rank = Rank(0);

/// What the ranks share: zero at first.
#[repr(C)]
pub(super) struct NamedMeeting {
    meeting: Meeting,
    /// What the ranks have given together so far: at the meetings with even numbers, and at those with odd ones. Who comes to a meeting
    /// has read the outcome of the one before.
    names: [Line; 2],
}

/// This rank's part in the barrier.
pub(in crate::engine) struct NamedHostBarrier<'a> {
    words: &'a NamedMeeting,
    ranks: u64,
    phases: Mutex<Barrier>,
    /// The number of the barrier that this rank has notified and not seen over, or [`NONE`].
    awaited: AtomicU64,
    /// The number of the last barrier that this rank has seen over.
    seen: AtomicU64,
}

impl<'a> NamedHostBarrier<'a> {
    /// The barrier of so many ranks, which meet there and nowhere else.
    pub(super) fn new(words: &'a NamedMeeting, ranks: u32) -> NamedHostBarrier<'a> {
        let phases = Mutex::new(Barrier::new(LEAF, 2));
        NamedHostBarrier { words, ranks: ranks.into(), phases, awaited: AtomicU64::new(NONE), seen: AtomicU64::new(0) }
    }

    /// Comes to the barrier with this name. Returns whether this rank lets others go.
    ///
    /// # Errors
    /// As [`Barrier::notify`].
    pub(in crate::engine) fn notify(&self, name: Name) -> Result<bool, Misuse> {
        let mut phases = Signalproof::lock(&self.phases);
        let mut told = Name::Anonymous;
        phases.notify(name, &mut |_, message| {
            if let BarrierMessage::Arrived(name) = message {
                told = name;
            }
        })?;
        let number = self.seen.load(Ordering::Relaxed) + 1;
        self.give(number, told);
        let (_, is_last) = self.words.meeting.come(self.ranks, || {
            // All have read what was there: the outcome of the barrier before.
            self.names_of(number + 1).store(bits(Name::Anonymous), Ordering::Relaxed);
        });
        self.awaited.store(number, Ordering::Relaxed);
        self.take_note(&mut phases);
        Ok(is_last)
    }

    /// Whether the barrier is over to which this rank has come, and nobody has taken note of that.
    #[inline]
    pub(in crate::engine) fn is_released(&self) -> bool {
        self.words.meeting.is_over(self.awaited.load(Ordering::Relaxed))
    }

    /// Whether this rank has nothing to wait for: it has not notified, or all others have, too.
    pub(in crate::engine) fn is_over(&self) -> bool {
        self.awaited.load(Ordering::Relaxed) == NONE || self.is_released()
    }

    /// Takes note of the barrier if it is over. Returns whether it did.
    pub(in crate::engine) fn pass(&self) -> bool {
        self.take_note(&mut Signalproof::lock(&self.phases))
    }

    /// As [`Barrier::is_released`].
    pub(in crate::engine) fn may_finish(&self) -> bool {
        let mut phases = Signalproof::lock(&self.phases);
        self.take_note(&mut phases);
        phases.is_released()
    }

    /// As [`Barrier::finish`].
    ///
    /// # Errors
    /// As there.
    pub(in crate::engine) fn finish(&self, name: Name) -> Result<Option<bool>, Misuse> {
        let mut phases = Signalproof::lock(&self.phases);
        self.take_note(&mut phases);
        phases.finish(name)
    }

    /// As [`Barrier::result`].
    ///
    /// # Errors
    /// As there.
    pub(in crate::engine) fn result(&self) -> Result<Name, Misuse> {
        Signalproof::lock(&self.phases).result()
    }

    fn names_of(&self, number: u64) -> &AtomicU64 {
        &self.words.names[(number % 2) as usize].0
    }

    /// Gives a name at a meeting.
    fn give(&self, number: u64, name: Name) {
        if name == Name::Anonymous {
            return;
        }
        let join = |given| Some(bits(name_of(given).join(name)));
        // It comes before the arrival, which orders it.
        let _ = self.names_of(number).fetch_update(Ordering::Relaxed, Ordering::Relaxed, join);
    }

    fn take_note(&self, phases: &mut Barrier) -> bool {
        let number = self.awaited.load(Ordering::Relaxed);
        if !self.words.meeting.is_over(number) {
            return false;
        }
        let outcome = BarrierMessage::Released(name_of(self.names_of(number).load(Ordering::Relaxed)));
        let told = phases.on_message(ROOT, outcome, &mut |_, _| ());
        assert!(told.is_ok(), "a rank that has notified waits for the outcome: {told:?}");
        self.seen.store(number, Ordering::Relaxed);
        self.awaited.store(NONE, Ordering::Relaxed);
        true
    }
}

/// A name as a word; none is zero.
fn bits(name: Name) -> u64 {
    match name {
        Name::Anonymous => 0,
        Name::Id(id) => 1 << 32 | u64::from(id as u32),
        Name::Mismatch => 2 << 32,
    }
}

fn name_of(bits: u64) -> Name {
    match bits >> 32 {
        0 => Name::Anonymous,
        1 => Name::Id(bits as u32 as i32),
        _ => Name::Mismatch,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn words() -> NamedMeeting {
        NamedMeeting { meeting: Meeting::new(), names: [(); 2].map(|()| Line(AtomicU64::new(0))) }
    }

    /// Runs one barrier of these names, at the notify and at the wait, the last rank last. Returns what the ranks find.
    fn outcome(ranks: &[NamedHostBarrier<'_>], names: &[(Name, Name)]) -> Vec<bool> {
        for (at, (rank, (name, _))) in ranks.iter().zip(names).enumerate() {
            assert_eq!(rank.notify(*name), Ok(at + 1 == ranks.len()));
            assert_eq!(rank.notify(*name), Err(Misuse::NotifiedTwice));
            assert!(at + 1 == ranks.len() || rank.finish(*name) == Ok(None) && !rank.may_finish() && !rank.is_over());
        }
        let find = |(rank, (_, name)): (&NamedHostBarrier<'_>, &(Name, Name))| {
            assert!(rank.may_finish() && rank.is_over() && !rank.is_released());
            rank.finish(*name).expect("it has notified").expect("all have come")
        };
        ranks.iter().zip(names).map(find).collect()
    }

    #[test]
    fn ranks_find_whether_their_names_match() {
        use Name::{Anonymous, Id, Mismatch};
        let words = words();
        let ranks = [(); 3].map(|()| NamedHostBarrier::new(&words, 3));
        let same = |names: [Name; 3]| names.map(|name| (name, name));
        assert_eq!(ranks[0].finish(Anonymous), Err(Misuse::NotNotified));
        assert_eq!(outcome(&ranks, &same([Id(-5), Anonymous, Id(-5)])), [true; 3]);
        assert_eq!(ranks[1].result(), Ok(Id(-5)));
        assert_eq!(outcome(&ranks, &same([Anonymous; 3])), [true; 3]);
        assert_eq!(ranks[1].result(), Ok(Anonymous));
        assert_eq!(outcome(&ranks, &same([Id(1), Id(2), Anonymous])), [false; 3]);
        assert_eq!(ranks[1].result(), Err(Misuse::NoResult));
        assert_eq!(outcome(&ranks, &same([Anonymous, Mismatch, Id(0)])), [false; 3]);
        assert_eq!(outcome(&ranks, &[(Id(7), Id(8)), (Id(7), Id(7)), (Anonymous, Id(7))]), [false, true, true]);
        assert_eq!(outcome(&ranks, &same([Id(i32::MIN), Id(i32::MIN), Anonymous])), [true; 3]);
    }

    #[test]
    fn a_rank_may_notify_the_next_one_before_another_has_read_the_outcome() {
        let words = words();
        let [a, b] = [(); 2].map(|()| NamedHostBarrier::new(&words, 2));
        for turn in 0..4 {
            let [id, other] = [Name::Id(turn), Name::Id(turn + 100)];
            assert_eq!((a.notify(id), b.notify(id)), (Ok(false), Ok(true)));
            assert!(a.is_released() && a.pass() && !a.pass());
            assert_eq!(a.finish(id), Ok(Some(true)));
            assert_eq!(a.notify(other), Ok(false));
            assert_eq!((b.finish(id), b.result()), (Ok(Some(true)), Ok(id)), "the name of the next barrier is another");
            assert_eq!(b.notify(other), Ok(true));
            assert_eq!((a.finish(other), b.finish(other)), (Ok(Some(true)), Ok(Some(true))));
        }
    }
}

/// `RUSTFLAGS="--cfg loom" cargo test -p vgasnet --lib --release model` runs these.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// Two barriers: names that match, then names that do not.
    fn rank(words: &NamedMeeting, me: i32) {
        let barrier = NamedHostBarrier::new(words, 2);
        for (name, matches) in [(Name::Id(3), true), (Name::Id(me), false)] {
            barrier.notify(name).expect("the one before has ended");
            while !barrier.is_over() {
                thread::yield_now();
            }
            assert_eq!(barrier.finish(name), Ok(Some(matches)));
        }
    }

    #[test]
    fn model_both_ranks_find_the_names_that_both_have_given() {
        loom::model(|| {
            let names = [(); 2].map(|()| Line(AtomicU64::new(0)));
            let words = Arc::new(NamedMeeting { meeting: Meeting::new(), names });
            let other = {
                let words = Arc::clone(&words);
                thread::spawn(move || rank(&words, 1))
            };
            rank(&words, 0);
            other.join().expect("it does not panic");
        });
    }
}

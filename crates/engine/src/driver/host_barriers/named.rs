//! The barrier with names: GASNet-1's.
//!
//! Its phases are those of the protocol's barrier. There each rank is a leaf under a root standing for all ranks: it
//! passes its name to the root through the shared words and finds the outcome there.

use super::meeting::{Line, Meeting, NONE};
use std::sync::Mutex;
use vgasnet_protocol::Rank;
use vgasnet_protocol::barrier::{Barrier, BarrierMessage, Misuse, Name};
use vgasnet_sys::Signalproof;

#[cfg(all(loom, test))]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(all(loom, test)))]
use std::sync::atomic::{AtomicU64, Ordering};

/// A rank's place in its tree of two.
const LEAF: Rank = Rank(1);
const ROOT: Rank = Rank(0);

/// The ranks' shared words, initially zero.
#[repr(C)]
pub(super) struct NamedMeeting {
    meeting: Meeting,
    /// The joined names of the even and of the odd meetings. A rank arrives at a meeting only after it has read the
    /// outcome of the one before.
    names: [Line; 2],
}

/// This rank's part in the barrier.
pub(crate) struct NamedHostBarrier<'a> {
    words: &'a NamedMeeting,
    ranks: u64,
    phases: Mutex<Barrier>,
    /// The barrier that this rank has notified and not seen complete, or [`NONE`].
    awaited: AtomicU64,
    /// The last barrier that this rank has seen complete.
    seen: AtomicU64,
}

impl<'a> NamedHostBarrier<'a> {
    /// The barrier of `ranks` ranks, all of which use `words`.
    pub(super) fn new(words: &'a NamedMeeting, ranks: u32) -> NamedHostBarrier<'a> {
        let phases = Mutex::new(Barrier::new(LEAF, 2));
        NamedHostBarrier { words, ranks: ranks.into(), phases, awaited: AtomicU64::new(NONE), seen: AtomicU64::new(0) }
    }

    /// Arrives at the barrier with this name. Returns whether this rank releases the others.
    ///
    /// # Errors
    /// As [`Barrier::notify`].
    pub(crate) fn notify(&self, name: Name) -> Result<bool, Misuse> {
        let mut phases = Signalproof::lock(&self.phases);
        let mut told = Name::Anonymous;
        phases.notify(name, &mut |_, message| {
            if let BarrierMessage::Arrived(name) = message {
                told = name;
            }
        })?;
        let number = self.seen.load(Ordering::Relaxed) + 1;
        assert_eq!(self.awaited.load(Ordering::Relaxed), NONE, "this rank has seen the barrier before end");
        self.give(number, told);
        let (met, is_last) = self.words.meeting.come(self.ranks, || {
            // All ranks have read the old value here, the outcome of the previous barrier.
            self.names_of(number + 1).store(bits(Name::Anonymous), Ordering::Relaxed);
        });
        assert_eq!(met, number, "the ranks count the same barriers");
        self.awaited.store(number, Ordering::Relaxed);
        self.take_note(&mut phases);
        Ok(is_last)
    }

    /// Whether this rank's barrier is complete and no thread has taken note yet.
    #[inline]
    pub(crate) fn is_released(&self) -> bool {
        self.words.meeting.is_over(self.awaited.load(Ordering::Relaxed))
    }

    /// Whether this rank has nothing to wait for: it has not notified, or all others have notified, too.
    pub(crate) fn is_over(&self) -> bool {
        self.awaited.load(Ordering::Relaxed) == NONE || self.is_released()
    }

    /// Takes note of a completed barrier. Returns whether there was one.
    pub(crate) fn pass(&self) -> bool {
        self.take_note(&mut Signalproof::lock(&self.phases))
    }

    /// As [`Barrier::is_released`].
    pub(crate) fn may_finish(&self) -> bool {
        let mut phases = Signalproof::lock(&self.phases);
        self.take_note(&mut phases);
        phases.is_released()
    }

    /// As [`Barrier::finish`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn finish(&self, name: Name) -> Result<Option<bool>, Misuse> {
        let mut phases = Signalproof::lock(&self.phases);
        self.take_note(&mut phases);
        phases.finish(name)
    }

    /// As [`Barrier::result`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn result(&self) -> Result<Name, Misuse> {
        Signalproof::lock(&self.phases).result()
    }

    fn names_of(&self, number: u64) -> &AtomicU64 {
        &self.words.names[(number % 2) as usize].0
    }

    /// Joins a name to the meeting's.
    fn give(&self, number: u64, name: Name) {
        if name == Name::Anonymous {
            return;
        }
        let join = |given| Some(bits(name_of(given).join(name)));
        // The arrival follows and orders this store.
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

/// A name as a word; [`Name::Anonymous`] is zero.
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

    /// Runs one barrier with these names at notify and wait, the last rank last. Returns the ranks' outcomes.
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

/// Run with `RUSTFLAGS="--cfg loom" cargo test -p vgasnet --lib --release model`.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// Two barriers: matching names, then different ones.
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
    fn model_both_ranks_find_the_names_given_by_both() {
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

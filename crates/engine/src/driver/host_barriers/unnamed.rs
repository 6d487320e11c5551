//! The barrier without a name, of which a rank may begin several: GASNet-EX's.
//!
//! A rank takes part in one barrier at a time; further ones that it has begun are queued. So the counter belongs to one
//! barrier, and the barrier's number is the count of earlier arrivals divided by the number of ranks.

use super::meeting::{Meeting, NONE};
use crate::request::{CompletionId, Completions};
use std::collections::VecDeque;
use std::sync::Mutex;
use vgasnet_sys::Signalproof;

#[cfg(all(loom, test))]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(all(loom, test)))]
use std::sync::atomic::{AtomicU64, Ordering};

/// This rank's part in the barrier.
pub(crate) struct HostBarrier<'a> {
    meeting: &'a Meeting,
    ranks: u64,
    /// Barriers that this rank has begun and not seen complete. It has arrived at the first.
    begun: Mutex<VecDeque<CompletionId>>,
    /// The barrier at which this rank has arrived, or [`NONE`].
    awaited: AtomicU64,
}

/// The outcome of [`HostBarrier::pass`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Some barrier of this rank is complete.
    pub is_over: bool,
    /// This rank was the last to arrive: others may be asleep that can go on.
    pub lets_go: bool,
}

impl<'a> HostBarrier<'a> {
    /// The barrier of `ranks` ranks, all of which use `meeting`.
    pub(super) fn new(meeting: &'a Meeting, ranks: u32) -> HostBarrier<'a> {
        HostBarrier { meeting, ranks: ranks.into(), begun: Mutex::default(), awaited: AtomicU64::new(NONE) }
    }

    /// Begins the next barrier, and arrives at it if no other is pending here. Returns its completion, unless it is
    /// complete, and whether this rank releases the others.
    pub(crate) fn begin(&self, completions: &Completions) -> (Option<CompletionId>, bool) {
        let mut begun = Signalproof::lock(&self.begun);
        let mut lets_go = false;
        let is_awaited = self.awaited.load(Ordering::Relaxed) != NONE;
        assert_eq!(is_awaited, !begun.is_empty(), "this rank has arrived at the first barrier that it has begun");
        if begun.is_empty() {
            lets_go = self.come();
            if self.is_released() {
                self.awaited.store(NONE, Ordering::Relaxed);
                return (None, lets_go);
            }
        }
        let completion = completions.begin();
        completions.add(completion);
        begun.push_back(completion);
        (Some(completion), lets_go)
    }

    /// Whether this completion belongs to a barrier that this rank has begun and not seen complete.
    pub(crate) fn has_begun(&self, completion: CompletionId) -> bool {
        Signalproof::lock(&self.begun).contains(&completion)
    }

    /// Whether this rank's barrier is complete and no thread has taken note yet.
    #[inline]
    pub(crate) fn is_released(&self) -> bool {
        self.meeting.is_over(self.awaited.load(Ordering::Relaxed))
    }

    /// Takes note of completed barriers, and arrives at the queued ones.
    pub(crate) fn pass(&self, completions: &Completions) -> Passed {
        let mut passed = Passed::default();
        let mut begun = Signalproof::lock(&self.begun);
        while self.is_released() {
            let completion = begun.pop_front().expect("what is awaited was begun");
            completions.finish(completion);
            passed.is_over = true;
            if begun.is_empty() {
                self.awaited.store(NONE, Ordering::Relaxed);
            } else {
                passed.lets_go |= self.come();
            }
        }
        debug_assert_eq!(
            self.awaited.load(Ordering::Relaxed) == NONE,
            begun.is_empty(),
            "this rank has arrived at the first barrier that it has begun"
        );
        passed
    }

    /// Arrives at the next barrier. Returns whether this rank is the last.
    fn come(&self) -> bool {
        let (number, is_last) = self.meeting.come(self.ranks, || ());
        self.awaited.store(number, Ordering::Relaxed);
        is_last
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_rank_releases_the_others() {
        let (meeting, completions) = (Meeting::new(), Completions::default());
        let [a, b, c] = [(); 3].map(|()| HostBarrier::new(&meeting, 3));
        for _ in 0..3 {
            let begun = |rank: &HostBarrier<'_>| rank.begin(&completions).0.expect("others have not come");
            let (first, second) = (begun(&a), begun(&b));
            assert!(!a.is_released() && !a.pass(&completions).is_over && a.has_begun(first));
            assert_eq!(c.begin(&completions), (None, true));
            assert!(a.is_released() && b.is_released() && !c.is_released());
            assert_eq!(a.pass(&completions), Passed { is_over: true, lets_go: false });
            assert!(!a.is_released() && completions.is_done(first) && !completions.is_done(second));
            assert!(!a.has_begun(first) && b.has_begun(second));
            assert!(b.pass(&completions).is_over && completions.is_done(second));
            [first, second].into_iter().for_each(|id| completions.end(id));
        }
    }

    #[test]
    fn further_barriers_of_a_rank_wait_for_their_turn() {
        let (meeting, completions) = (Meeting::new(), Completions::default());
        let [a, b] = [(); 2].map(|()| HostBarrier::new(&meeting, 2));
        let early: Vec<_> = (0..3).map(|_| a.begin(&completions).0.expect("nobody else has come")).collect();
        assert_eq!(meeting.arrivals(), 1, "two arrivals would look like two ranks");
        for (at, id) in early.iter().enumerate() {
            let is_over = b.begin(&completions).0.is_none();
            assert!(is_over && a.is_released() && !completions.is_done(*id));
            assert_eq!(a.pass(&completions), Passed { is_over: true, lets_go: false });
            assert!(completions.is_done(*id) && early[at + 1..].iter().all(|later| !completions.is_done(*later)));
        }
        assert_eq!(a.awaited.load(Ordering::Relaxed), NONE);
    }

    #[test]
    fn a_rank_that_passes_may_be_the_last_at_the_next() {
        let (meeting, completions) = (Meeting::new(), Completions::default());
        let [a, b] = [(); 2].map(|()| HostBarrier::new(&meeting, 2));
        let early = [(); 2].map(|()| a.begin(&completions).0.expect("nobody else has come"));
        assert!(b.begin(&completions).0.is_none());
        let late = b.begin(&completions).0.expect("the other has not seen the first one over");
        assert_eq!(a.pass(&completions), Passed { is_over: true, lets_go: true });
        assert!(early.iter().all(|id| completions.is_done(*id)) && b.is_released());
        assert!(b.pass(&completions).is_over && completions.is_done(late));
    }
}

/// Run with `RUSTFLAGS="--cfg loom" cargo test -p vgasnet --lib --release model`.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    struct Host {
        meeting: Meeting,
        written: [UnsafeCell<u32>; 2],
    }

    // SAFETY: the model checker reports conflicting accesses to the cells.
    unsafe impl Sync for Host {}

    /// A rank writes, passes a barrier and reads the other rank's write. Then it begins two barriers at once; the other
    /// rank arrives at the second only after it has seen the first complete.
    fn rank(host: &Host, me: usize) {
        let completions = Completions::default();
        let barrier = HostBarrier::new(&host.meeting, 2);
        let pass_all = |begun: &[Option<CompletionId>]| {
            while begun.iter().flatten().any(|id| !completions.is_done(*id)) {
                if barrier.is_released() {
                    barrier.pass(&completions);
                } else {
                    thread::yield_now();
                }
            }
        };
        // SAFETY: the checker reports any concurrent use.
        host.written[me].with_mut(|mine| unsafe { *mine = 7 });
        let first = barrier.begin(&completions).0;
        let second = (me == 0).then(|| barrier.begin(&completions).0).flatten();
        pass_all(&[first]);
        // SAFETY: as above.
        host.written[1 - me].with(|theirs| assert_eq!(unsafe { *theirs }, 7));
        let second = if me == 0 { second } else { barrier.begin(&completions).0 };
        pass_all(&[second]);
        if me == 0 {
            // SAFETY: as above. The other rank began the second barrier after it had read this.
            host.written[0].with_mut(|mine| unsafe { *mine = 8 });
        }
    }

    #[test]
    fn model_writes_before_a_barrier_are_read_behind_it() {
        loom::model(|| {
            let written = [(); 2].map(|()| UnsafeCell::new(0));
            let host = Arc::new(Host { meeting: Meeting::new(), written });
            let other = {
                let host = Arc::clone(&host);
                thread::spawn(move || rank(&host, 1))
            };
            rank(&host, 0);
            other.join().expect("it does not panic");
        });
    }
}

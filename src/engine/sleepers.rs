//! The client threads that wait, and whether one of them drives.
//!
//! A thread sleeps in the bed of what it waits for, so that a completion wakes the thread that waits for it, and no other. A
//! driver that goes leaves an offer in one bed. A thread that gets up from there takes it, and drives, or passes it on if its
//! own wait is over.

use crate::request::CompletionId;
use crate::sys::{SignalGuard, futex};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Beds of threads that have called in, and as many of threads in handlers of SIGSEGV. The first bed of those that have
/// called in is for threads that wait for anything else than one completion.
const BEDS: usize = 32;

/// What a thread waits for: the beds that are woken for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Awaited(usize);

impl Awaited {
    /// Anything: the thread looks again whenever something has happened.
    pub(super) const ANY: Awaited = Awaited(0);

    /// A completion, or anything that the rooms above wait for.
    pub(super) fn completion(id: CompletionId) -> Awaited {
        Awaited(1 + id.number() as usize % (BEDS - 1))
    }

    /// A page of the own segment, for a load or store.
    pub(super) fn page(index: u32) -> Awaited {
        Awaited(BEDS + index as usize % BEDS)
    }
}

/// What has happened: a set of beds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Happened(u64);

impl Happened {
    /// An event, for which all threads that have called in may wait.
    pub(super) const EVENT: Happened = Happened((1 << BEDS) - 1);

    /// The end of what a thread waits for.
    pub(super) fn of(awaited: Awaited) -> Happened {
        let mut happened = Happened::default();
        happened.add(awaited);
        happened
    }

    /// Adds the end of what a thread waits for.
    pub(super) fn add(&mut self, awaited: Awaited) {
        let any = u64::from(awaited.0 < BEDS);
        self.0 |= 1 << awaited.0 | any;
    }

    pub(super) fn is_nothing(self) -> bool {
        self.0 == 0
    }
}

/// Threads that wait for the same, or for things that share a bed.
#[derive(Default)]
#[repr(align(64))]
struct Bed {
    asleep: AtomicUsize,
    /// Counts what has happened to those that sleep here.
    turn: AtomicU32,
    /// A driver has gone, and a thread that gets up from here is to drive.
    offers: AtomicU32,
}

impl Bed {
    fn is_empty(&self) -> bool {
        self.asleep.load(Ordering::SeqCst) == 0
    }
}

/// No thread drives.
const NOBODY: usize = usize::MAX;

/// The client threads that wait, and whether one of them drives.
pub(super) struct Sleepers {
    /// What the client thread waits for that drives, or [`NOBODY`].
    driver: AtomicUsize,
    asleep: AtomicUsize,
    beds: [Bed; 2 * BEDS],
}

impl Default for Sleepers {
    fn default() -> Sleepers {
        let beds = std::array::from_fn(|_| Bed::default());
        Sleepers { driver: AtomicUsize::new(NOBODY), asleep: AtomicUsize::new(0), beds }
    }
}

impl Sleepers {
    pub(super) fn has_driver(&self) -> bool {
        self.driver.load(Ordering::SeqCst) != NOBODY
    }

    /// Whether any thread sleeps here.
    pub(super) fn has_any(&self) -> bool {
        self.asleep.load(Ordering::SeqCst) > 0
    }

    /// Makes the calling thread the driver, if there is none.
    pub(super) fn try_drive(&self, awaited: Awaited) -> bool {
        self.driver.compare_exchange(NOBODY, awaited.0, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// The calling thread, which drives, does no longer. It then offers that to another.
    pub(super) fn stop_driving(&self) {
        self.driver.store(NOBODY, Ordering::SeqCst);
    }

    /// Wakes a thread that waits, to drive, unless another drives by now. Returns whether a thread drives or has been woken.
    pub(super) fn offer(&self, from: Awaited) -> bool {
        if self.has_driver() {
            return true;
        }
        if !self.has_any() {
            return false;
        }
        let beds = self.beds.iter().cycle().skip(from.0 + 1).take(2 * BEDS);
        for bed in beds.filter(|bed| !bed.is_empty()) {
            bed.offers.fetch_add(1, Ordering::SeqCst);
            // A thread that has left the bed by now may have looked for offers before.
            if bed.is_empty() && bed.offers.swap(0, Ordering::SeqCst) > 0 {
                continue;
            }
            bed.turn.fetch_add(1, Ordering::SeqCst);
            return futex::wake_one(&bed.turn);
        }
        false
    }

    /// Wakes the threads that may wait for what has happened. Returns whether the driver may, too.
    pub(super) fn wake(&self, happened: Happened) -> bool {
        std::sync::atomic::fence(Ordering::SeqCst);
        self.wake_after_count(happened)
    }

    /// As [`Sleepers::wake`], where what has happened was made known by an operation on an atomic that is sequentially consistent,
    /// and the threads look at it by such a one.
    pub(super) fn wake_after_count(&self, happened: Happened) -> bool {
        let mut left = if self.has_any() { happened.0 } else { 0 };
        while left != 0 {
            let bed = &self.beds[left.trailing_zeros() as usize];
            left &= left - 1;
            if !bed.is_empty() {
                bed.turn.fetch_add(1, Ordering::SeqCst);
                futex::wake_all(&bed.turn);
            }
        }
        let driver = self.driver.load(Ordering::SeqCst);
        driver != NOBODY && happened.0 >> driver & 1 != 0
    }

    /// Sleeps until something has happened for which the thread may wait, or until no thread drives. May return early. Returns
    /// whether the thread is to drive, or to offer that to another.
    pub(super) fn sleep(
        &self,
        awaited: Awaited,
        done: &dyn Fn() -> bool,
        end: Option<Instant>,
        signals: &SignalGuard,
    ) -> bool {
        let bed = &self.beds[awaited.0];
        bed.asleep.fetch_add(1, Ordering::SeqCst);
        self.asleep.fetch_add(1, Ordering::SeqCst);
        // A thread that changes `done` or the driver and sees a sleeper increments the turn afterwards.
        let turn = bed.turn.load(Ordering::SeqCst);
        if !done() && self.has_driver() {
            signals.except(|| futex::wait_for(&bed.turn, turn, time_left(end)));
        }
        self.asleep.fetch_sub(1, Ordering::SeqCst);
        bed.asleep.fetch_sub(1, Ordering::SeqCst);
        bed.offers.swap(0, Ordering::SeqCst) > 0
    }
}

pub(super) fn time_left(end: Option<Instant>) -> Option<Duration> {
    end.map(|end| end.saturating_duration_since(Instant::now()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// Threads that each wait for many things in turn, which only drivers bring about. Whoever drives stops as soon as its own
    /// has come, so driving goes from hand to hand; if an offer were lost, all would sleep for ever.
    #[test]
    fn driving_is_handed_on_until_nobody_waits() {
        const THREADS: usize = 6;
        const ROUNDS: u32 = 3_000;
        let sleepers = Sleepers::default();
        let asked: [AtomicBool; THREADS] = std::array::from_fn(|_| AtomicBool::new(false));
        // Two of the threads share a bed.
        let bed = |thread: usize| Awaited::page((thread % (THREADS - 1)) as u32);
        // The driver serves one other thread, then itself.
        let drive = |own: usize, random: &mut fastrand::Rng| {
            let other = random.usize(0..THREADS);
            for served in [other, own] {
                if asked[served].swap(false, Ordering::SeqCst) {
                    let mut happened = Happened::default();
                    happened.add(bed(served));
                    sleepers.wake(happened);
                }
            }
        };
        let wait = |own: usize, random: &mut fastrand::Rng| {
            asked[own].store(true, Ordering::SeqCst);
            let done = || !asked[own].load(Ordering::SeqCst);
            let signals = SignalGuard::new();
            let mut has_offer = false;
            while !done() {
                if sleepers.try_drive(bed(own)) {
                    has_offer = false;
                    drive(own, random);
                    sleepers.stop_driving();
                    sleepers.offer(bed(own));
                } else {
                    has_offer |= sleepers.sleep(bed(own), &done, None, &signals);
                }
            }
            if has_offer {
                sleepers.offer(bed(own));
            }
        };
        std::thread::scope(|scope| {
            for own in 0..THREADS {
                let wait = &wait;
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(own as u64);
                    (0..ROUNDS).for_each(|_| wait(own, &mut random));
                });
            }
        });
        assert!(!sleepers.has_any() && !sleepers.has_driver());
    }

    #[test]
    fn a_driver_is_told_of_what_it_waits_for_only() {
        let sleepers = Sleepers::default();
        let [own, other] = [3, 4].map(Awaited::page);
        assert!(!sleepers.wake(Happened::EVENT) && sleepers.try_drive(own) && !sleepers.try_drive(other));
        let happened = |awaited| {
            let mut happened = Happened::default();
            happened.add(awaited);
            happened
        };
        assert!(sleepers.wake(happened(own)) && !sleepers.wake(happened(other)) && !sleepers.wake(Happened::EVENT));
        sleepers.stop_driving();
        assert!(!sleepers.offer(own), "nobody sleeps");
        // A thread that waits for anything may wait for any completion, but not for a page.
        assert!(sleepers.try_drive(Awaited::ANY));
        assert!(sleepers.wake(Happened::EVENT) && !sleepers.wake(happened(own)) && Happened::default().is_nothing());
    }
}

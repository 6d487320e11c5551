//! The waiting client threads and their driver.
//!
//! A thread sleeps in the slot of its awaited event, so that a completion wakes only the threads waiting for it. A
//! stopping driver leaves an offer in one slot. A thread woken there takes the offer and drives, or passes it on if its
//! own wait is over.

use crate::request::CompletionId;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use vgasnet_sys::{SignalGuard, futex};

/// Slots for threads in calls, and as many for threads in SIGSEGV handlers. The first slot for calls is for threads
/// waiting for anything other than one completion.
const SLOTS: usize = 32;

/// A thread's awaited event, as the index of its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Awaited(usize);

impl Awaited {
    /// Any event: the thread checks its condition after each.
    pub(super) const ANY: Awaited = Awaited(0);

    /// A completion, or any event of the rooms above.
    pub(super) fn completion(id: CompletionId) -> Awaited {
        Awaited(1 + id.number() as usize % (SLOTS - 1))
    }

    /// A page of the own segment, for a load or store.
    pub(super) fn page(index: u32) -> Awaited {
        Awaited(SLOTS + index as usize % SLOTS)
    }
}

/// Events that have happened, as a set of slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Happened(u64);

impl Happened {
    /// An event for which any thread in a call may be waiting.
    pub(super) const EVENT: Happened = Happened((1 << SLOTS) - 1);

    /// Adds the completion of an awaited event.
    pub(super) fn add(&mut self, awaited: Awaited) {
        let any = u64::from(awaited.0 < SLOTS);
        self.0 |= 1 << awaited.0 | any;
    }

    pub(super) fn is_nothing(self) -> bool {
        self.0 == 0
    }
}

/// Threads waiting for the same event, or for events that share a slot.
#[derive(Default)]
#[repr(align(64))]
struct Slot {
    asleep: AtomicUsize,
    /// Number of events for its sleepers.
    turn: AtomicU32,
    /// A driver has stopped, and a thread woken from this slot is to drive.
    offers: AtomicU32,
}

impl Slot {
    fn is_empty(&self) -> bool {
        self.asleep.load(Ordering::SeqCst) == 0
    }
}

/// No thread drives.
const NOBODY: usize = usize::MAX;

/// The waiting client threads and their driver.
pub(super) struct Sleepers {
    /// The driver's awaited event, or [`NOBODY`].
    driver: AtomicUsize,
    asleep: AtomicUsize,
    slots: [Slot; 2 * SLOTS],
}

impl Default for Sleepers {
    fn default() -> Sleepers {
        let slots = std::array::from_fn(|_| Slot::default());
        Sleepers { driver: AtomicUsize::new(NOBODY), asleep: AtomicUsize::new(0), slots }
    }
}

impl Sleepers {
    pub(super) fn has_driver(&self) -> bool {
        self.driver.load(Ordering::SeqCst) != NOBODY
    }

    pub(super) fn has_any(&self) -> bool {
        self.asleep.load(Ordering::SeqCst) > 0
    }

    /// Makes the calling thread the driver, if there is none.
    pub(super) fn try_drive(&self, awaited: Awaited) -> bool {
        self.driver.compare_exchange(NOBODY, awaited.0, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// The calling thread stops driving. It then offers to hand over.
    pub(super) fn stop_driving(&self) {
        debug_assert!(self.has_driver(), "the driver stops");
        self.driver.store(NOBODY, Ordering::SeqCst);
    }

    /// Wakes a waiting thread to drive, unless another one drives by now. Returns whether a thread drives or has been
    /// woken.
    pub(super) fn offer(&self, from: Awaited) -> bool {
        if self.has_driver() {
            return true;
        }
        if !self.has_any() {
            return false;
        }
        let slots = self.slots.iter().cycle().skip(from.0 + 1).take(2 * SLOTS);
        for slot in slots.filter(|slot| !slot.is_empty()) {
            slot.offers.fetch_add(1, Ordering::SeqCst);
            // A thread that has left the slot may have checked for offers before this one.
            if slot.is_empty() && slot.offers.swap(0, Ordering::SeqCst) > 0 {
                continue;
            }
            slot.turn.fetch_add(1, Ordering::SeqCst);
            return futex::wake_one(&slot.turn);
        }
        false
    }

    /// Wakes the threads that may wait for these events. Returns whether the driver may, too.
    pub(super) fn wake(&self, happened: Happened) -> bool {
        std::sync::atomic::fence(Ordering::SeqCst);
        self.wake_after_count(happened)
    }

    /// As [`Sleepers::wake`], for an event published by a sequentially consistent atomic operation and observed by
    /// another one.
    pub(super) fn wake_after_count(&self, happened: Happened) -> bool {
        let mut left = if self.has_any() { happened.0 } else { 0 };
        while left != 0 {
            let slot = &self.slots[left.trailing_zeros() as usize];
            left &= left - 1;
            if !slot.is_empty() {
                slot.turn.fetch_add(1, Ordering::SeqCst);
                futex::wake_all(&slot.turn);
            }
        }
        let driver = self.driver.load(Ordering::SeqCst);
        driver != NOBODY && happened.0 >> driver & 1 != 0
    }

    /// Sleeps until an awaited event may have happened or no thread drives. May return early. Returns whether the
    /// thread has to drive or hand over.
    pub(super) fn sleep(
        &self,
        awaited: Awaited,
        done: &dyn Fn() -> bool,
        end: Option<Instant>,
        signals: &SignalGuard,
    ) -> bool {
        let slot = &self.slots[awaited.0];
        slot.asleep.fetch_add(1, Ordering::SeqCst);
        self.asleep.fetch_add(1, Ordering::SeqCst);
        // A thread that changes `done` or the driver and sees a sleeper increments the turn afterwards.
        let turn = slot.turn.load(Ordering::SeqCst);
        if !done() && self.has_driver() {
            signals.except(|| futex::wait_for(&slot.turn, turn, time_left(end)));
        }
        let (all, here) = (self.asleep.fetch_sub(1, Ordering::SeqCst), slot.asleep.fetch_sub(1, Ordering::SeqCst));
        debug_assert!(all > 0 && here > 0, "a thread that slept was counted");
        slot.offers.swap(0, Ordering::SeqCst) > 0
    }
}

pub(super) fn time_left(end: Option<Instant>) -> Option<Duration> {
    end.map(|end| end.saturating_duration_since(Instant::now()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// Each thread waits many times for an event that only drivers cause. A driver stops once its own event has
    /// happened, so driving is handed on; after a lost offer all threads would sleep for ever.
    #[test]
    fn driving_is_handed_on_until_nobody_waits() {
        const THREADS: usize = 6;
        const ROUNDS: u32 = 3_000;
        let sleepers = Sleepers::default();
        let asked: [AtomicBool; THREADS] = std::array::from_fn(|_| AtomicBool::new(false));
        // Two of the threads share a slot.
        let slot = |thread: usize| Awaited::page((thread % (THREADS - 1)) as u32);
        // The driver serves one other thread, then itself.
        let drive = |own: usize, random: &mut fastrand::Rng| {
            let other = random.usize(0..THREADS);
            for served in [other, own] {
                if asked[served].swap(false, Ordering::SeqCst) {
                    let mut happened = Happened::default();
                    happened.add(slot(served));
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
                if sleepers.try_drive(slot(own)) {
                    has_offer = false;
                    drive(own, random);
                    sleepers.stop_driving();
                    sleepers.offer(slot(own));
                } else {
                    has_offer |= sleepers.sleep(slot(own), &done, None, &signals);
                }
            }
            if has_offer {
                sleepers.offer(slot(own));
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
    fn a_driver_is_woken_for_its_own_event_only() {
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
        // A thread waiting for any event may wait for any completion, but not for a page.
        assert!(sleepers.try_drive(Awaited::ANY));
        assert!(sleepers.wake(Happened::EVENT) && !sleepers.wake(happened(own)) && Happened::default().is_nothing());
    }
}

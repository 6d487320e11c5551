//! Sleep lengths between polls of the network.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use vgasnet_conduit::give_way;

/// The first sleep after an event.
pub(crate) const FIRST: Duration = Duration::from_micros(20);

/// Number of initial sleeps of this length: about 2 ms in total, with the 50 us the system's timers add to each. After
/// one page request, a peer usually sends the next soon.
const SHORT: u32 = 24;

/// Later sleeps double up to this, the maximum delay of a message to a waiting rank.
const LAST: Duration = Duration::from_millis(5);

/// After this many consecutive sleeps, a third of a second, a rank is idle and polls less often. A poll takes 0.1 ms
/// over TCP, so an idle rank costs its host about a hundredth of a processor.
const IDLE_AFTER: u32 = 96;
const IDLE: Duration = Duration::from_millis(20);

/// The sleep of a helper while a client thread drives.
pub(crate) const WHILE_DRIVEN: Duration = Duration::from_millis(12);

/// Polls that only yield the processor, while a transfer is in flight: the system's timers would delay it.
const EAGER_LOOKS: u32 = 256;

/// Waiting during start-up, with repeated polls of the network.
#[derive(Debug, Default)]
pub struct Patience {
    looks: u32,
}

impl Patience {
    /// Yields the processor to the others, and sleeps instead after a while.
    pub fn pause(&mut self) {
        const EAGER: u32 = 1000;
        self.looks = self.looks.saturating_add(1);
        if self.looks >= EAGER || !give_way() {
            std::thread::sleep(Duration::from_micros(500));
        }
    }
}

/// A pause between polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Yield the processor and poll again; if yielding is expensive, sleep as briefly as possible.
    GiveWay,
    /// Sleep for this long.
    Sleep(Duration),
}

/// Counts unsuccessful polls. Races between threads may change it by a step.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    in_vain: AtomicU32,
}

impl Backoff {
    /// An event occurred.
    pub(crate) fn reset(&self) {
        self.in_vain.store(0, Ordering::Relaxed);
    }

    /// The pause after an unsuccessful poll, with transfers in flight (`is_active`) or without. A sleeper limited to
    /// `most` does not lengthen the others' sleeps by its many short ones.
    pub(crate) fn next(&self, is_active: bool, most: Option<Duration>) -> Pause {
        let before = self.in_vain.load(Ordering::Relaxed);
        let pause = Backoff::after(before, is_active);
        let is_cut = matches!((pause, most), (Pause::Sleep(limit), Some(most)) if most < limit);
        if !is_cut {
            self.in_vain.store(before.saturating_add(1), Ordering::Relaxed);
        }
        pause
    }

    /// The pause after `before` unsuccessful polls.
    fn after(before: u32, is_active: bool) -> Pause {
        let eager = if is_active { EAGER_LOOKS } else { 0 };
        match before.checked_sub(eager) {
            None => Pause::GiveWay,
            Some(times) if times < IDLE_AFTER => {
                let doublings = times.saturating_sub(SHORT - 1).min(16);
                Pause::Sleep((FIRST * (1 << doublings)).min(LAST))
            }
            Some(_) => Pause::Sleep(IDLE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_double_up_to_a_bound() {
        let backoff = Backoff::default();
        assert!((1..SHORT).all(|_| backoff.next(false, None) == Pause::Sleep(FIRST)));
        let sleeps: Vec<_> = (0..10).map(|_| backoff.next(false, None)).collect();
        let micros =
            [20, 40, 80, 160, 320, 640, 1280, 2560, 5000, 5000].map(|us| Pause::Sleep(Duration::from_micros(us)));
        assert_eq!(sleeps, micros);
        let more: Vec<_> = (SHORT + 9..=IDLE_AFTER).map(|_| backoff.next(false, None)).collect();
        let (idle, awake) = more.split_last().expect("there are some");
        assert!(awake.iter().all(|pause| *pause == Pause::Sleep(LAST)) && *idle == Pause::Sleep(IDLE));
        backoff.reset();
        assert_eq!(backoff.next(false, None), Pause::Sleep(FIRST));
    }

    #[test]
    fn sleeps_that_are_cut_make_no_others_longer() {
        let (backoff, most) = (Backoff::default(), Duration::from_millis(1));
        let longest = (0..10 * IDLE_AFTER).map(|_| backoff.next(false, Some(most))).last();
        assert_eq!(longest, Some(Pause::Sleep(Duration::from_micros(1280))));
    }

    #[test]
    fn a_transfer_is_looked_after_without_sleep_for_a_while() {
        let backoff = Backoff::default();
        assert!((0..EAGER_LOOKS).all(|_| backoff.next(true, None) == Pause::GiveWay));
        assert_eq!(backoff.next(true, None), Pause::Sleep(FIRST));
    }
}

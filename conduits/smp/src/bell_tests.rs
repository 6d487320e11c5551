//! The doorbell with its inbox: a model for loom, and a stress test with real eventfds.

use super::*;
use crate::ring::test_support::OwnedRing;
use vgasnet_conduit::Urgency;

/// Shared by the model and the stress test: one rank's inbox, bell and eventfds.
struct Desk<E> {
    inbox: OwnedRing,
    bell: Bell,
    caller: E,
    helper: E,
}

trait Event {
    fn ring(&self);
    fn wait(&self);
}

impl<E: Event> Desk<E> {
    fn event(&self, sleeper: Sleeper) -> &E {
        match sleeper {
            Sleeper::Caller => &self.caller,
            Sleeper::Helper => &self.helper,
        }
    }

    fn wake(&self) {
        if let Some(sleeper) = self.bell.take_sleeper() {
            self.event(sleeper).ring();
        }
    }

    /// Sleeps as in the conduit.
    fn sleep(&self, sleeper: Sleeper, stay_awake: impl Fn() -> bool) {
        let arrivals_matter = self.bell.begin_sleep(sleeper);
        let stay = stay_awake() || (arrivals_matter && self.inbox.ring().has_record());
        if !stay {
            self.event(sleeper).wait();
        }
        self.bell.end_sleep(sleeper);
    }
}

#[cfg(loom)]
mod model {
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    use super::*;

    struct ModelEvent(Mutex<bool>, Condvar);

    impl Event for ModelEvent {
        fn ring(&self) {
            *self.0.lock().unwrap() = true;
            self.1.notify_one();
        }

        fn wait(&self) {
            let mut rung = self.0.lock().unwrap();
            while !*rung {
                rung = self.1.wait(rung).unwrap();
            }
            *rung = false;
        }
    }

    fn desk() -> Arc<Desk<ModelEvent>> {
        let event = || ModelEvent(Mutex::new(false), Condvar::new());
        Arc::new(Desk { inbox: OwnedRing::new(8), bell: Bell::new(), caller: event(), helper: event() })
    }

    fn post(desk: &Desk<ModelEvent>, from: u32) {
        desk.inbox.ring().push(from, b"news", b"", Urgency::Now).unwrap();
        desk.wake();
    }

    /// Posts news that can wait for a call.
    fn post_quietly(desk: &Desk<ModelEvent>, from: u32) {
        let end = desk.inbox.ring().push(from, b"news", b"", Urgency::Now).unwrap();
        if let Some(sleeper) = desk.bell.take_caller(|| !desk.inbox.ring().is_last(end)) {
            desk.event(sleeper).ring();
        }
    }

    fn check(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(preemptions);
        model.check(body);
    }

    /// Two posters, and one caller sleeping until it has both records. A lost wake-up is a deadlock, reported by loom.
    #[test]
    fn model_no_arrival_is_slept_through() {
        check(3, || {
            let desk = desk();
            let posters = [0, 1].map(|from| {
                let desk = desk.clone();
                thread::spawn(move || post(&desk, from))
            });
            desk.bell.begin_driving();
            let mut seen = 0;
            while seen < 2 {
                while desk.inbox.ring().pop(|_, bytes| assert_eq!(bytes, b"news")) == Ok(true) {
                    seen += 1;
                }
                if seen < 2 {
                    desk.sleep(Sleeper::Caller, || false);
                }
            }
            posters.into_iter().for_each(|poster| poster.join().unwrap());
        });
    }

    /// A record arriving around a hand-over is found by the caller or wakes the helper.
    #[test]
    fn model_a_caller_that_hands_over_leaves_nothing_behind() {
        check(3, || {
            let desk = desk();
            let poster = thread::spawn({
                let desk = desk.clone();
                move || post(&desk, 0)
            });
            let helper = thread::spawn({
                let desk = desk.clone();
                move || {
                    while desk.inbox.ring().pop(|_, _| ()) != Ok(true) {
                        desk.sleep(Sleeper::Helper, || false);
                    }
                }
            });
            desk.bell.begin_driving();
            desk.bell.hand_over();
            if desk.inbox.ring().has_record() {
                desk.wake();
            }
            poster.join().unwrap();
            helper.join().unwrap();
        });
    }

    /// A record that can wait, from a slow poster, does not delay an urgent one.
    #[test]
    fn model_quiet_news_hold_nothing_up() {
        check(3, || {
            let desk = desk();
            let posters = [post_quietly, post].into_iter().zip(0..).map(|(post, from)| {
                let desk = desk.clone();
                thread::spawn(move || post(&desk, from))
            });
            let posters: Vec<_> = posters.collect();
            let mut urgent_is_here = false;
            while !urgent_is_here {
                while desk.inbox.ring().pop(|from, _| urgent_is_here |= from == 1) == Ok(true) {}
                if !urgent_is_here {
                    desk.sleep(Sleeper::Helper, || false);
                }
            }
            posters.into_iter().for_each(|poster| poster.join().unwrap());
        });
    }

    /// A flag set before a wake is seen by `stay_awake`, or the wake finds the sleeper.
    #[test]
    fn model_a_flag_is_not_slept_through() {
        check(3, || {
            let desk = desk();
            let flag = Arc::new(AtomicU32::new(0));
            let setter = thread::spawn({
                let (desk, flag) = (desk.clone(), flag.clone());
                move || {
                    flag.store(1, Ordering::Relaxed);
                    desk.wake();
                }
            });
            while flag.load(Ordering::Relaxed) == 0 {
                desk.sleep(Sleeper::Helper, || flag.load(Ordering::Relaxed) == 1);
            }
            setter.join().unwrap();
        });
    }
}

#[cfg(not(loom))]
mod stress {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    use nix::sys::eventfd::EventFd;

    use super::*;

    impl Event for EventFd {
        fn ring(&self) {
            self.write(1).expect("eventfd");
        }

        fn wait(&self) {
            self.read().expect("eventfd");
        }
    }

    const PRODUCERS: u32 = 4;
    const EACH: u64 = 20_000;

    /// Producers never stop; the caller comes and goes, and the helper takes over in its absence.
    #[test]
    fn many_producers_and_two_sleepers_lose_nothing() {
        let event = || EventFd::new().expect("eventfd");
        let desk = Arc::new(Desk { inbox: OwnedRing::new(64), bell: Bell::new(), caller: event(), helper: event() });
        let seen = Arc::new(AtomicU64::new(0));
        let total = u64::from(PRODUCERS) * EACH;
        let (done, finished) = mpsc::channel();
        let engine = Arc::new(std::sync::Mutex::new(()));
        for from in 0..PRODUCERS {
            let desk = desk.clone();
            std::thread::spawn(move || {
                for n in 0..EACH {
                    while desk.inbox.ring().push(from, &n.to_ne_bytes(), &[], Urgency::Now).is_err() {
                        std::thread::sleep(Duration::from_micros(50));
                    }
                    desk.wake();
                }
            });
        }
        for sleeper in [Sleeper::Caller, Sleeper::Helper] {
            let (desk, seen, engine, done) = (desk.clone(), seen.clone(), engine.clone(), done.clone());
            std::thread::spawn(move || {
                while seen.load(Ordering::Relaxed) < total {
                    drive(&desk, sleeper, &engine, &seen, total);
                }
                // The sleeper with the last record wakes the other.
                desk.caller.ring();
                desk.helper.ring();
                done.send(()).expect("the test waits");
            });
        }
        for _ in 0..2 {
            finished.recv_timeout(Duration::from_secs(60)).expect("a wake-up was lost");
        }
        assert_eq!(seen.load(Ordering::Relaxed), total);
    }

    /// One visit of a sleeper: drain, sleep; a caller then leaves as `set_driving(false)` requires.
    fn drive(desk: &Desk<EventFd>, sleeper: Sleeper, engine: &std::sync::Mutex<()>, seen: &AtomicU64, total: u64) {
        let drain = || {
            let _one_at_a_time = engine.lock().expect("no panic");
            while desk.inbox.ring().pop(|_, _| ()) == Ok(true) {
                seen.fetch_add(1, Ordering::Relaxed);
            }
        };
        let over = || seen.load(Ordering::Relaxed) >= total;
        if sleeper == Sleeper::Caller {
            desk.bell.begin_driving();
        }
        drain();
        if !over() {
            desk.sleep(sleeper, over);
        }
        if sleeper == Sleeper::Caller {
            desk.bell.hand_over();
            if desk.inbox.ring().has_record() {
                desk.wake();
            }
        }
    }
}

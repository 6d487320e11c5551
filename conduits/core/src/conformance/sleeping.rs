//! Sleeping and waking. An event for a sleeper must wake it long before its time-out. Early wake-ups are permitted,
//! lost ones are not: they show as a sleep of full length.

use std::cell::Cell;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{PATIENCE, Suite, check};
use crate::{Arrival, Conduit, Rank, Sleeper};

/// The length of an undisturbed sleep.
const LONG: Duration = Duration::from_secs(20);

/// Usually long enough for another thread to fall asleep; otherwise the test is merely weaker.
const SHORT: Duration = Duration::from_millis(20);

pub(super) fn all(suite: &mut Suite<'_>) -> Result<(), String> {
    timeout(suite)?;
    for sleeper in [Sleeper::Caller, Sleeper::Helper] {
        // The helper is woken when no caller drives.
        suite.conduit.set_driving(sleeper == Sleeper::Caller);
        stay_awake(suite.conduit, sleeper)?;
        also(suite.conduit, sleeper)?;
        wake(suite.conduit, sleeper, &|| suite.conduit.wake(suite.conduit.rank()))?;
    }
    for driving in [true, false] {
        suite.conduit.set_driving(driving);
        wake(suite.conduit, Sleeper::Helper, &|| suite.conduit.wake_helper())?;
    }
    handover(suite)?;
    suite.conduit.set_driving(true);
    suite.meet()?;
    arrival(suite)
}

/// One sleep; it must end early.
fn sleep_briefly(
    conduit: &dyn Conduit,
    sleeper: Sleeper,
    also: Option<BorrowedFd<'_>>,
    stay_awake: &dyn Fn() -> bool,
) -> Result<(), String> {
    let begin = Instant::now();
    conduit.sleep(sleeper, also, Some(LONG), stay_awake);
    check(begin.elapsed() < LONG, || format!("{sleeper:?} slept through what should have woken it"))
}

fn timeout(suite: &mut Suite<'_>) -> Result<(), String> {
    let begin = Instant::now();
    let mut sleeps = 0;
    while begin.elapsed() < 3 * SHORT {
        suite.conduit.sleep(Sleeper::Caller, None, Some(SHORT), &|| false);
        sleeps += 1;
    }
    check(begin.elapsed() < LONG, || format!("{sleeps} sleeps of {SHORT:?} took {:?}", begin.elapsed()))?;
    // A conduit with back-off may return as often as it likes.
    let sleeps_soundly = suite.conduit.capabilities().wakes_on_arrival;
    check(!sleeps_soundly || sleeps < 100, || {
        format!("{sleeps} sleeps of {SHORT:?} took {:?}: nobody sleeps", begin.elapsed())
    })
}

fn stay_awake(conduit: &dyn Conduit, sleeper: Sleeper) -> Result<(), String> {
    let asked = Cell::new(0);
    let stay_awake = || {
        asked.set(asked.get() + 1);
        true
    };
    sleep_briefly(conduit, sleeper, None, &stay_awake)?;
    check(asked.get() == 1, || format!("stay_awake was asked {} times", asked.get()))
}

/// A descriptor wakes, whether it becomes readable before or during the sleep.
fn also(conduit: &dyn Conduit, sleeper: Sleeper) -> Result<(), String> {
    let (mut writer, reader) = UnixStream::pair().map_err(|error| error.to_string())?;
    let begin = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(SHORT);
            writer.write_all(b"x").expect("the reader is open");
        });
        while begin.elapsed() < SHORT {
            sleep_briefly(conduit, sleeper, Some(reader.as_fd()), &|| false)?;
        }
        sleep_briefly(conduit, sleeper, Some(reader.as_fd()), &|| false)
    })
}

/// A flag set before a wake is never slept through.
fn wake(conduit: &dyn Conduit, sleeper: Sleeper, wake: &(dyn Fn() + Sync)) -> Result<(), String> {
    const ROUNDS: u32 = 2_000;
    let (set, seen) = (AtomicU32::new(0), AtomicU32::new(0));
    let gave_up = AtomicBool::new(false);
    thread::scope(|scope| {
        let waker = scope.spawn(|| {
            for round in 1..=ROUNDS {
                set.store(round, Ordering::Release);
                wake();
                while seen.load(Ordering::Acquire) < round && !gave_up.load(Ordering::Relaxed) {
                    thread::park_timeout(LONG);
                }
            }
        });
        for round in 1..=ROUNDS {
            while set.load(Ordering::Acquire) < round {
                let slept = sleep_briefly(conduit, sleeper, None, &|| set.load(Ordering::Acquire) >= round);
                if slept.is_err() {
                    gave_up.store(true, Ordering::Relaxed);
                    waker.thread().unpark();
                    return slept;
                }
            }
            seen.store(round, Ordering::Release);
            waker.thread().unpark();
        }
        Ok(())
    })
}

/// A message arriving while a caller drives wakes nobody; the caller learns of it when it leaves, and the helper takes
/// over.
fn handover(suite: &mut Suite<'_>) -> Result<(), String> {
    let conduit = suite.conduit;
    if !conduit.capabilities().wakes_on_arrival {
        return Ok(());
    }
    for _ in 0..200 {
        let arrived = AtomicBool::new(false);
        conduit.set_driving(true);
        thread::scope(|scope| {
            let helper = scope.spawn(|| helper_polls(conduit, &arrived));
            suite.send(conduit.rank(), b"self")?;
            if conduit.set_driving(false) {
                conduit.wake(conduit.rank());
            }
            helper.join().map_err(|_| "the helper panicked".to_owned())?
        })?;
        check(arrived.load(Ordering::Relaxed), || "the helper did not find the message".to_owned())?;
    }
    Ok(())
}

fn helper_polls(conduit: &dyn Conduit, arrived: &AtomicBool) -> Result<(), String> {
    let begin = Instant::now();
    while !arrived.load(Ordering::Relaxed) {
        sleep_briefly(conduit, Sleeper::Helper, None, &|| false)?;
        check(begin.elapsed() < PATIENCE, || "the helper never finds the message".to_owned())?;
        // The caller does not poll in this test, so there is one poller.
        conduit.poll(&mut |arrival| {
            if let Arrival::Message { bytes, .. } = arrival {
                arrived.store(bytes == b"self", Ordering::Relaxed);
            }
        });
    }
    Ok(())
}

/// A token goes round all ranks; each sleeps until it arrives.
fn arrival(suite: &mut Suite<'_>) -> Result<(), String> {
    const LAPS: u32 = 200;
    let (own, ranks) = (suite.rank(), suite.ranks());
    let next = Rank((own.0 + 1) % ranks);
    let wakes = suite.conduit.capabilities().wakes_on_arrival;
    if own == Rank(0) {
        suite.send(next, b"token")?;
    }
    for lap in 0..LAPS {
        while suite.messages.pop().is_none() {
            if !suite.poll() {
                let begin = Instant::now();
                suite.conduit.sleep(Sleeper::Caller, None, Some(LONG), &|| false);
                check(!wakes || begin.elapsed() < LONG, || format!("slept through the token in lap {lap}"))?;
            }
        }
        if lap + 1 < LAPS || own != Rank(0) {
            suite.send(next, b"token")?;
        }
    }
    Ok(())
}

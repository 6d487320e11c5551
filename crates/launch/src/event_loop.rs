//! The event loop of all processes that look after ranks. It sleeps until a signal, a ready descriptor, the end of a
//! child, a timer or a beat, and dispatches to the role of this process.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::StartError;
use crate::connection::Connection;
use crate::signals::Signals;

/// Interval of the heartbeats of a role.
pub(crate) const BEAT: Duration = Duration::from_secs(1);

/// The part of a process in the loop.
pub(crate) trait Role {
    /// Identifies a descriptor to the role.
    type Source: Copy;

    /// Whether the role sends heartbeats.
    const BEATS: bool;

    /// Adds the descriptors to wait for, including pidfds.
    fn watch<'a>(&'a self, watched: &mut Watched<'a, Self::Source>);

    /// Time of the next needed [`Role::on_time`].
    fn deadline(&self) -> Option<Instant>;

    /// A signal arrived, possibly from the terminal.
    fn on_signal(&mut self, signal: i32, from_terminal: bool);

    /// A descriptor is readable or writable, or has ended.
    fn on_ready(&mut self, source: Self::Source);

    /// Called after all other events.
    fn on_time(&mut self, now: Instant);

    /// Sends a heartbeat.
    fn beat(&mut self) {}

    /// This process was stopped for `time`; the silence of others during it is meaningless.
    fn forgive(&mut self, _time: Duration) {}

    /// Whether the loop ends.
    fn is_over(&self) -> bool;
}

/// The descriptors a role waits for.
pub(crate) struct Watched<'a, S> {
    descriptors: Vec<PollFd<'a>>,
    sources: Vec<S>,
}

impl<'a, S: Copy> Watched<'a, S> {
    /// Waits until the descriptor can be read.
    pub(crate) fn readable(&mut self, descriptor: impl Into<Option<BorrowedFd<'a>>>, source: S) {
        self.add(descriptor, PollFlags::POLLIN, source);
    }

    /// Waits for messages on an open connection, and for room if bytes are pending.
    pub(crate) fn connection(&mut self, connection: &'a Connection, source: S) {
        let room = if connection.has_outgoing() { PollFlags::POLLOUT } else { PollFlags::empty() };
        self.add(connection.is_open().then(|| connection.as_fd()), PollFlags::POLLIN | room, source);
    }

    fn add(&mut self, descriptor: impl Into<Option<BorrowedFd<'a>>>, events: PollFlags, source: S) {
        if let Some(descriptor) = descriptor.into() {
            self.descriptors.push(PollFd::new(descriptor, events));
            self.sources.push(source);
        }
    }
}

/// Takes over the signals, starts a role, runs it to its end, and finishes it.
pub(crate) fn run<R: Role, T>(
    start: impl FnOnce(&Signals) -> Result<R, StartError>,
    finish: impl FnOnce(R) -> T,
) -> Result<T, StartError> {
    let refused = |error| StartError::new(1, format!("taking over signals: {error}"));
    let signals = Signals::block().map_err(refused)?;
    let mut role = start(&signals)?;
    let mut next_beat = Instant::now();
    while !role.is_over() {
        let look = Instant::now();
        let next = role.deadline().into_iter().chain(R::BEATS.then_some(next_beat)).min();
        let ready = wait(&role, &signals, next);
        // A running role with heartbeats wakes at every beat.
        let elapsed = look.elapsed();
        if R::BEATS && elapsed > 3 * BEAT {
            role.forgive(elapsed - BEAT);
        }
        // Before the ranks: a signal explains how they ended.
        while let Some((signal, from_terminal)) = signals.next() {
            role.on_signal(signal, from_terminal);
        }
        for source in ready {
            role.on_ready(source);
        }
        let now = Instant::now();
        role.on_time(now);
        if R::BEATS && now >= next_beat {
            role.beat();
            next_beat = now + BEAT;
        }
    }
    Ok(finish(role))
}

/// Sleeps until an event or until `next`. Returns the ready descriptors.
fn wait<R: Role>(role: &R, signals: &Signals, next: Option<Instant>) -> Vec<R::Source> {
    let mut watched =
        Watched { descriptors: vec![PollFd::new(signals.as_fd(), PollFlags::POLLIN)], sources: Vec::new() };
    role.watch(&mut watched);
    let Watched { mut descriptors, sources } = watched;
    // After an interrupting signal the loop looks, too.
    if poll(&mut descriptors, next.map_or(PollTimeout::NONE, timeout_until)).is_err() {
        return Vec::new();
    }
    let ready = descriptors[1..].iter().map(|descriptor| descriptor.any() == Some(true));
    sources.into_iter().zip(ready).filter(|(_, is_ready)| *is_ready).map(|(source, _)| source).collect()
}

/// Time-out from now until `at`.
pub(crate) fn timeout_until(at: Instant) -> PollTimeout {
    // One millisecond more than rounded down: an early wake-up would only sleep again.
    let left_ms = at.saturating_duration_since(Instant::now()).as_millis() + 1;
    PollTimeout::from(u16::try_from(left_ms).unwrap_or(u16::MAX))
}

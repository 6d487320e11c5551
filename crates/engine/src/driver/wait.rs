//! Waiting: which thread drives the engine, which ones sleep, and the work of client threads meanwhile.

use super::callers::CallerWork;
use super::sleepers::{Awaited, Happened, time_left};
use super::spinning::{Idle, Spin, gives_way, look, look_eagerly};
use super::{Driver, WaitMode};
use crate::request::CompletionId;
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vgasnet_conduit::{SLOW, Sleeper};
use vgasnet_settings::UserError;
use vgasnet_stats::{self as stats, Row};
use vgasnet_sys::{self as sys, SignalGuard};

/// Maximum work items per poll, so that a flood of messages does not keep the caller from other work.
const POLL_WORK_MAX: usize = 64;

impl Driver {
    /// Sets the work of the rooms above. Called once.
    pub fn set_caller_work(&self, work: Arc<dyn CallerWork>) {
        self.callers.set(work);
    }

    /// Drives the engine once, and does some work of the rooms above, if this thread may.
    pub fn poll(&self) {
        self.step_if_needed();
        if let Some(callers) = self.callers.for_this_thread() {
            let mut left = POLL_WORK_MAX;
            while left > 0 && callers.work() {
                left -= 1;
            }
        }
    }

    /// Waits for a completion.
    pub fn wait(&self, completion: CompletionId) {
        if !self.completions().is_done(completion) {
            self.wait_because(self.row_of(completion), completion);
        }
    }

    /// The statistics row of a wait for this completion, which may be a barrier of ranks that share memory.
    #[cold]
    fn row_of(&self, completion: CompletionId) -> Row {
        let is_barrier = self.barriers.of_host().is_some_and(|barriers| barriers.unnamed().has_begun(completion));
        if is_barrier { Row::WaitBarrier } else { Row::WaitPage }
    }

    /// Waits for a completion and ends it.
    pub fn finish(&self, completion: CompletionId) {
        self.wait(completion);
        self.completions().end(completion);
    }

    /// As [`Driver::finish`], with the wait counted in `row`.
    pub fn finish_because(&self, row: Row, completion: CompletionId) {
        self.wait_because(row, completion);
        self.completions().end(completion);
    }

    fn wait_because(&self, row: Row, completion: CompletionId) {
        self.wait_because_or(row, completion, None);
    }

    /// As [`Driver::finish_because`]. Calls `tell` once if the wait takes [`SLOW`].
    pub fn finish_or_tell(&self, row: Row, completion: CompletionId, tell: &dyn Fn()) {
        self.wait_because_or(row, completion, Some(Instant::now() + SLOW));
        if !self.completions().is_done(completion) {
            tell();
        }
        self.finish_because(row, completion);
    }

    fn wait_because_or(&self, row: Row, completion: CompletionId, end: Option<Instant>) {
        let done = || self.completions().is_done(completion);
        if !done() {
            let _waiting = stats::wait(row);
            self.wait_for(&done, Awaited::completion(completion), end);
        }
    }

    /// Waits until `done`, driving the engine and doing the work of the rooms above, if this thread may.
    pub fn wait_until(&self, done: &dyn Fn() -> bool) {
        self.wait_until_or(done, None);
    }

    /// As [`Driver::wait_until`], until `end` or shortly after.
    pub fn wait_until_or(&self, done: &dyn Fn() -> bool, end: Option<Instant>) {
        self.wait_for(done, Awaited::ANY, end);
    }

    fn wait_for(&self, done: &dyn Fn() -> bool, awaited: Awaited, end: Option<Instant>) {
        // A thread may be older than the library, and switch to a context with a stack in the segment.
        sys::alternate_stack::prepare();
        let callers = self.callers.for_this_thread();
        let mut rounds = 0_u32;
        if sys::has_raised_copy() {
            self.refuse_in_raised_copy();
        }
        while !done() {
            if self.pass_host_barrier() || callers.is_some_and(|callers| callers.work()) {
                continue;
            }
            let has_work = || self.is_host_barrier_released() || callers.is_some_and(|callers| callers.is_pending());
            let is_over = || done() || has_work();
            if !self.watch(&is_over) {
                self.wait_for_engine(&is_over, awaited, end, self.spinning.in_call());
            }
            // Every eighth round only: reading the clock takes a tenth of a round trip.
            rounds += 1;
            if rounds % 8 == 0 && end.is_some_and(|end| Instant::now() >= end) {
                return;
            }
        }
    }

    #[cold]
    fn refuse_in_raised_copy(&self) -> ! {
        self.fail(
            "get or put",
            &UserError::new(
                "SIGSEGV or SIGBUS was raised at the program's address, and the program's handler has called the library or jumped out \
                 of the call; a handler may return or end the process; give addresses that can be read and written",
            ),
        )
    }

    /// Gives way to other threads, for a client polling in a loop without success. With more ranks than processors,
    /// such a loop would keep the processor from the answering rank. Sleeps if that is better than to yield: until an
    /// arrival, and briefly, since the client may wait for an event outside the library.
    pub fn back_off(&self) {
        const BACK_OFF_MAX: Duration = Duration::from_millis(1);
        if gives_way(WaitMode::current() != WaitMode::Spin) {
            return;
        }
        // A thread that leaves work to others gives way at any cost.
        let callers = self.callers.for_this_thread().filter(|callers| !callers.is_pending());
        let Some(callers) = callers else { return std::thread::yield_now() };
        let signals = SignalGuard::new();
        let (end, has_work) = (Some(Instant::now() + BACK_OFF_MAX), || callers.is_pending());
        if self.sleepers.try_drive(Awaited::ANY) {
            self.conduit.set_driving(true);
            let notices = self.space.own.table.unpin_notices();
            if !self.drive() && !has_work() {
                self.sleep_as_driver(notices, &has_work, end, &signals);
                self.drive();
            }
            self.hand_over(notices, Awaited::ANY);
        } else if self.sleepers.sleep(Awaited::ANY, &has_work, end, &signals) && !self.sleepers.offer(Awaited::ANY) {
            self.conduit.wake(self.space.rank);
        }
    }

    /// Spins briefly without becoming the driver, until `done` or an arrival: a message that wakes only a driver may be
    /// in flight. Returns whether there was either.
    fn watch(&self, done: &dyn Fn() -> bool) -> bool {
        let may_spin = self.spinning.in_call().is_any() && !self.outstanding.is_unfinished();
        may_spin && look_eagerly(&|| done() || self.has_arrivals()) && {
            self.step_if_needed();
            true
        }
    }

    /// As [`Driver::watch`], but short enough for client conditions that depend on other events, and without driving.
    pub fn spin_briefly(&self, done: &dyn Fn() -> bool) -> bool {
        const LOOKS: u32 = 16;
        let may_spin = self.arrivals_visible && self.spinning.in_call().is_any() && !self.outstanding.is_unfinished();
        may_spin && look(LOOKS, &|| done() || self.has_arrivals())
    }

    /// Drives the engine until `done`, or sleeps while another thread drives; until `end` or shortly after.
    pub(super) fn wait_for_engine(&self, done: &dyn Fn() -> bool, awaited: Awaited, end: Option<Instant>, idle: Spin) {
        // The clock is read every sixteenth time only: it takes longer than the check itself.
        let (looks, is_late) = (Cell::new(0_u32), Cell::new(false));
        let done = &|| {
            looks.set(looks.get().wrapping_add(1));
            if looks.get() % 16 == 0 {
                is_late.set(is_past(end));
            }
            done() || is_late.get()
        };
        let signals = SignalGuard::new();
        let mut has_offer = false;
        while !done() {
            if self.sleepers.try_drive(awaited) {
                has_offer = false;
                self.conduit.set_driving(true);
                let notices = self.drive_until(done, end, &signals, Idle::new(idle));
                self.hand_over(notices, awaited);
            } else {
                has_offer |= self.sleepers.sleep(awaited, done, end, &signals);
            }
        }
        if has_offer && !self.sleepers.offer(awaited) {
            self.conduit.wake(self.space.rank);
        }
    }

    /// Drives until `done`. Returns the count of unpin notices before the last drive.
    fn drive_until(&self, done: &dyn Fn() -> bool, end: Option<Instant>, signals: &SignalGuard, mut idle: Idle) -> u32 {
        debug_assert!(self.sleepers.has_driver(), "this thread is the driver");
        let table = &self.space.own.table;
        loop {
            let notices = table.unpin_notices();
            let worked = self.drive();
            if done() {
                return notices;
            }
            if worked {
                idle.end();
            } else if idle.gives_way_to(&self.sleepers)
                || !idle.spin(self.outstanding.is_unfinished(), &|| {
                    self.has_arrivals() || done() || table.unpin_notices() != notices
                })
            {
                self.sleep_as_driver(notices, done, end, signals);
                idle.on_slept();
            }
        }
    }

    /// Sleeps until an arrival for the driver or until `done`. `notices` is the count of unpin notices before its last
    /// drive.
    fn sleep_as_driver(&self, notices: u32, done: &dyn Fn() -> bool, end: Option<Instant>, signals: &SignalGuard) {
        debug_assert!(self.sleepers.has_driver(), "this thread is the driver");
        let held_up = self.outstanding.sleep_limit();
        let limit = held_up.into_iter().chain(time_left(end)).min();
        let has_more = || self.is_host_barrier_released() || self.space.own.table.unpin_notices() != notices;
        let stay = || done() || has_more() || self.outstanding.is_held_up() != held_up.is_some();
        // The client's signal handlers run while this thread sleeps. If one faults, the helper serves it.
        signals.except(|| self.conduit.sleep(Sleeper::Caller, self.helper.doorbell(), limit, &stay));
    }

    /// Hands driving over to a waiting thread, or else to the helper.
    fn hand_over(&self, notices: u32, awaited: Awaited) {
        self.sleepers.stop_driving();
        let missed = self.conduit.set_driving(false) || self.space.own.table.unpin_notices() != notices;
        // A helper that went to sleep during this thread's drive does not watch the storage.
        let rings_unseen = || self.outstanding.rings_later() && !self.helper.watches();
        if !self.sleepers.offer(awaited) && (missed || self.outstanding.is_unfinished() || rings_unseen()) {
            self.conduit.wake(self.space.rank);
        }
    }

    /// Makes waiting threads in calls check their conditions.
    pub fn notify(&self) {
        self.tell(Happened::EVENT);
    }

    /// As [`Driver::notify`], after a sequentially consistent change of a number that these threads read in the same
    /// way.
    pub fn notify_of_count(&self) {
        self.wake_driver_if(self.sleepers.wake_after_count(Happened::EVENT));
    }

    /// Makes threads check their conditions that may wait for these events.
    pub(super) fn tell(&self, happened: Happened) {
        self.wake_driver_if(self.sleepers.wake(happened));
    }

    fn wake_driver_if(&self, may_wait: bool) {
        if may_wait {
            self.conduit.wake(self.space.rank);
        }
    }

    /// Sets the time that a driver spins before it sleeps, in microseconds, unless the client sets a wait mode.
    pub fn set_spin(&self, spin_us: u32) {
        self.spinning.set(spin_us);
    }

    /// The time that a driver spins before it sleeps in the present wait mode.
    pub fn spin_limit(&self) -> Duration {
        self.spinning.limit()
    }
}

fn is_past(end: Option<Instant>) -> bool {
    end.is_some_and(|end| Instant::now() >= end)
}

//! The sleepers of a rank, and how they are woken.
//!
//! A poster makes its news visible and then calls [`Seats::ring`]. A sleeper lies down, looks for news, and only then
//! blocks. Lying down and ringing take the same lock: either the poster sees the sleeper, or the sleeper sees the news.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use vgasnet_conduit::Seat;

/// The two seats of a rank.
#[derive(Default)]
pub(crate) struct Seats {
    state: Mutex<State>,
    /// Made when somebody first sleeps there.
    doorbells: [OnceLock<EventFd>; 2],
}

#[derive(Default)]
struct State {
    /// A caller is awake and drives: arrivals wake nobody.
    driving: bool,
    caller_sleeps: bool,
    helper_sleeps: bool,
}

impl Seats {
    /// Wakes the seat that news must wake, if there is one.
    pub(crate) fn ring(&self) {
        let mut state = self.state();
        let seat = if state.driving {
            return;
        } else if state.caller_sleeps {
            // It is as good as awake: news before its first instruction does not wake the helper, too.
            state.driving = true;
            state.caller_sleeps = false;
            Seat::Caller
        } else if state.helper_sleeps {
            state.helper_sleeps = false;
            Seat::Helper
        } else {
            return;
        };
        self.doorbell(seat).write(1).expect("its count is far from its end");
    }

    /// Wakes a caller that sleeps.
    pub(crate) fn ring_caller(&self) {
        let sleeps = self.state().caller_sleeps;
        if sleeps {
            self.ring();
        }
    }

    /// Wakes the helper, if it sleeps.
    pub(crate) fn ring_helper(&self) {
        if std::mem::take(&mut self.state().helper_sleeps) {
            self.doorbell(Seat::Helper).write(1).expect("its count is far from its end");
        }
    }

    /// A caller drives from now on, or no longer does and looks for news next.
    pub(crate) fn occupy(&self, driving: bool) {
        self.state().driving = driving;
    }

    /// Sleeps unless `stay` says otherwise, which is asked once after news has begun to ring here and told whether
    /// arrivals are this seat's business: a helper leaves them to a caller that drives.
    pub(crate) fn sleep(
        &self,
        seat: Seat,
        also: Option<BorrowedFd<'_>>,
        timeout: Option<Duration>,
        stay: impl FnOnce(bool) -> bool,
    ) {
        let doorbell = self.doorbell(seat);
        let arrivals_matter = {
            let mut state = self.state();
            match seat {
                Seat::Caller => (state.caller_sleeps, state.driving) = (true, false),
                Seat::Helper => state.helper_sleeps = true,
            }
            !state.driving
        };
        let rung = !stay(arrivals_matter) && wait_readable(doorbell, also, timeout);
        let mut state = self.state();
        match seat {
            Seat::Caller => (state.caller_sleeps, state.driving) = (false, true),
            Seat::Helper => state.helper_sleeps = false,
        }
        drop(state);
        if rung {
            // It never blocks, and only this seat's one sleeper reads it.
            let _ = doorbell.read();
        }
    }

    fn doorbell(&self, seat: Seat) -> &EventFd {
        self.doorbells[seat as usize].get_or_init(|| {
            let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
            EventFd::from_value_and_flags(0, flags).expect("the system has a descriptor left")
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Blocks until one of the two is readable, a signal arrives or the time is over. Returns whether `doorbell` is readable.
fn wait_readable(doorbell: &EventFd, also: Option<BorrowedFd<'_>>, timeout: Option<Duration>) -> bool {
    let watch = |fd| PollFd::new(fd, PollFlags::POLLIN);
    let mut watched = [watch(doorbell.as_fd()), watch(also.unwrap_or(doorbell.as_fd()))];
    let count = if also.is_some() { 2 } else { 1 };
    let millis = |limit: Duration| PollTimeout::try_from(limit.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX);
    let timeout = timeout.map_or(PollTimeout::NONE, millis);
    poll(&mut watched[..count], timeout).is_ok_and(|ready| ready > 0) && watched[0].any() == Some(true)
}

//! The sleepers of a rank, and how they are woken.
//!
//! A poster makes its post visible and then calls [`Sleepers::ring`]. A sleeper says that it sleeps, looks for posts, and only
//! then blocks. Both take the same lock: either the poster sees the sleeper, or the sleeper sees the post.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};
use vgasnet_conduit::{Sleeper, wait_readable};

/// The two sleepers of a rank.
#[derive(Default)]
pub(crate) struct Sleepers {
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

impl Sleepers {
    /// Wakes the sleeper that a post must wake, if there is one.
    pub(crate) fn ring(&self) {
        let mut state = self.state();
        let sleeper = if state.driving {
            return;
        } else if state.caller_sleeps {
            // It is as good as awake: a post before its first instruction does not wake the helper, too.
            state.driving = true;
            state.caller_sleeps = false;
            Sleeper::Caller
        } else if state.helper_sleeps {
            state.helper_sleeps = false;
            Sleeper::Helper
        } else {
            return;
        };
        self.doorbell(sleeper).write(1).expect("its count is far from its end");
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
            self.doorbell(Sleeper::Helper).write(1).expect("its count is far from its end");
        }
    }

    /// A caller drives from now on, or no longer does and looks for posts next.
    pub(crate) fn set_driving(&self, driving: bool) {
        self.state().driving = driving;
    }

    /// Sleeps unless `stay` says otherwise, which is asked once after posts have begun to ring here and told whether
    /// arrivals are this sleeper's business: a helper leaves them to a caller that drives.
    pub(crate) fn sleep(
        &self,
        sleeper: Sleeper,
        also: Option<BorrowedFd<'_>>,
        timeout: Option<Duration>,
        stay: impl FnOnce(bool) -> bool,
    ) {
        let doorbell = self.doorbell(sleeper);
        let arrivals_matter = {
            let mut state = self.state();
            match sleeper {
                Sleeper::Caller => (state.caller_sleeps, state.driving) = (true, false),
                Sleeper::Helper => state.helper_sleeps = true,
            }
            !state.driving
        };
        let rung = !stay(arrivals_matter) && wait_readable(doorbell.as_fd(), also, timeout);
        let mut state = self.state();
        match sleeper {
            Sleeper::Caller => (state.caller_sleeps, state.driving) = (false, true),
            Sleeper::Helper => state.helper_sleeps = false,
        }
        drop(state);
        if rung {
            // It never blocks, and only this sleeper reads it.
            let _ = doorbell.read();
        }
    }

    fn doorbell(&self, sleeper: Sleeper) -> &EventFd {
        self.doorbells[sleeper as usize].get_or_init(|| {
            let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
            EventFd::from_value_and_flags(0, flags).expect("the system has a descriptor left")
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

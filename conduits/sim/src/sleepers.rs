//! The sleepers of a rank, and their wake-up.
//!
//! A poster makes its post visible and then calls [`Sleepers::ring`]. A sleeper announces its sleep, looks for posts,
//! and only then blocks. Both take the same lock: either the poster sees the sleeper, or the sleeper sees the post.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};
use vgasnet_conduit::{Sleeper, wait_readable};

/// The two sleepers of a rank.
#[derive(Default)]
pub(crate) struct Sleepers {
    state: Mutex<SleepFlags>,
    /// Created at the first sleep of each kind.
    doorbells: [OnceLock<EventFd>; 2],
}

#[derive(Default)]
struct SleepFlags {
    /// A caller is awake and drives: arrivals wake nobody.
    driving: bool,
    caller_sleeps: bool,
    helper_sleeps: bool,
}

impl Sleepers {
    /// Wakes the sleeper responsible for a post, if there is one.
    pub(crate) fn ring(&self) {
        let mut state = self.state();
        let sleeper = if state.driving {
            return;
        } else if state.caller_sleeps {
            // It counts as awake: a post before its first instruction does not wake the helper, too.
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

    /// Wakes a sleeping caller.
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

    /// Sleeps unless `stay` returns true. It is called once, after posts have begun to ring here, with whether this
    /// sleeper must react to arrivals: a helper leaves them to a driving caller.
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
            // Never blocks, and only this sleeper reads it.
            let _ = doorbell.read();
        }
    }

    fn doorbell(&self, sleeper: Sleeper) -> &EventFd {
        self.doorbells[sleeper as usize].get_or_init(|| {
            let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
            EventFd::from_value_and_flags(0, flags).expect("the system has a descriptor left")
        })
    }

    fn state(&self) -> MutexGuard<'_, SleepFlags> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

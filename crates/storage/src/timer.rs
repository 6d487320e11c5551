//! A timer that threads can sleep on.

use nix::errno::Errno;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// A descriptor that becomes readable at a set time.
pub(super) struct Timer(OwnedFd);

impl Timer {
    /// A timer without a time.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub(super) fn new() -> io::Result<Timer> {
        // SAFETY: the call takes numbers only, and it returns a new descriptor without another owner.
        unsafe {
            let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
            let descriptor = Errno::result(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))?;
            Ok(Timer(OwnedFd::from_raw_fd(descriptor)))
        }
    }

    /// Sets it again: it is not readable before `time`, and never with `None`.
    pub(super) fn ring_at(&self, time: Option<Instant>) {
        // A time of 0 would stop the timer.
        let left = |at: Instant| at.saturating_duration_since(Instant::now()).max(Duration::from_micros(1));
        let left = time.map_or(Duration::ZERO, left);
        let (tv_sec, tv_nsec) = (left.as_secs() as libc::time_t, left.subsec_nanos().into());
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = libc::itimerspec { it_interval: never, it_value: libc::timespec { tv_sec, tv_nsec } };
        // SAFETY: the kernel reads the setting during the call only, and accepts a null pointer for the previous one.
        let set = unsafe { libc::timerfd_settime(self.0.as_raw_fd(), 0, &raw const setting, std::ptr::null_mut()) };
        assert_eq!(set, 0, "a timer takes any time");
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

//! Sleeping until a descriptor is readable.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

/// Maximum sleep of one call: the kernel's clocks do not accept every `Duration`.
const SLEEP_MAX: Duration = Duration::from_secs(1 << 30);

/// Blocks until one of the two is readable, a signal arrives or the time is over. Returns whether `doorbell` is
/// readable.
pub fn wait_readable(doorbell: BorrowedFd<'_>, also: Option<BorrowedFd<'_>>, timeout: Option<Duration>) -> bool {
    let watch = |fd| PollFd::new(fd, PollFlags::POLLIN);
    let mut watched = [watch(doorbell), watch(also.unwrap_or(doorbell))];
    let count = if also.is_some() { 2 } else { 1 };
    let timeout = timeout.map(|limit| TimeSpec::from_duration(limit.min(SLEEP_MAX)));
    ppoll(&mut watched[..count], timeout, None).is_ok_and(|ready| ready > 0) && watched[0].any() == Some(true)
}

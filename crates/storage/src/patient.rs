//! Makes writes wait for space on a full disk.

use super::timer::Timer;
use super::{BlockingReader, Busy, FileSlot, IoDirection, IoOperation, NamedFile, Storage};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vgasnet_stats::{self as stats, Row};

/// Maximum time writes wait for space while none succeeds.
pub const SPACE_PATIENCE: Duration = Duration::from_secs(30);

/// The first pause before the writes are tried again. Each pause is twice as long as the one before.
const PAUSE_FIRST: Duration = Duration::from_millis(10);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Any storage on a disk that may fill up. Writes without space are tried again for a bounded time; reads continue
/// meanwhile. Waiting writes do not count in the bound on operations in flight.
///
/// Only writes of the backing file wait. A write of a named file reports the full disk to its caller.
pub struct Patient {
    inner: Box<dyn Storage>,
    patience: Duration,
    /// Called when writes begin to wait.
    tell: Box<dyn Fn() + Send>,
    /// Writes in flight.
    writes: Vec<IoOperation>,
    /// Writes that wait for space.
    refused: VecDeque<IoOperation>,
    wait: Option<Wait>,
    told: Option<Instant>,
    timer: Timer,
    /// Time set by [`Storage::ring_in`].
    ring_at: Option<Instant>,
    /// Readable when the inner storage's doorbell or the timer is readable.
    doorbell: Option<Epoll>,
}

/// A period without space.
struct Wait {
    /// The time at which the writes fail.
    end: Instant,
    /// The time of the next attempt.
    next: Instant,
    pause: Duration,
    _counted: stats::Waiting,
}

impl Patient {
    /// Wraps `inner`. `tell` is called when writes begin to wait, at most once per `patience`.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn new(inner: Box<dyn Storage>, patience: Duration, tell: impl Fn() + Send + 'static) -> io::Result<Patient> {
        let timer = Timer::new()?;
        let doorbell = inner.doorbell().map(|doorbell| both(doorbell, timer.as_fd())).transpose()?;
        let (tell, writes, refused) = (Box::new(tell), Vec::new(), VecDeque::new());
        Ok(Patient { inner, patience, tell, writes, refused, wait: None, told: None, timer, ring_at: None, doorbell })
    }

    /// Handles refused writes: waits for space, tries again, or gives up.
    fn wait_for_space(&mut self, errno: Option<i32>, has_written: bool, sink: &mut dyn FnMut(u64, io::Result<()>)) {
        let now = Instant::now();
        if self.wait.is_none() {
            self.wait = Some(Wait {
                end: now + self.patience,
                next: now + PAUSE_FIRST,
                pause: PAUSE_FIRST,
                _counted: stats::wait(Row::WaitSpace),
            });
            // A nearly full disk refuses single writes again and again, and one line per `patience` is enough.
            if self.told.is_none_or(|told| now >= told + self.patience) {
                self.told = Some(now);
                (self.tell)();
            }
        }
        let wait = self.wait.as_mut().expect("it has begun");
        if has_written {
            (wait.end, wait.next, wait.pause) = (now + self.patience, now, PAUSE_FIRST);
        }
        // A last attempt comes before giving up, since this process may have been stopped meanwhile.
        if let Some(errno) = errno.filter(|_| now >= wait.end && self.writes.is_empty()) {
            self.wait = None;
            self.refused.drain(..).for_each(|write| sink(write.token, Err(io::Error::from_raw_os_error(errno))));
            return;
        }
        if now >= wait.next {
            wait.next = now + wait.pause;
            wait.pause = (2 * wait.pause).min(PAUSE_MAX);
            self.try_again();
        }
    }

    fn set_timer(&self) {
        let next = self.wait.as_ref().map(|wait| wait.next);
        self.timer.ring_at(next.into_iter().chain(self.ring_at).min());
    }

    /// Starts as many of the refused writes as the inner storage takes.
    fn try_again(&mut self) {
        while let Some(write) = self.refused.front().copied() {
            // SAFETY: the caller of `start` has promised its conditions until the token comes back.
            if unsafe { self.inner.start(write) }.is_err() {
                return;
            }
            self.writes.push(write);
            self.refused.pop_front();
        }
    }
}

impl Storage for Patient {
    unsafe fn start(&mut self, operation: IoOperation) -> Result<(), Busy> {
        let is_write = may_wait(&operation);
        if is_write && self.wait.is_some() {
            self.refused.push_back(operation);
            return Ok(());
        }
        // SAFETY: the memory is valid, and left to the operation until the token comes back.
        unsafe { self.inner.start(operation) }?;
        if is_write {
            self.writes.push(operation);
        }
        Ok(())
    }

    unsafe fn start_runs(&mut self, runs: &[&[IoOperation]]) -> usize {
        if self.wait.is_none() {
            // SAFETY: the memory is valid, and left to each operation until its token comes back.
            let started = unsafe { self.inner.start_runs(runs) };
            let operations = runs.iter().copied().flatten().take(started);
            self.writes.extend(operations.filter(|operation| may_wait(operation)));
            return started;
        }
        let mut all_started = 0;
        for run in runs {
            let started = if run.iter().any(may_wait) {
                self.refused.extend(*run);
                run.len()
            } else {
                // SAFETY: the memory is valid, and left to each operation until its token comes back.
                unsafe { self.inner.start_run(run) }
            };
            all_started += started;
            if started < run.len() {
                break;
            }
        }
        all_started
    }

    fn poll(&mut self, sink: &mut dyn FnMut(u64, io::Result<()>)) {
        let (mut errno, mut has_written) = (None, false);
        let (writes, refused) = (&mut self.writes, &mut self.refused);
        self.inner.poll(&mut |token, result| {
            let write = writes.iter().position(|write| write.token == token).map(|at| writes.swap_remove(at));
            match (write, full(&result)) {
                (Some(write), Some(why)) => {
                    errno = Some(why);
                    refused.push_back(write);
                }
                (write, _) => {
                    has_written |= write.is_some() && result.is_ok();
                    sink(token, result);
                }
            }
        });
        if self.refused.is_empty() && self.wait.is_none() {
            return;
        }
        if self.refused.is_empty() && self.writes.is_empty() {
            self.wait = None;
        } else {
            self.wait_for_space(errno, has_written, sink);
        }
        self.set_timer();
    }

    fn ring_in(&mut self, time: Option<Duration>) {
        self.ring_at = time.map(|time| Instant::now() + time);
        self.set_timer();
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight() + self.refused.len()
    }

    fn add_file(&mut self, file: Arc<NamedFile>) -> FileSlot {
        self.inner.add_file(file)
    }

    fn remove_file(&mut self, slot: FileSlot) {
        self.inner.remove_file(slot);
    }

    fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        self.doorbell.as_ref().map(|doorbell| doorbell.0.as_fd())
    }

    fn reader(&self, file: FileSlot) -> Option<Arc<dyn BlockingReader>> {
        self.inner.reader(file)
    }
}

/// Whether an operation waits for space.
fn may_wait(operation: &IoOperation) -> bool {
    operation.direction == IoDirection::Write && operation.file == FileSlot::BACKING
}

/// The errno of a result that reports a full disk or quota.
fn full(result: &io::Result<()>) -> Option<i32> {
    let errno = result.as_ref().err()?.raw_os_error()?;
    matches!(errno, libc::ENOSPC | libc::EDQUOT).then_some(errno)
}

/// A descriptor readable when one of the two is.
fn both(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> nix::Result<Epoll> {
    let both = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    for descriptor in [one, other] {
        both.add(descriptor, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
    }
    Ok(both)
}

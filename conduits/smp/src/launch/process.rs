//! A process that a launcher looks after.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};

use super::{End, Life, Order};

/// A process that this launcher started, or that one of those has made. Signals go through its pidfd, so never to a stranger
/// with its number.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    /// None for somebody else's.
    child: Option<Child>,
    pidfd: OwnedFd,
    is_running: bool,
}

impl Process {
    /// Starts a process that has this signal mask, gets `on_death` when the calling thread dies, and keeps the `inherited`
    /// descriptors through exec.
    ///
    /// # Errors
    /// The command cannot be run.
    pub fn spawn(
        mut command: Command,
        mask: SigSet,
        on_death: Signal,
        inherited: impl Iterator<Item = RawFd> + Clone + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let launcher = std::process::id();
        // SAFETY: the closure runs in the child between fork and exec. It makes system calls only: it neither allocates
        // nor takes a lock that another thread of the launcher may have held.
        unsafe { command.pre_exec(move || prepare(launcher, &mask, on_death, inherited.clone())) };
        let mut child = command.spawn()?;
        let pidfd = open_pidfd(child.id()).inspect_err(|_| {
            // It is our child and not reaped yet, so these reach no other process.
            let _ = child.kill();
            let _ = child.wait();
        })?;
        Ok(Process { pid: child.id(), child: Some(child), pidfd, is_running: true })
    }

    /// A process that another one has started, and that has just said something.
    ///
    /// # Errors
    /// It is gone already.
    pub fn adopt(pid: u32) -> io::Result<Self> {
        Ok(Process { pid, child: None, pidfd: open_pidfd(pid)?, is_running: true })
    }

    /// The process itself, for its ends of pipes.
    pub(super) fn child(&mut self) -> Option<&mut Child> {
        self.child.as_mut()
    }

    /// The pipe to its standard input, once, if it was given one.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.as_mut()?.stdin.take()
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it has not been reaped.
    pub fn is_running(&self) -> bool {
        self.is_running
    }

    /// Readable when the process has ended; none after it was reaped.
    pub fn running_fd(&self) -> Option<BorrowedFd<'_>> {
        self.is_running.then(|| self.pidfd.as_fd())
    }

    /// Sends a signal, if the process still runs.
    pub fn signal(&self, signal: i32) {
        if self.is_running {
            // It fails when the process has just ended, and then there is nobody to tell.
            // SAFETY: the descriptor is open; no information is passed along.
            unsafe {
                let info = std::ptr::null::<libc::siginfo_t>();
                libc::syscall(libc::SYS_pidfd_send_signal, self.pidfd.as_raw_fd(), signal, info, 0);
            }
        }
    }

    /// Sends what the order says, if the process still runs.
    pub fn obey(&self, order: Order, life: Life) {
        match order {
            Order::Forward(signal) => self.signal(signal),
            Order::Kill => self.signal(libc::SIGKILL),
            // A process that is no rank yet does not know what SIGQUIT is for.
            Order::Quit if life == Life::Fresh => self.signal(libc::SIGTERM),
            Order::Quit => self.quit(),
        }
    }

    /// Sends SIGQUIT, if the process still runs. Where that is not handled, the process ends without a core file: it is
    /// told to end, and has not failed.
    fn quit(&self) {
        if self.is_running {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            let pid = self.pid as libc::pid_t;
            // A limit of 1 also holds where a program takes the cores (core(5)). If it fails there is a core too many.
            // SAFETY: the calls read and write `limit` only. The number is that of a process that we have not seen end.
            unsafe {
                if libc::prlimit(pid, libc::RLIMIT_CORE, std::ptr::null(), &mut limit) == 0 {
                    limit.rlim_cur = limit.rlim_max.min(1);
                    libc::prlimit(pid, libc::RLIMIT_CORE, &limit, std::ptr::null_mut());
                }
            }
            self.signal(libc::SIGQUIT);
        }
    }

    /// How the process ended, once. Nobody knows that of one that somebody else has started and reaped: then it is `unknown`.
    pub fn reap_or(&mut self, unknown: End) -> Option<End> {
        if !self.is_running {
            return None;
        }
        let status = match &mut self.child {
            Some(child) => child.try_wait(),
            None => match status_of_another(self.pid, self.pidfd.as_fd()) {
                Ok(Some(None)) => {
                    self.is_running = false;
                    return Some(unknown);
                }
                status => status.map(Option::flatten),
            },
        };
        let end = match status {
            Ok(None) => return None,
            Ok(Some(status)) => status.code().map_or_else(|| End::Signal(status.signal().unwrap_or(0)), End::Status),
            Err(error) => {
                super::say(&format!("waiting for pid {}: {error}", self.pid));
                End::Status(1)
            }
        };
        self.is_running = false;
        Some(end)
    }

    /// As [`Process::reap_or`], of a process that this launcher has started.
    pub fn reap(&mut self) -> Option<End> {
        self.reap_or(End::Status(1))
    }

    /// Waits until the process has ended, which this launcher has started.
    pub fn wait(&mut self) {
        let _ = self.child.as_mut().map(Child::wait);
        self.is_running = false;
    }
}

/// How another process's child has ended, if it has. Until that has reaped it, proc(5) tells.
fn status_of_another(pid: u32, pidfd: BorrowedFd<'_>) -> io::Result<Option<Option<ExitStatus>>> {
    let mut ended = [PollFd::new(pidfd, PollFlags::POLLIN)];
    if poll(&mut ended, PollTimeout::ZERO)? == 0 {
        return Ok(None);
    }
    let fields = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The number may be a stranger's by now, who runs. The status is the last field.
    let is_zombie = fields.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'));
    let status = fields.split_whitespace().next_back().and_then(|status| status.parse().ok());
    Ok(Some(status.filter(|_| is_zombie).map(ExitStatus::from_raw)))
}

/// In the child: get a signal when the launcher dies, have the launcher's signal mask and not the one with which it
/// forwards signals, and keep the job's descriptors through exec.
fn prepare(launcher: u32, mask: &SigSet, on_death: Signal, inherited: impl Iterator<Item = RawFd>) -> io::Result<()> {
    mask.thread_set_mask()?;
    // SAFETY: plain system calls on numbers; clearing a descriptor's flags affects this process alone.
    unsafe {
        Errno::result(libc::prctl(libc::PR_SET_PDEATHSIG, on_death as libc::c_int))?;
        // Had the launcher died before that call, no signal would come.
        if libc::getppid() as u32 != launcher {
            libc::_exit(1);
        }
        for descriptor in inherited {
            Errno::result(libc::fcntl(descriptor, libc::F_SETFD, 0))?;
        }
    }
    Ok(())
}

fn open_pidfd(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers only, and a descriptor it returns is new and ours.
    unsafe {
        let descriptor = Errno::result(libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0))?;
        Ok(OwnedFd::from_raw_fd(descriptor as RawFd))
    }
}

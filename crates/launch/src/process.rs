//! A process looked after by a launcher.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use vgasnet_protocol::RankState;

use crate::exit_policy::{End, Order};
use crate::say;

/// A process started by this launcher, or a descendant of it. Signals go through its pidfd, so never to another process
/// that has got its number.
#[derive(Debug)]
pub(crate) struct Process {
    pid: u32,
    /// None for a descendant.
    child: Option<Child>,
    pidfd: OwnedFd,
    is_running: bool,
}

impl Process {
    /// Starts a process with this signal mask. It gets `on_death` when the calling thread dies, and keeps the
    /// `inherited` descriptor through exec.
    pub(crate) fn spawn(
        mut command: Command,
        mask: SigSet,
        on_death: Signal,
        inherited: Option<RawFd>,
    ) -> io::Result<Self> {
        let launcher = std::process::id();
        // SAFETY: the closure runs in the child between fork and exec. It only makes system calls: it neither allocates
        // nor takes a lock another thread of the launcher may have held.
        unsafe { command.pre_exec(move || prepare(launcher, &mask, on_death, inherited)) };
        let mut child = command.spawn()?;
        let pidfd = open_pidfd(child.id()).inspect_err(|_| {
            // It is our unreaped child, so these reach no other process.
            let _ = child.kill();
            let _ = child.wait();
        })?;
        Ok(Process { pid: child.id(), child: Some(child), pidfd, is_running: true })
    }

    /// A descendant that has just sent a message. Fails if the process is already gone.
    pub(crate) fn adopt(pid: u32) -> io::Result<Self> {
        Ok(Process { pid, child: None, pidfd: open_pidfd(pid)?, is_running: true })
    }

    /// The pipe to its standard input, once, if it was given one.
    pub(crate) fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.as_mut()?.stdin.take()
    }

    /// The pipes from its standard output and error, once.
    pub(crate) fn take_output(&mut self) -> [Option<OwnedFd>; 2] {
        let child = self.child.as_mut();
        child.map_or([None, None], |child| {
            [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)]
        })
    }

    /// Its number.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it has neither been reaped nor seen to have ended.
    pub(crate) fn is_running(&self) -> bool {
        self.is_running
    }

    /// Readable when the process has ended; none after it was reaped.
    pub(crate) fn running_fd(&self) -> Option<BorrowedFd<'_>> {
        self.is_running.then(|| self.pidfd.as_fd())
    }

    /// Sends a signal, if the process still runs.
    pub(crate) fn signal(&self, signal: i32) {
        if self.is_running {
            // Fails if the process has just ended, and then there is nobody to tell. SAFETY: the descriptor is open; no
            // information is passed along.
            unsafe {
                let info = std::ptr::null::<libc::siginfo_t>();
                libc::syscall(libc::SYS_pidfd_send_signal, self.pidfd.as_raw_fd(), signal, info, 0);
            }
        }
    }

    /// Carries out the order, if the process still runs.
    pub(crate) fn obey(&self, order: Order, state: RankState) {
        match order {
            Order::Forward(signal) => self.signal(signal),
            Order::Kill => self.signal(libc::SIGKILL),
            // SIGQUIT is meaningless to a process that is no rank yet.
            Order::Quit if state == RankState::Fresh => self.signal(libc::SIGTERM),
            Order::Quit => self.quit(),
        }
    }

    /// Sends SIGQUIT, if the process still runs. An unhandled SIGQUIT ends the process without a core file: it was told
    /// to end, and has not failed.
    fn quit(&self) {
        if self.is_running {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            let pid = self.pid as libc::pid_t;
            // A limit of 1 also holds if a program takes the cores (core(5)). If the call fails there is one core too
            // many. SAFETY: the calls read and write `limit` only. The number belongs to a process not seen to end.
            unsafe {
                if libc::prlimit(pid, libc::RLIMIT_CORE, std::ptr::null(), &mut limit) == 0 {
                    limit.rlim_cur = limit.rlim_max.min(1);
                    libc::prlimit(pid, libc::RLIMIT_CORE, &limit, std::ptr::null_mut());
                }
            }
            self.signal(libc::SIGQUIT);
        }
    }

    /// Checks whether a descendant has ended. Only its parent gets its status.
    pub(crate) fn look(&mut self) {
        let mut watched = [PollFd::new(self.pidfd.as_fd(), PollFlags::POLLIN)];
        if poll(&mut watched, PollTimeout::ZERO).is_ok_and(|ready| ready > 0) {
            self.is_running = false;
        }
    }

    /// The child's end, once.
    pub(crate) fn reap(&mut self) -> Option<End> {
        let child = self.child.as_mut().filter(|_| self.is_running)?;
        let end = match child.try_wait().transpose()? {
            Ok(status) => status.code().map_or_else(|| End::Signal(status.signal().unwrap_or(0)), End::Status),
            Err(error) => {
                say(&format!("waiting for pid {}: {error}", self.pid));
                End::Status(1)
            }
        };
        self.is_running = false;
        Some(end)
    }

    /// Waits for the end of the process, a child of this launcher.
    pub(crate) fn wait(&mut self) {
        let _ = self.child.as_mut().map(Child::wait);
        self.is_running = false;
    }
}

/// Disables address randomisation for the program `command` starts, and its descendants.
pub(crate) fn fix_addresses(command: &mut Command) {
    const ANY: libc::c_ulong = 0xffff_ffff;
    let fix = || {
        // Containers may forbid it; addresses are then random. SAFETY: the calls take numbers, and change only the
        // placement of the next program.
        unsafe {
            let current = libc::personality(ANY);
            if current >= 0 {
                libc::personality(current as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            }
        }
        Ok(())
    };
    // SAFETY: the closure runs in the child between fork and exec. It only makes system calls.
    unsafe { command.pre_exec(fix) };
}

/// In the child: requests a signal on the launcher's death, restores the launcher's original signal mask, and keeps the
/// inherited descriptor through exec. SIGQUIT, the launcher's way to end a rank, is not ignored: shells make background
/// jobs ignore it.
fn prepare(launcher: u32, mask: &SigSet, on_death: Signal, inherited: Option<RawFd>) -> io::Result<()> {
    mask.thread_set_mask()?;
    // SAFETY: plain system calls on numbers; clearing a descriptor's flags affects this process alone.
    unsafe {
        Errno::result(libc::prctl(libc::PR_SET_PDEATHSIG, on_death as libc::c_int))?;
        libc::signal(libc::SIGQUIT, libc::SIG_DFL);
        // If the launcher died before that call, no signal would arrive.
        if libc::getppid() as u32 != launcher {
            libc::_exit(1);
        }
        if let Some(descriptor) = inherited {
            Errno::result(libc::fcntl(descriptor, libc::F_SETFD, 0))?;
        }
    }
    Ok(())
}

fn open_pidfd(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers only, and a returned descriptor is new and ours.
    unsafe {
        let descriptor = Errno::result(libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0))?;
        Ok(OwnedFd::from_raw_fd(descriptor as RawFd))
    }
}

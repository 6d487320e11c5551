//! A process that a launcher looks after.

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

/// A process that this launcher started, or a descendant of it. Signals go through its pidfd, so never to another process
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
    /// Starts a process that has this signal mask, gets `on_death` when the calling thread dies, and keeps the `inherited`
    /// descriptor through exec.
    pub(crate) fn spawn(
        mut command: Command,
        mask: SigSet,
        on_death: Signal,
        inherited: Option<RawFd>,
    ) -> io::Result<Self> {
        let launcher = std::process::id();
        // SAFETY: the closure runs in the child between fork and exec. It makes system calls only: it neither allocates
        // nor takes a lock that another thread of the launcher may have held.
        unsafe { command.pre_exec(move || prepare(launcher, &mask, on_death, inherited)) };
        let mut child = command.spawn()?;
        let pidfd = open_pidfd(child.id()).inspect_err(|_| {
            // It is our child and not reaped yet, so these reach no other process.
            let _ = child.kill();
            let _ = child.wait();
        })?;
        Ok(Process { pid: child.id(), child: Some(child), pidfd, is_running: true })
    }

    /// A descendant, which has just said something. It fails when the process is gone already.
    pub(crate) fn adopt(pid: u32) -> io::Result<Self> {
        Ok(Process { pid, child: None, pidfd: open_pidfd(pid)?, is_running: true })
    }

    /// The pipe to its standard input, once, if it was given one.
    pub(crate) fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.as_mut()?.stdin.take()
    }

    /// The pipes from its standard output and error, likewise.
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

    /// Whether it has not been reaped, or seen to have ended.
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
            // It fails when the process has just ended, and then there is nobody to tell.
            // SAFETY: the descriptor is open; no information is passed along.
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
            // SIGQUIT means nothing to a process that is no rank yet.
            Order::Quit if state == RankState::Fresh => self.signal(libc::SIGTERM),
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

    /// Notes whether a descendant has ended. Its status is its parent's to know.
    pub(crate) fn look(&mut self) {
        let mut watched = [PollFd::new(self.pidfd.as_fd(), PollFlags::POLLIN)];
        if poll(&mut watched, PollTimeout::ZERO).is_ok_and(|ready| ready > 0) {
            self.is_running = false;
        }
    }

    /// How the child ended, once.
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

    /// Waits until the process has ended, a child of this launcher.
    pub(crate) fn wait(&mut self) {
        let _ = self.child.as_mut().map(Child::wait);
        self.is_running = false;
    }
}

/// Has the system place the program that `command` starts, and all that it starts, as it places every program.
pub(crate) fn fix_addresses(command: &mut Command) {
    const ANY: libc::c_ulong = 0xffff_ffff;
    let fix = || {
        // Containers may forbid it, and then programs are placed at random.
        // SAFETY: the calls take numbers, and change nothing but where the next program is placed.
        unsafe {
            let current = libc::personality(ANY);
            if current >= 0 {
                libc::personality(current as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            }
        }
        Ok(())
    };
    // SAFETY: the closure runs in the child between fork and exec. It makes system calls only.
    unsafe { command.pre_exec(fix) };
}

/// In the child: get a signal when the launcher dies, have the launcher's signal mask and not the one with which it
/// forwards signals, and keep the inherited descriptor through exec. SIGQUIT, by which the launcher ends a rank, is not ignored:
/// a shell has its background jobs ignore it.
fn prepare(launcher: u32, mask: &SigSet, on_death: Signal, inherited: Option<RawFd>) -> io::Result<()> {
    mask.thread_set_mask()?;
    // SAFETY: plain system calls on numbers; clearing a descriptor's flags affects this process alone.
    unsafe {
        Errno::result(libc::prctl(libc::PR_SET_PDEATHSIG, on_death as libc::c_int))?;
        libc::signal(libc::SIGQUIT, libc::SIG_DFL);
        // Had the launcher died before that call, no signal would come.
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
    // SAFETY: the call takes numbers only, and a descriptor it returns is new and ours.
    unsafe {
        let descriptor = Errno::result(libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0))?;
        Ok(OwnedFd::from_raw_fd(descriptor as RawFd))
    }
}

//! A process that a launcher looks after.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};

use super::End;

/// A process that this launcher started. Signals go through its pidfd, so never to a stranger with its number.
#[derive(Debug)]
pub struct Process {
    child: Child,
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
        Ok(Process { child, pidfd, is_running: true })
    }

    /// The process itself, for its ends of pipes.
    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
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

    /// Sends SIGQUIT, if the process still runs. Where that is not handled, the process ends without a core file: it is
    /// told to end, and has not failed.
    pub fn quit(&self) {
        if self.is_running {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            let pid = self.pid() as libc::pid_t;
            // A limit of 1 also holds where a program takes the cores (core(5)). If it fails there is a core too many.
            // SAFETY: the calls read and write `limit` only. The number is our child's, which is not reaped yet.
            unsafe {
                if libc::prlimit(pid, libc::RLIMIT_CORE, std::ptr::null(), &mut limit) == 0 {
                    limit.rlim_cur = limit.rlim_max.min(1);
                    libc::prlimit(pid, libc::RLIMIT_CORE, &limit, std::ptr::null_mut());
                }
            }
            self.signal(libc::SIGQUIT);
        }
    }

    /// How the process ended, once.
    pub fn reap(&mut self) -> Option<End> {
        if !self.is_running {
            return None;
        }
        let status = match self.child.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => status,
            Err(error) => {
                super::say(&format!("waiting for pid {}: {error}", self.pid()));
                self.is_running = false;
                return Some(End::Status(1));
            }
        };
        self.is_running = false;
        Some(status.code().map_or_else(|| End::Signal(status.signal().unwrap_or(0)), End::Status))
    }

    /// Waits until the process has ended.
    pub fn wait(&mut self) {
        let _ = self.child.wait();
        self.is_running = false;
    }
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

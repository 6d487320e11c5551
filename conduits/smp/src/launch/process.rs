//! One rank's process.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;
use nix::sys::signal::SigSet;

use super::output::{LabelledPipe, Stream};
use super::{End, Launch, StartError, advice};
use crate::job::{JOB_VARIABLE, JobVariable, Objects};

/// A process that this launcher started. Signals go through its pidfd, so never to a stranger with its number.
pub(super) struct RankProcess {
    child: Child,
    pidfd: OwnedFd,
    is_running: bool,
}

impl RankProcess {
    /// Starts `rank` with this signal mask. With labelled output there are pipes to read.
    pub(super) fn spawn(
        launch: &Launch,
        rank: u32,
        objects: &Objects,
        mask: SigSet,
    ) -> Result<(Self, Vec<LabelledPipe>), StartError> {
        let variable = JobVariable {
            rank,
            ranks: launch.ranks,
            arena: objects.arena.as_raw_fd(),
            doorbells: objects.doorbells[0].as_raw_fd(),
        };
        let mut command = Command::new(&launch.program);
        command.args(&launch.args).envs(launch.env.iter().map(|(name, value)| (name, value)));
        command.env(JOB_VARIABLE, variable.to_string());
        if rank > 0 {
            command.stdin(Stdio::null());
        }
        if launch.label_output {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let launcher = std::process::id();
        let bells = variable.doorbells..variable.doorbells + objects.doorbells.len() as RawFd;
        // SAFETY: the closure runs in the child between fork and exec. It makes system calls only: it neither allocates
        // nor takes a lock that another thread of the launcher may have held.
        unsafe {
            command.pre_exec(move || prepare(launcher, &mask, std::iter::once(variable.arena).chain(bells.clone())))
        };
        let mut child = command.spawn().map_err(|error| explain(launch, rank, &error))?;
        let pidfd = open_pidfd(child.id()).map_err(|error| {
            // It is our child and not reaped yet, so these reach no other process.
            let _ = child.kill();
            let _ = child.wait();
            explain(launch, rank, &error)
        })?;
        let out = child.stdout.take().map(|pipe| (OwnedFd::from(pipe), Stream::Out));
        let err = child.stderr.take().map(|pipe| (OwnedFd::from(pipe), Stream::Err));
        let pipes = out.into_iter().chain(err).map(|(pipe, stream)| LabelledPipe::new(rank, pipe, stream));
        let pipes = pipes.collect();
        Ok((RankProcess { child, pidfd, is_running: true }, pipes))
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn is_running(&self) -> bool {
        self.is_running
    }

    /// Readable when the process has ended; none after it was reaped.
    pub(super) fn running_fd(&self) -> Option<BorrowedFd<'_>> {
        use std::os::fd::AsFd;
        self.is_running.then(|| self.pidfd.as_fd())
    }

    /// Sends a signal, if the process still runs.
    pub(super) fn signal(&self, signal: i32) {
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
    pub(super) fn quit(&self) {
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
    pub(super) fn reap(&mut self) -> Option<End> {
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
    pub(super) fn wait(&mut self) {
        let _ = self.child.wait();
        self.is_running = false;
    }
}

/// In the child: die with the launcher, have the launcher's signal mask and not the one with which it forwards signals, and
/// keep the job's descriptors through exec.
fn prepare(launcher: u32, mask: &SigSet, inherited: impl Iterator<Item = RawFd>) -> io::Result<()> {
    mask.thread_set_mask()?;
    // SAFETY: plain system calls on numbers; clearing a descriptor's flags affects this process alone.
    unsafe {
        Errno::result(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
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

/// Statuses as shells have them: 127 when there is no such program, 126 when it cannot be run.
fn explain(launch: &Launch, rank: u32, error: &io::Error) -> StartError {
    let program = launch.program.to_string_lossy();
    let status = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    let advice = error.raw_os_error().map_or_else(String::new, |code| advice(Errno::from_raw(code)));
    let text = format!("cannot start rank {rank} of {}, \"{program}\": {error}{advice}", launch.ranks);
    StartError { status, text }
}

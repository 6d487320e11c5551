//! The processes of a rank.

use std::io;
use std::os::fd::BorrowedFd;

use vgasnet_protocol::RankState;

use crate::exit_policy::{End, Order};
use crate::process::Process;

/// A child process, and the rank itself if the child is a script that started it.
#[derive(Debug)]
pub(crate) struct RankProcess {
    child: Process,
    within: Option<Process>,
}

impl From<Process> for RankProcess {
    fn from(child: Process) -> RankProcess {
        RankProcess { child, within: None }
    }
}

impl RankProcess {
    /// The rank turns out to be this process.
    ///
    /// # Errors
    /// Too many files are open.
    pub(crate) fn found(&mut self, pid: u32) -> io::Result<()> {
        if pid != self.child.pid() && pid != 0 && self.within.is_none() {
            match Process::adopt(pid) {
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                adopted => self.within = Some(adopted?),
            }
        }
        Ok(())
    }

    /// The process number of the child.
    pub(crate) fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Whether the child has not been reaped, or the rank within it has not ended: a script dies of signals handled by
    /// a rank.
    pub(crate) fn is_running(&self) -> bool {
        self.child.is_running() || self.within.as_ref().is_some_and(Process::is_running)
    }

    /// Readable when one of the two has ended and [`RankProcess::reap`] has not seen it yet.
    pub(crate) fn running_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.child.running_fd().into_iter().chain(self.within.as_ref().and_then(Process::running_fd))
    }

    /// Checks for ends. Returns the child's end, once.
    pub(crate) fn reap(&mut self) -> Option<End> {
        if let Some(within) = &mut self.within {
            within.look();
        }
        self.child.reap()
    }

    /// Waits until the child has ended.
    pub(crate) fn wait(&mut self) {
        self.child.wait();
    }

    /// Orders the rank, in this state, and its script.
    pub(crate) fn obey(&self, order: Order, state: RankState) {
        if let Some(within) = &self.within {
            within.obey(order, state);
        }
        // A script does not know the signals meant for a rank.
        self.child.obey(order, if self.within.is_some() { RankState::Fresh } else { state });
    }
}

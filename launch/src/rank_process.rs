//! The processes of a rank.

use std::os::fd::BorrowedFd;

use vgasnet_protocol::RankState;

use crate::exit_policy::{End, Order};
use crate::process::Process;

/// A child process, and the rank itself where the child is a script that has started it.
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
    pub(crate) fn found(&mut self, pid: u32) {
        if pid != self.child.pid() && pid != 0 && self.within.is_none() {
            self.within = Process::adopt(pid).ok();
        }
    }

    /// The number of the child.
    pub(crate) fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Whether the child has not been reaped.
    pub(crate) fn is_running(&self) -> bool {
        self.child.is_running()
    }

    /// Readable when the child has ended; none after it was reaped.
    pub(crate) fn running_fd(&self) -> Option<BorrowedFd<'_>> {
        self.child.running_fd()
    }

    /// How the child ended, once.
    pub(crate) fn reap(&mut self) -> Option<End> {
        self.child.reap()
    }

    /// Waits until the child has ended.
    pub(crate) fn wait(&mut self) {
        self.child.wait();
    }

    /// Gives an order to the rank, which has come so far, and to its script.
    pub(crate) fn obey(&self, order: Order, state: RankState) {
        if let Some(within) = &self.within {
            within.obey(order, state);
        }
        // A script does not know the signals by which a rank is told.
        self.child.obey(order, if self.within.is_some() { RankState::Fresh } else { state });
    }
}

//! The signals forwarded by the launcher.

use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

const FORWARDED: [Signal; 6] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGQUIT];

/// The forwarded signals, blocked in this thread and readable from a descriptor until this is dropped.
#[derive(Debug)]
pub(crate) struct Signals {
    descriptor: SignalFd,
    previous_mask: SigSet,
}

impl Signals {
    /// Takes the signals over. Signals ignored by this process stay ignored: `nohup` and background shells rely on it.
    pub(crate) fn block() -> Result<Self, Errno> {
        if is_ignored(Signal::SIGCHLD)? {
            // If ignored, the kernel would reap the ranks and discard their statuses. SAFETY: the default action runs
            // no handler.
            unsafe { nix::sys::signal::signal(Signal::SIGCHLD, SigHandler::SigDfl)? };
        }
        let mut mask = SigSet::empty();
        for signal in FORWARDED {
            if !is_ignored(signal)? {
                mask.add(signal);
            }
        }
        let descriptor = SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let previous_mask = mask.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        Ok(Signals { descriptor, previous_mask })
    }

    /// The signal mask before blocking, for child processes.
    pub(crate) fn previous_mask(&self) -> SigSet {
        self.previous_mask
    }

    /// The next signal, and whether it comes from the terminal.
    pub(crate) fn next(&self) -> Option<(i32, bool)> {
        let info = self.descriptor.read_signal().ok()??;
        Some((info.ssi_signo as i32, info.ssi_code == libc::SI_KERNEL))
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Fails only for an invalid mask.
        let _ = self.previous_mask.thread_set_mask();
    }
}

fn is_ignored(signal: Signal) -> Result<bool, Errno> {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: the call changes nothing and fills `action` on success, which is checked before the value is used.
    unsafe {
        Errno::result(libc::sigaction(signal as i32, std::ptr::null(), action.as_mut_ptr()))?;
        Ok(action.assume_init().sa_sigaction == libc::SIG_IGN)
    }
}

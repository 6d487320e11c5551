//! The helper thread's requests, and its watch over the storage.

use crate::request::Mailbox;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// The helper thread: its requests, and the storage's doorbell, which it watches while no thread drives.
pub(super) struct Helper {
    mailbox: Mailbox,
    /// Readable when the storage has completed an operation.
    doorbell: Option<OwnedFd>,
    /// The helper sleeps until the storage wakes it.
    watches: AtomicBool,
}

impl Helper {
    pub(super) fn new(doorbell: Option<OwnedFd>) -> Helper {
        Helper { mailbox: Mailbox::default(), doorbell, watches: AtomicBool::new(false) }
    }

    /// The requests of faulting threads.
    pub(super) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// The storage's doorbell, for a thread that sleeps.
    pub(super) fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        self.doorbell.as_ref().map(|doorbell| doorbell.as_fd())
    }

    /// Whether the helper sleeps and the storage's doorbell wakes it.
    pub(super) fn watches(&self) -> bool {
        self.watches.load(Ordering::SeqCst)
    }

    /// Calls `sleep`, which sleeps until the storage's doorbell rings if the helper `watches` it.
    pub(super) fn sleep_watching(&self, watches: bool, sleep: impl FnOnce()) {
        let was_watched = self.watches.swap(watches, Ordering::SeqCst);
        debug_assert!(!was_watched, "one thread helps");
        sleep();
        self.watches.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_helper_watches_only_while_it_sleeps_with_the_doorbell() {
        let helper = Helper::new(None);
        assert!(!helper.watches() && helper.doorbell().is_none());
        for watches in [true, false] {
            let mut seen = None;
            helper.sleep_watching(watches, || seen = Some(helper.watches()));
            assert_eq!(seen, Some(watches));
            assert!(!helper.watches());
        }
    }
}

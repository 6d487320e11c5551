//! [`CopyGuard`] for processors without support in `copy_guard.rs`: it takes an atomic operation.

use super::SignalGuard;
use std::ffi::c_void;

/// Defers the client's signals while it exists.
pub struct CopyGuard(SignalGuard);

impl CopyGuard {
    /// Defers signals from now on. The page is pinned after this.
    pub fn begin() -> CopyGuard {
        CopyGuard(SignalGuard::brief())
    }

    /// Admits waiting signals, between two copies. No page is pinned meanwhile.
    pub fn let_in(&self) {
        self.0.except(|| {});
    }
}

/// The signal guard covers this.
pub(super) fn is_copying() -> bool {
    false
}

/// # Safety
/// [`is_copying`].
pub(super) unsafe fn defer_until_copied(_context: *mut c_void) {
    unreachable!("no thread has a mark");
}

/// Nobody notes it.
pub fn has_raised_copy() -> bool {
    false
}

/// Runs a handler of the client.
pub(super) fn outside_of_copies(body: impl FnOnce()) {
    body();
}

//! Threads of the library.

use crate::sys::leak_check::uncounted;
use std::io;
use std::thread::{Builder, JoinHandle};
use vgasnet_conduit::blocking_signals;

/// Starts a thread of the library, which takes no signals: they are the client's.
///
/// # Errors
/// The system has no thread left.
pub(super) fn start<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let thread = Builder::new().name(name.into());
    blocking_signals(|| uncounted(|| thread.spawn(body)))
}

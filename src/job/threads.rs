//! Threads of the library.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};
use vgasnet_conduit::blocking_signals;
use vgasnet_sys::leak_check::uncounted;

/// Starts a thread of the library. It takes no signals, which are the client's.
///
/// # Errors
/// The system has no thread left. Or the process is ending and has dropped the calling thread's locals: then Rust 1.85
/// panics.
pub(super) fn start<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let thread = Builder::new().name(name.into());
    let spawn = AssertUnwindSafe(|| thread.spawn(body));
    let ends = |_| Err(io::Error::other("the process ends"));
    blocking_signals(|| uncounted(|| catch_unwind(spawn).unwrap_or_else(ends)))
}

//! Threads of the library.

use std::thread::{Builder, JoinHandle};
use vgasnet_mpi_front::blocking_signals;

/// Starts a thread. Signals of the process are the program's: the thread gets none.
///
/// # Errors
/// The system has no further thread.
pub fn start(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    blocking_signals(|| Builder::new().name(name.to_owned()).spawn(run))
}

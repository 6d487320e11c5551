//! What wraps the system: waiting in the kernel, the client's signals, the library's heap.

mod allocator;
pub mod client_signals;
mod deferred_signals;
pub mod futex;
mod thread_table;

pub use deferred_signals::{SignalGuard, Signalproof, is_disturbed};
pub use thread_table::{PLACES, name, places};

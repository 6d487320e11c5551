//! What wraps the system: waiting in the kernel, and the client's signals.

pub mod client_signals;
mod deferred_signals;
pub mod futex;
mod thread_table;

pub use deferred_signals::{SignalGuard, Signalproof, is_disturbed};
pub use thread_table::{PLACES, name, places};

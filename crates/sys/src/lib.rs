//! Wrappers of the system: waiting in the kernel, the client's signals, its input and output, functions interposed
//! before the C library's, forked children, the library's heap, debuggers and checkers.

pub mod alternate_stack;
mod cancellation;
pub mod children;
mod client_calls;
pub mod client_signals;
// AddressSanitizer sets and removes stacks of threads whose instrumented code it no longer serves.
#[cfg(not(asan))]
mod client_stacks;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod copy_guard;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[path = "copy_guard_atomic.rs"]
mod copy_guard;
mod copying;
mod deferred_signals;
mod errno;
mod frames;
pub mod futex;
pub mod heap;
#[cfg(test)]
mod in_child;
pub mod interposed;
pub mod io;
pub mod leak_check;
mod loaded_objects;
mod loader_hooks;
mod locks;
mod mapped;
mod next_definition;
pub mod observers;
mod passed_on;
mod peer_memory;
#[cfg(asan)]
mod poisoned_heap;
pub mod signal_changes;
mod signal_functions;
pub mod signal_mask;
pub mod standard_streams;
mod thread_end;
mod thread_table;
// AddressSanitizer's function to create threads has to come first.
#[cfg(not(asan))]
mod threads;

pub use cancellation::CancellationGuard;
pub use client_calls::{call_client, tell_of_exceptions};
pub use copy_guard::{CopyGuard, has_raised_copy};
pub use copying::copy_bytes;
pub use deferred_signals::{SignalGuard, Signalproof, is_disturbed, was_disturbed};
pub use errno::{keep_errno, last_errno, set_errno};
pub use mapped::is_mapped;
pub use peer_memory::{Process, ReadError, let_descendants_read};
pub use thread_end::at_thread_end;
pub use thread_table::{THREAD_TABLE_LEN, places_of_thread, thread_key};

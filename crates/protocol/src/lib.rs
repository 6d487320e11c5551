//! The state machines of vgasnet: events in, actions out, no I/O.
//!
//! The crate has no clock, thread, lock or unsafe code either. It is built without the standard library, as are its
//! dependencies, so the compiler enforces this. A driver (the engine, the simulations, the exploration) passes events
//! to a machine and carries its actions out.
//!
//! - [`coherence`]: the copies of pages, and the right to write.
//! - [`barrier`] and [`collectives`]: synchronization and collective data movement.
//! - [`file_locks`]: locks of bytes of shared files.
//! - [`streams`] and [`replacement`]: the pages to read ahead, and the frame to evict.
//! - [`shipping`]: whether a small operation moves its page, or ships its bytes; [`byte_message`] has the message
//!   layouts.
//! - [`guests`]: pages kept by a rank for another, in unused frames.
//! - [`get_cache`]: the cache of small gets of bytes not written meanwhile; [`writes`] detects writes.
//! - [`wire`]: messages as bytes; [`active_message`] has the layouts of Active Messages.
//! - [`Limits`], [`Violation`], [`PROTOCOL_VERSION`]: messages of peers are not trusted.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod active_message;
pub mod barrier;
pub mod byte_message;
pub mod coherence;
pub mod collectives;
pub mod file_locks;
pub mod file_message;
pub mod get_cache;
pub mod guests;
mod hosts;
mod limits;
mod loan;
mod page_id;
mod page_map;
mod rank;
mod rank_state;
pub mod replacement;
pub mod shipping;
mod spaces;
pub mod streams;
pub mod strides;
mod version;
mod violation;
pub mod wire;
pub mod writes;

pub use hosts::Hosts;
pub use limits::{Limits, RankSizes};
pub use loan::LoanMessage;
pub use page_id::Space;
pub use rank::Rank;
pub use rank_state::RankState;
pub use spaces::{Spaces, Stripes};
pub use version::PROTOCOL_VERSION;
pub use violation::Violation;

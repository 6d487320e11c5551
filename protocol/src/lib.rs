//! The state machines of vgasnet: events in, actions out, no I/O.
//!
//! There is no clock, thread, lock or unsafe code in here either. The crate is built without the standard library and
//! depends on no crate that has it, so the compiler enforces that. A driver (the engine, the simulations, the
//! exploration) hands events to a machine and carries its actions out.
//!
//! - [`coherence`]: the copies of pages, and the right to write.
//! - [`barrier`] and [`collectives`]: how ranks meet, and how they move data together.
//! - [`file_locks`]: locks of bytes of shared files.
//! - [`streams`] and [`replacement`]: the pages that will be read next, and the frame to give up.
//! - [`shipping`]: whether a small operation has its page moved, or its bytes read or written where the page is;
//!   [`byte_message`] has the layouts of the messages for that.
//! - [`guests`]: pages that a rank keeps for another, in frames that it does not use.
//! - [`get_cache`]: the cache of small gets of bytes that nobody writes meanwhile; [`writes`] tells whether somebody has.
//! - [`wire`]: messages as bytes; [`active_message`] has the layouts of Active Messages.
//! - [`ordered`]: maps and sets in order, which most of them have.
//! - [`Limits`], [`Nonsense`], [`PROTOCOL_VERSION`]: messages of peers are not believed.

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
mod nonsense;
pub mod ordered;
mod page_map;
mod rank;
mod rank_state;
pub mod replacement;
pub mod shipping;
mod spaces;
pub mod streams;
mod version;
pub mod wire;
pub mod writes;

pub use hosts::Hosts;
pub use limits::{Limits, RankSizes};
pub use loan::LoanMessage;
pub use nonsense::Nonsense;
pub use rank::Rank;
pub use rank_state::RankState;
pub use spaces::{Space, Spaces, Stripes};
pub use version::PROTOCOL_VERSION;

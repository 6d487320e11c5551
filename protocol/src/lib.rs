//! The state machines of vgasnet: what a rank answers to what happens, without I/O.
//!
//! Nothing here does I/O or knows a clock, a thread, a lock or unsafe code. The crate is built without the standard library
//! and depends on no crate that has it, so the compiler enforces that. Whoever drives a machine (the engine, the
//! simulations, the exploration, the model of the cluster) hands it events and carries its actions out.
//!
//! - [`coherence`]: who holds which copy of a page, and who may write.
//! - [`barrier`] and [`collectives`]: what ranks tell each other to meet, and to move data together.
//! - [`streams`] and [`replacement`]: which pages will be read next, and which frame to give up.
//! - [`wire`]: messages as bytes, with layouts that `zerocopy` derives; [`active_message`] has those of Active Messages.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod active_message;
pub mod barrier;
pub mod coherence;
pub mod collectives;
mod rank;
pub mod replacement;
pub mod streams;
pub mod wire;

pub use rank::Rank;

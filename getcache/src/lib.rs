//! A cache of small remote gets that threads share: the state machine of [`vgasnet_protocol::get_cache`] behind a lock, and hits without it.
//!
//! - [`GetCache`]: gets, fills, invalidation. [`Ask`]: what a get asks for; [`Fill`]: where the bytes go that it fetches.
//! - [`Memory`]: where it has its bytes; [`Locked`]: the lock that it uses.
//!
//! A hit says which key it reads, finds an entry by the index, compares its key, copies, and says that it is done. Nobody waits for
//! readers: what is read is not evicted, and what is dropped while it is read is freed later.

#![cfg_attr(all(loom, test), allow(dead_code, reason = "the model has tables and words only"))]

#[cfg(not(all(loom, test)))]
mod ask;
#[cfg(not(all(loom, test)))]
mod barrier;
#[cfg(not(all(loom, test)))]
mod cache;
#[cfg(not(all(loom, test)))]
mod driver;
mod entry;
mod locked;
mod memory;
#[cfg(all(loom, test))]
mod model;
mod readers;
mod shared;
mod sync;
mod table;
#[cfg(not(all(loom, test)))]
mod threads;

#[cfg(not(all(loom, test)))]
pub use ask::{Ask, Fill, Outcome};
#[cfg(not(all(loom, test)))]
pub use cache::{GetCache, State};
pub use locked::Locked;
pub use memory::{CHUNK_ALIGN, Heap, Memory, TellingHeap};
pub use vgasnet_protocol::get_cache::{GENERATION_PLACES, Key, Limits, MEMORY_MAX, Stats};

//! A cache of small remote gets shared by threads: the state machine of [`vgasnet_protocol::get_cache`] behind a lock,
//! and hits without it.
//!
//! - [`GetCache`]: gets, fills, invalidation. [`Ask`]: a get's request; [`Fill`]: the place for its fetched bytes.
//! - [`Memory`]: the source of memory; [`Locked`]: the lock.
//!
//! A hit announces its key, finds an entry in the index, compares the key, copies, and announces the end. Nobody waits
//! for readers: an entry being read is not evicted, and one dropped meanwhile is freed later.

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
pub use cache::{CacheState, GetCache};
pub use locked::Locked;
pub use memory::{CHUNK_ALIGN, Heap, Memory, TellingHeap};
pub use vgasnet_protocol::get_cache::{GENERATION_PLACES, Key, Limits, MEMORY_MAX, Stats};

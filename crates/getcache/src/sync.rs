//! The atomics, replaceable by a model checker's.
//!
//! Run its tests by `RUSTFLAGS="--cfg loom" cargo test -p vgasnet-getcache --lib --release model`.

#[cfg(all(loom, test))]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

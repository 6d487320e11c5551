//! `libvgasnet-mpi-cache.so`: a cache of `MPI_Get` for unmodified MPI programs.
//!
//! It is loaded before MPI and defines MPI's functions by their names ([`calls`], [`news_calls`]). Each call goes on to
//! the next definition of its name, MPI's own or another library's. `docs/reference/cached-gets.md` documents it for
//! users.
//!
//! - [`gets`] serves gets from the [`store`]; [`completion`] files completed gets; [`writers`] drops overwritten
//!   entries; [`reissue`] asks MPI once more for bytes that were overwritten.
//! - [`window`] tracks open epochs and targets with operations in flight; [`pending`] tracks the gets in flight.
//! - [`trial`] measures whether the cache makes a window's gets faster, and else leaves them to MPI.
//! - [`news`] notes when this process may have learned from another one. In modes checked and told no entry from before
//!   is served, unless [`words`] prove that nobody wrote: in mode told, writers raise these numbers and readers read
//!   them.
//!
//! MPI's macros and types of handles stay in C (`layer.c`, `handles.c`, `words.c`); in Rust a handle is 8 bytes.

#![cfg(feature = "link")]
// Printing panics if stderr cannot be written.
#![deny(clippy::print_stderr)]

mod atoms;
mod buffers;
mod calls;
mod completion;
mod creation;
mod ffi;
mod gets;
mod left;
mod lines;
mod locking;
mod meter;
mod near;
mod news;
mod news_calls;
mod origins;
mod pending;
mod pools;
mod progress;
mod reissue;
mod report;
mod requests;
mod settings;
mod store;
mod trial;
mod window;
mod windows;
mod words;
mod writers;

/// Prefix of the lines for the user.
const LIBRARY: &str = "vgasnet-mpi-cache";

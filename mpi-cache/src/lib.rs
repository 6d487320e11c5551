//! `libvgasnet-mpi-cache.so`: a cache of `MPI_Get` for MPI programs that know nothing of it.
//!
//! It is loaded before MPI, and defines functions of MPI's by their names ([`calls`], [`fortran`]). Each goes on to the next definition of
//! its name, MPI's own or another library's. What the user sees of it is in `docs/reference/cached-gets.md`.
//!
//! - [`gets`] serves gets from the [`store`]; [`completion`] files what has come; [`writers`] drops what is overwritten.
//! - [`window`] knows which epochs are open and which targets have operations under way; [`pending`] knows the gets whose bytes are on
//!   their way.
//! - [`news`] knows when this process may have learned from another one. In modes checked and told nothing that was read before is served
//!   after that, unless [`words`] prove that nobody wrote: numbers that writers raise and readers look at, in mode told.
//!
//! MPI's handles and macros stay in C (`layer.c`, `handles.c`, `words.c`); [`ffi`] has them as integers.

#![cfg(feature = "link")]
// It panics where stderr cannot be written.
#![deny(clippy::print_stderr)]

mod calls;
mod completion;
mod creation;
mod ffi;
mod fortran;
mod gets;
mod near;
mod news;
mod news_c;
mod news_fortran;
mod origins;
mod pending;
mod pools;
mod progress;
mod report;
mod requests;
mod settings;
mod store;
mod window;
mod windows;
mod words;
mod worth;
mod writers;

/// The name by which lines for the user begin.
const LIBRARY: &str = "vgasnet-mpi-cache";

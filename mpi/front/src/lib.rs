//! Shared by the libraries loaded before MPI: they define MPI's functions by their names, and pass each call on to the
//! next definition, MPI's own or another library's.
//!
//! Integers and addresses from MPI's callers are unsafe to follow. [`Argument`] and [`Handle`] carry the callers'
//! promises: `calls!` makes the arguments of each call, by the kinds of its parameters ([`kind`]), and the rest of the
//! code reads them safely. A handle is 8 bytes here.
//!
//! Each dependent library has a constant `LIBRARY` at its root, the prefix of its lines for the user.

#![cfg(feature = "link")]
// Printing panics if stderr cannot be written.
#![deny(clippy::print_stderr)]

mod arguments;
mod calls;
mod handles;
pub mod kind;
mod languages;
mod next;
mod passing;
mod say;

pub use arguments::{Argument, RequestArray};
pub use calls::c_string;
pub use handles::{Handle, HandleKind, OfFortran, info};
pub use languages::{C, Fortran, Language, RequestRoom};
pub use next::{Next, is_its_mpi, resolve};
pub use passing::{Passing, Serving, end};
pub use say::{say, say_by_launcher, say_other_mpi};
pub use vgasnet_conduit::{blocking_signals, environment, forked, keeping_handlers, whole_file};

/// MPI's success, by the standard.
pub const SUCCESS: std::ffi::c_int = 0;

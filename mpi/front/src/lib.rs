//! Shared by the libraries loaded before MPI: they define MPI's functions by their names, and pass each call on to the
//! next definition, MPI's own or another library's.
//!
//! A handle is 8 bytes here. Each dependent library has a constant `LIBRARY` at its root, the prefix of its lines for
//! the user.

#![cfg(feature = "link")]
// Printing panics if stderr cannot be written.
#![deny(clippy::print_stderr)]

mod arguments;
mod calls;
mod handles;
mod next;
mod passing;
mod say;

pub use arguments::{Arguments, C, Fortran};
pub use calls::c_string;
pub use handles::{OfFortran, info};
pub use next::{Next, is_its_mpi, resolve};
pub use passing::{Passing, Serving, end};
pub use say::say;
pub use vgasnet_conduit::{environment, keeping_handlers, whole_file};

/// MPI's success, by the standard.
pub const SUCCESS: std::ffi::c_int = 0;

//! `libvgasnet-mpi-io.so`: shared files under MPI programs that know nothing of vgasnet.
//!
//! It is loaded before MPI, and defines functions of MPI's by their names ([`calls`], [`fortran`]). Those about files that a hint or
//! `VGASNET_MPI_FILES` names are served by vgasnet, which starts in `MPI_Init`; all others go on to the next definition of their name.
//! What the user sees of it is in `docs/reference/files.md`.
//!
//! - [`opening`] says which files are cached, by [`patterns`] and [`settings`], [`files`] knows them, and [`sharing`] those that are open twice; [`access`] reads and writes, [`control`] does all else.
//! - [`view`] says where the bytes of a view are, [`layout`], [`types`] and [`named`] where those of a datatype; [`transfer`] brings the two together.
//! - [`queue`] does what a program does not wait for.
//!
//! MPI's handles and macros stay in C (`layer.c`, `types.c`); [`ffi`] has them as integers. [`vgasnet`] is vgasnet's C interface.

#![cfg(feature = "link")]
// It panics where stderr cannot be written.
#![deny(clippy::print_stderr)]

mod access;
#[macro_use]
mod accesses;
mod calls;
mod claims;
mod control;
mod descriptors;
mod direct;
mod errors;
mod ffi;
mod files;
mod fortran;
#[cfg(open_mpi)]
mod fortran_accesses;
mod job;
mod layout;
mod named;
mod opening;
mod patterns;
mod queue;
mod rescue;
mod settings;
mod sharing;
mod through;
mod transfer;
mod types;
mod vgasnet;
mod view;
mod watch;

/// The name by which lines for the user begin.
const LIBRARY: &str = "vgasnet-mpi-io";

/// Shows a line to the user.
fn say(line: impl std::fmt::Display) {
    vgasnet_mpi_front::say(LIBRARY, line);
}

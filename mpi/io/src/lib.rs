//! `libvgasnet-mpi-io.so`: shared files for unmodified MPI programs.
//!
//! It is loaded before MPI and defines MPI's functions by their names ([`calls`], [`accesses`]). vgasnet, started in
//! `MPI_Init`, serves the calls about files named by a hint or by `VGASNET_MPI_FILES`. All other calls go on to the
//! next definition of their name. `docs/reference/files.md` documents it for users.
//!
//! - [`opening`] decides which files are cached, by [`patterns`] and [`settings`]; [`cached_files`] holds them, and
//!   [`sharing`] handles files opened twice ([`hold`]). [`access`] reads and writes; [`control`] does everything else.
//! - [`view`] locates the bytes of a view, and [`layout`], [`types`] and [`named`] the bytes of a datatype;
//!   [`transfer`] combines the two.
//! - [`queue`] runs non-blocking operations, by [`threads`] of the library.
//! - [`job`] starts and ends vgasnet, and [`running`] tells whether it runs.
//! - [`rescue`] writes the files when a process ends early, by one of the [`signals`] or the functions in [`ends`], which
//!   ask it by a pipe ([`asking`]). An [`alternate_stack`] serves handlers whose thread has used up its own.
//! - [`claims`] finds other handles of a file by [`locks`], first by a [`look`], and forked children keep none;
//!   [`whole_locks`] keeps the program's locks off them.
//!   [`company`] bars caching, and [`watch`] and [`through`] hand files over.
//!
//! MPI's macros and types of handles stay in C (`layer.c`, `types.c`); in Rust a handle is 8 bytes. [`ffi`] and
//! [`ffi_types`] call C; [`vgasnet`] is vgasnet's C interface.

#![cfg(feature = "link")]
// Printing panics if stderr cannot be written.
#![deny(clippy::print_stderr)]

mod access;
mod accesses;
mod alternate_stack;
mod asking;
mod cached_files;
mod calls;
mod claims;
mod closing;
mod company;
mod control;
mod descriptors;
mod direct;
mod ends;
mod errors;
mod ffi;
mod ffi_types;
mod hold;
mod job;
mod layout;
mod locks;
mod look;
mod named;
mod next_function;
mod opening;
mod operation;
mod patterns;
mod queue;
mod rescue;
mod running;
mod settings;
mod sharing;
mod signals;
mod threads;
mod through;
mod transfer;
mod types;
mod vgasnet;
mod view;
mod watch;
mod whole_locks;

/// Prefix of the lines for the user.
const LIBRARY: &str = "vgasnet-mpi-io";

/// Shows a line to the user.
fn say(line: impl std::fmt::Display) {
    vgasnet_mpi_front::say(LIBRARY, line);
}

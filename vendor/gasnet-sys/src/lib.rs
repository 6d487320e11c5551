//! Bindings to the GASNet that is installed, EX or 1, as far as vgasnet uses it: the functions of `shim.h`, which is
//! their documentation.
//!
//! The feature `link` turns the crate on. The environment of the build then says which GASNet:
//! - `GASNET_PC=gasnet-ibv-par`, a package that pkg-config knows (it heeds `PKG_CONFIG_PATH`), or the path of a `.pc` file; or
//! - `GASNET_ROOT=/prefix` and `GASNET_CONDUIT=ibv`.

#![cfg(feature = "link")]

// The names are C's, and shim.h documents them.
#[expect(missing_docs, non_camel_case_types)]
mod bindings {
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

pub use bindings::*;

/// How GASNet's clients are compiled: a compiler and options.
pub const COMPILE: &str = env!("VGASNET_GASNET_COMPILE");

/// The link flags of GASNet's clients.
pub const LIBRARIES: &str = env!("VGASNET_GASNET_LIBRARIES");

/// The launcher of the MPI that GASNet uses, if it does.
pub const MPIEXEC: &str = env!("VGASNET_GASNET_MPIEXEC");

/// The directory of GASNet's launchers.
pub const PROGRAMS: &str = env!("VGASNET_GASNET_BIN");

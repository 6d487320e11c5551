//! The C interface in the form users have: C and C++ programs, compiled against the header and the library, run as
//! jobs.

mod abi;
mod bad_input;
mod compat;
mod declarations;
mod disk;
mod dlopened;
#[cfg(not(any(feature = "mpi", feature = "gasnet")))]
mod documents;
mod ex;
mod ex_bytes;
mod ex_tools;
mod examples;
mod exits;
mod file_systems;
mod files;
mod fortran;
#[cfg(feature = "gasnet")]
mod gasnet;
mod header;
#[cfg(feature = "mpi")]
mod hosts;
mod idle_pools;
mod install;
mod install_cmake;
mod install_ex;
mod install_libraries;
mod install_pages;
mod local;
mod misuse;
#[cfg(feature = "mpi")]
mod mpi;
mod programs;
mod python;
mod refused;
mod sanitizers;
mod scripts;
mod secure;
mod stats;
mod support;
mod tools;
mod uninstall;
mod vis_coll;
mod wrapped;

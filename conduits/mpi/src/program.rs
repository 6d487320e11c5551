//! The functions by which a program starts and ends MPI, in front of MPI's own. A program that uses MPI itself may start it before or
//! after vgasnet, and need not know that threads of the library call MPI.

use std::ffi::{c_char, c_int};
use std::ptr;

use crate::{ffi, network};

/// Initialises MPI with its highest thread level. Does nothing if vgasnet has started MPI.
///
/// # Safety
/// As for MPI's.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "MPI's name")]
pub unsafe extern "C" fn MPI_Init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int {
    // SAFETY: the arguments are as for `MPI_Init`, and `provided` may be null.
    unsafe { ffi::init(argc, argv, ptr::null_mut()) }
}

/// As [`MPI_Init`]; says which thread level the program has.
///
/// # Safety
/// As for MPI's.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "MPI's name")]
pub unsafe extern "C" fn MPI_Init_thread(
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
    _required: c_int,
    provided: *mut c_int,
) -> c_int {
    // SAFETY: the arguments are as for `MPI_Init_thread`.
    unsafe { ffi::init(argc, argv, provided) }
}

/// Ends MPI, when all ranks' programs are through.
///
/// # Safety
/// As for MPI's.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "MPI's name")]
pub unsafe extern "C" fn MPI_Finalize() -> c_int {
    vgasnet_mpi_before_finalize();
    // SAFETY: as the caller says.
    unsafe { ffi::finalize() }
}

/// Waits until all ranks' programs are through, after which no thread of the library calls MPI. A library that stands before MPI, and has
/// loaded this one, calls it in its `MPI_Finalize`: MPICH ends while threads wait for its locks, if only its attributes are asked.
#[unsafe(no_mangle)]
pub extern "C" fn vgasnet_mpi_before_finalize() {
    network::on_end();
}

/// The process ends, and the program has not called `MPI_Finalize`: MPI is to see that as it would without the library, so this rank waits
/// for no other one, and does not end MPI. Such a library calls it at exit.
#[unsafe(no_mangle)]
pub extern "C" fn vgasnet_mpi_abandon() {
    network::abandon();
}

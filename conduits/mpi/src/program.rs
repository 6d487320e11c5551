//! MPI's functions for start and end, in front of MPI's own. A program using MPI may start it before or after vgasnet,
//! and need not know of the library's threads calling MPI.

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

/// As [`MPI_Init`]; returns the program's thread level.
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
    // SAFETY: the program has called `MPI_Finalize`, on the thread that has initialised MPI.
    unsafe { ffi::finalize() }
}

/// Waits until all ranks' programs are through; afterwards no thread of the library calls MPI. A library interposed
/// before MPI that has loaded this one calls it in its `MPI_Finalize`: with MPI's attribute callbacks alone, MPICH ends
/// while threads wait for its locks.
#[unsafe(no_mangle)]
pub extern "C" fn vgasnet_mpi_before_finalize() {
    network::on_end();
}

/// The process ends without a call of `MPI_Finalize`: MPI must see the same as without the library, so this rank waits
/// for no other one, and does not end MPI. An interposed library calls it at exit.
#[unsafe(no_mangle)]
pub extern "C" fn vgasnet_mpi_abandon() {
    network::abandon();
}

//! MPI's handles, which are integers or pointers, as 8 bytes.

use std::ffi::{CStr, c_char, c_int};

/// Gives the handle of an integer of Fortran.
pub type OfFortran = unsafe extern "C" fn(c_int) -> u64;

unsafe extern "C" {
    fn vgasnet_mpi_front_info(info: u64, key: *const c_char, value: *mut c_char, bytes: c_int) -> c_int;
}

/// A handle from an argument. If handles are shorter than a register, the upper bytes are undefined.
#[inline(always)]
pub(crate) fn handle(argument: usize) -> u64 {
    if cfg!(open_mpi) { argument as u64 } else { u64::from(argument as u32) }
}

/// Reads the handle at an address. Not for handles of files, which are pointers in every MPI.
///
/// # Safety
///
/// One of MPI's handles is at the address.
#[inline]
pub(crate) unsafe fn handle_at(place: usize) -> u64 {
    // SAFETY: the caller guarantees a handle. MPI's handles are pointers in Open MPI and integers elsewhere (checked in
    // `front.c`).
    unsafe { if cfg!(open_mpi) { *(place as *const u64) } else { u64::from(*(place as *const u32)) } }
}

/// The value of an info's key.
pub fn info(info: u64, key: &CStr) -> Option<String> {
    let mut value: [c_char; 256] = [0; 256];
    // SAFETY: the info is the program's; the value has 256 bytes.
    let found = unsafe { vgasnet_mpi_front_info(info, key.as_ptr(), value.as_mut_ptr(), 256) } != 0;
    // SAFETY: the layer terminates the string.
    found.then(|| unsafe { CStr::from_ptr(value.as_ptr()) }.to_string_lossy().into_owned())
}

/// Distance between handles in an array, in bytes.
pub(crate) const HANDLE_BYTES: usize = if cfg!(open_mpi) { 8 } else { 4 };

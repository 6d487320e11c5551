//! MPI's handles, which are integers or pointers, as 8 bytes.

#[cfg(open_mpi)]
use std::ffi::c_void;
use std::ffi::{CStr, c_char, c_int};

unsafe extern "C" {
    fn vgasnet_mpi_front_info(info: u64, key: *const c_char, value: *mut c_char, bytes: c_int) -> c_int;
    fn vgasnet_mpi_front_win_of(handle: c_int) -> u64;
    fn vgasnet_mpi_front_file_of(handle: c_int) -> u64;
    fn vgasnet_mpi_front_file_to(handle: u64) -> c_int;
    fn vgasnet_mpi_front_comm_of(handle: c_int) -> u64;
    fn vgasnet_mpi_front_info_of(handle: c_int) -> u64;
    fn vgasnet_mpi_front_group_of(handle: c_int) -> u64;
    fn vgasnet_mpi_front_request_of(handle: c_int) -> u64;
    fn vgasnet_mpi_front_type_of(handle: c_int) -> u64;
    fn vgasnet_mpi_front_op_of(handle: c_int) -> u64;
    #[cfg(open_mpi)]
    fn vgasnet_mpi_front_request_to(place: *const c_void) -> c_int;
}

/// A handle from an argument. If handles are shorter than a register, the upper bytes are undefined.
#[inline]
pub fn handle(argument: usize) -> u64 {
    if cfg!(open_mpi) { argument as u64 } else { u64::from(argument as u32) }
}

/// Reads the handle at an address. Not for handles of files, which are pointers in every MPI.
///
/// # Safety
///
/// One of MPI's handles is at the address.
#[inline]
pub unsafe fn handle_at(place: usize) -> u64 {
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
pub const HANDLE_BYTES: usize = if cfg!(open_mpi) { 8 } else { 4 };

macro_rules! of_fortran {
    ($($name:ident $function:ident;)+) => {
        $(/// The handle of this Fortran integer.
        pub fn $name(handle: c_int) -> u64 {
            // SAFETY: MPI looks the number up.
            unsafe { $function(handle) }
        })+
    };
}

of_fortran! {
    win_of vgasnet_mpi_front_win_of;
    file_of vgasnet_mpi_front_file_of;
    comm_of vgasnet_mpi_front_comm_of;
    info_of vgasnet_mpi_front_info_of;
    group_of vgasnet_mpi_front_group_of;
    request_of vgasnet_mpi_front_request_of;
    type_of vgasnet_mpi_front_type_of;
    op_of vgasnet_mpi_front_op_of;
}

/// The Fortran integer of a file.
pub fn file_to_fortran(handle: u64) -> c_int {
    // SAFETY: the file is open, or is MPI's null constant.
    unsafe { vgasnet_mpi_front_file_to(handle) }
}

/// The Fortran integer of the request at an address.
///
/// # Safety
///
/// A request is at the address.
#[cfg(open_mpi)]
pub unsafe fn request_to_fortran(place: usize) -> c_int {
    // SAFETY: as the caller says.
    unsafe { vgasnet_mpi_front_request_to(place as *const c_void) }
}

//! The arguments of MPI's functions, as C and Fortran pass them. Both pass addresses and words, here `usize`.

use crate::SUCCESS;
use crate::handles::{HANDLE_BYTES, OfFortran, handle, handle_at};
use std::ffi::{CStr, c_char, c_int, c_void};

unsafe extern "C" {
    fn vgasnet_mpi_front_file_of(handle: c_int) -> u64;
    fn vgasnet_mpi_front_file_to(handle: u64) -> c_int;
    fn vgasnet_mpi_front_request_of(handle: c_int) -> u64;
    fn vgasnet_mpi_front_request_to(place: *const c_void) -> c_int;
}

/// Declares how each kind of handle is read.
macro_rules! handles {
    ($($name:ident $read:ident $of_fortran:ident;)+) => {$(
        /// A handle.
        #[inline(always)]
        fn $name(argument: usize) -> u64 {
            unsafe extern "C" {
                fn $of_fortran(handle: c_int) -> u64;
            }
            Self::$read(argument, $of_fortran)
        }
    )+};
}

/// Reads and stores the arguments of a language's callers. The caller of MPI has supplied them.
pub trait Arguments {
    /// An `int`.
    fn int(argument: usize) -> c_int;
    /// A displacement, an offset or a size of a file.
    fn long(argument: usize) -> i64;
    /// A number of elements, or a window's displacement unit.
    fn count(argument: usize) -> i64;
    /// A string. Fortran passes its length, and blanks behind it.
    fn string<'a>(argument: usize, len: usize) -> &'a [u8];
    /// A handle. Fortran's integer is converted by the function.
    fn handle(argument: usize, of_fortran: OfFortran) -> u64;
    /// The handle at an address passed to MPI for it.
    fn handle_at(place: usize, of_fortran: OfFortran) -> u64;
    /// A file, whose handle is a pointer in every MPI.
    fn file(argument: usize) -> u64;
    /// The file at an address passed to MPI for it.
    fn file_at(place: usize) -> u64;
    /// Stores a file's handle.
    fn set_file(place: usize, file: u64);
    /// The handle of a request in an array.
    fn request_at(array: usize, index: usize) -> u64;
    /// Calls a function that stores a request at the address of a C handle, and stores the request for the caller. If
    /// the function calls MPI instead, MPI stores it.
    fn set_request(place: usize, make: impl FnOnce(usize) -> c_int) -> c_int;

    handles! {
        win handle vgasnet_mpi_front_win_of;
        win_at handle_at vgasnet_mpi_front_win_of;
        comm handle vgasnet_mpi_front_comm_of;
        group handle vgasnet_mpi_front_group_of;
        info handle vgasnet_mpi_front_info_of;
        info_at handle_at vgasnet_mpi_front_info_of;
        datatype handle vgasnet_mpi_front_type_of;
        op handle vgasnet_mpi_front_op_of;
        request handle vgasnet_mpi_front_request_of;
    }
}

/// C, with counts of 4 or of 8 bytes. The upper half of an `int` argument is undefined.
#[derive(Debug)]
pub struct C<const IS_LARGE: bool>;

impl<const IS_LARGE: bool> Arguments for C<IS_LARGE> {
    #[inline(always)]
    fn int(argument: usize) -> c_int {
        argument as c_int
    }

    #[inline(always)]
    fn long(argument: usize) -> i64 {
        argument as i64
    }

    #[inline(always)]
    fn count(argument: usize) -> i64 {
        if IS_LARGE { argument as i64 } else { i64::from(argument as c_int) }
    }

    fn string<'a>(argument: usize, _len: usize) -> &'a [u8] {
        if argument == 0 {
            return b"";
        }
        // SAFETY: the caller has a string there.
        unsafe { CStr::from_ptr(argument as *const c_char) }.to_bytes()
    }

    #[inline(always)]
    fn handle(argument: usize, _of_fortran: OfFortran) -> u64 {
        handle(argument)
    }

    #[inline]
    fn handle_at(place: usize, _of_fortran: OfFortran) -> u64 {
        // SAFETY: a handle is there.
        unsafe { handle_at(place) }
    }

    fn file(argument: usize) -> u64 {
        argument as u64
    }

    fn file_at(place: usize) -> u64 {
        // SAFETY: a file's handle is there.
        unsafe { *(place as *const u64) }
    }

    fn set_file(place: usize, file: u64) {
        // SAFETY: the caller has room for a file's handle.
        unsafe { *(place as *mut u64) = file };
    }

    #[inline]
    fn request_at(array: usize, index: usize) -> u64 {
        Self::handle_at(array + index * HANDLE_BYTES, vgasnet_mpi_front_request_of)
    }

    #[inline]
    fn set_request(place: usize, make: impl FnOnce(usize) -> c_int) -> c_int {
        make(place)
    }
}

/// Fortran: every argument is an address. Handles are integers; `mpi_f08` wraps them in structs of one integer.
#[derive(Debug)]
pub struct Fortran;

impl Arguments for Fortran {
    fn int(argument: usize) -> c_int {
        // SAFETY: Fortran passes an integer.
        unsafe { *(argument as *const c_int) }
    }

    fn long(argument: usize) -> i64 {
        // SAFETY: Fortran passes an integer of kind `MPI_ADDRESS_KIND` or `MPI_OFFSET_KIND`.
        unsafe { *(argument as *const i64) }
    }

    fn count(argument: usize) -> i64 {
        i64::from(Self::int(argument))
    }

    fn string<'a>(argument: usize, len: usize) -> &'a [u8] {
        // SAFETY: Fortran passes a string and its length.
        unsafe { std::slice::from_raw_parts(argument as *const u8, len) }.trim_ascii_end()
    }

    fn handle(argument: usize, of_fortran: OfFortran) -> u64 {
        // SAFETY: MPI looks the number up.
        unsafe { of_fortran(Self::int(argument)) }
    }

    fn handle_at(place: usize, of_fortran: OfFortran) -> u64 {
        Self::handle(place, of_fortran)
    }

    fn file(argument: usize) -> u64 {
        Self::handle(argument, vgasnet_mpi_front_file_of)
    }

    fn file_at(place: usize) -> u64 {
        Self::file(place)
    }

    fn set_file(place: usize, file: u64) {
        // SAFETY: the caller has room for an integer; the file is open, or is MPI's null constant.
        unsafe { *(place as *mut c_int) = vgasnet_mpi_front_file_to(file) };
    }

    fn request_at(array: usize, index: usize) -> u64 {
        Self::request(array + index * size_of::<c_int>())
    }

    fn set_request(place: usize, make: impl FnOnce(usize) -> c_int) -> c_int {
        // Longer than any MPI's handle.
        let mut made: u64 = 0;
        let code = make(&raw mut made as usize);
        if code == SUCCESS && made != 0 {
            // SAFETY: a request is in `made`, and the caller has an integer there.
            unsafe { *(place as *mut c_int) = vgasnet_mpi_front_request_to((&raw const made).cast()) };
        }
        code
    }
}

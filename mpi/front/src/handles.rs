//! MPI's handles, which are integers or pointers, as 8 bytes.

use std::ffi::{CStr, c_char, c_int};
use std::marker::PhantomData;

/// Gives the handle of an integer of Fortran.
pub type OfFortran = unsafe extern "C" fn(c_int) -> u64;

unsafe extern "C" {
    fn vgasnet_mpi_front_info(info: u64, key: *const c_char, value: *mut c_char, bytes: c_int) -> c_int;
}

/// The kind of a handle.
pub trait HandleKind: Copy {
    /// Converts Fortran's integers.
    const OF_FORTRAN: OfFortran;
    /// Whether it is a pointer (checked in `front.c`). Otherwise it is an integer of 4 bytes.
    const IS_POINTER: bool;
}

/// Declares kinds: the function for Fortran's integers, and whether the handle is a pointer.
macro_rules! kinds {
    ($($(#[$about:meta])* $name:ident $of_fortran:ident $is_pointer:expr;)+) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name;

        impl HandleKind for $name {
            const OF_FORTRAN: OfFortran = {
                unsafe extern "C" {
                    fn $of_fortran(handle: c_int) -> u64;
                }
                $of_fortran
            };
            const IS_POINTER: bool = $is_pointer;
        }
    )+};
}

kinds! {
    /// A window.
    Win vgasnet_mpi_front_win_of cfg!(open_mpi);
    /// A communicator.
    Comm vgasnet_mpi_front_comm_of cfg!(open_mpi);
    /// A group of processes.
    Group vgasnet_mpi_front_group_of cfg!(open_mpi);
    /// An info.
    Info vgasnet_mpi_front_info_of cfg!(open_mpi);
    /// A datatype.
    Datatype vgasnet_mpi_front_type_of cfg!(open_mpi);
    /// An operation of an accumulate.
    Op vgasnet_mpi_front_op_of cfg!(open_mpi);
    /// A request.
    Request vgasnet_mpi_front_request_of cfg!(open_mpi);
    /// A file, whose handle is a pointer in every MPI.
    File vgasnet_mpi_front_file_of true;
}

/// A handle by which MPI may be called: the program has passed it to MPI for this kind of object, or MPI has returned
/// it. So a call by the library does nothing with it beyond the program's own call, even if the handle is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Handle<K> {
    bits: u64,
    kind: PhantomData<K>,
}

impl<K> Handle<K> {
    /// A handle of these bits.
    ///
    /// # Safety
    ///
    /// MPI takes the bits for a handle of this kind: a caller of MPI has passed them, or MPI has returned them. While
    /// the library uses the handle, the program does not free its object.
    #[inline(always)]
    pub const unsafe fn new(bits: u64) -> Handle<K> {
        Handle { bits, kind: PhantomData }
    }

    /// The bits: in C the handle itself.
    #[inline(always)]
    pub fn bits(self) -> u64 {
        self.bits
    }
}

/// The value of an info's key.
pub fn info(info: Handle<Info>, key: &CStr) -> Option<String> {
    let mut value: [c_char; 256] = [0; 256];
    // SAFETY: the handle is an info's; the key ends with a zero; the value has the 256 bytes passed on.
    let found = unsafe { vgasnet_mpi_front_info(info.bits(), key.as_ptr(), value.as_mut_ptr(), 256) } != 0;
    // SAFETY: the layer terminates the string.
    found.then(|| unsafe { CStr::from_ptr(value.as_ptr()) }.to_string_lossy().into_owned())
}

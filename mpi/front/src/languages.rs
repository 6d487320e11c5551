//! The languages of MPI's callers. C and Fortran pass addresses and words, here `usize`.

use crate::SUCCESS;
use crate::handles::{File, Handle, HandleKind, Request};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;

unsafe extern "C" {
    fn vgasnet_mpi_front_file_to(handle: u64) -> c_int;
    fn vgasnet_mpi_front_request_to(place: *const c_void) -> c_int;
}

/// Room for a request in C's form.
#[derive(Debug)]
pub struct RequestRoom<'a> {
    place: *mut c_void,
    of: PhantomData<&'a mut u64>,
}

impl RequestRoom<'_> {
    /// Its address.
    pub fn as_ptr(&self) -> *mut c_void {
        self.place
    }
}

/// Reads and stores the words passed by a language's callers. [`crate::Argument`] does so by the parameters' kinds.
pub trait Language: Copy {
    /// Distance between requests in an array, in bytes.
    const REQUEST_BYTES: usize;

    /// An `int`.
    ///
    /// # Safety
    ///
    /// MPI's caller has passed the word for an `int`. In Fortran it is the address of a readable one.
    unsafe fn int(word: usize) -> c_int;

    /// A number of 8 bytes.
    ///
    /// # Safety
    ///
    /// MPI's caller has passed the word for a number of 8 bytes. In Fortran it is the address of a readable one.
    unsafe fn long(word: usize) -> i64;

    /// A number of elements.
    ///
    /// # Safety
    ///
    /// MPI's caller has passed the word for a count of the call's size. In Fortran it is the address of a readable one.
    unsafe fn count(word: usize) -> i64;

    /// A text. Fortran passes its length, and blanks behind it.
    ///
    /// # Safety
    ///
    /// MPI's caller has a text at the address, and does not change it during `'call`. In C it ends with a zero, or the
    /// address is null. In Fortran it has `len` bytes.
    unsafe fn text<'call>(word: usize, len: usize) -> &'call [u8];

    /// A handle.
    ///
    /// # Safety
    ///
    /// MPI's caller has passed the word for a handle of this kind. In Fortran it is the address of a readable integer.
    unsafe fn handle<K: HandleKind>(word: usize) -> Handle<K>;

    /// The handle at an address.
    ///
    /// # Safety
    ///
    /// The address is for a handle of this kind, and MPI or its caller has stored one there.
    unsafe fn handle_at<K: HandleKind>(place: usize) -> Handle<K>;

    /// Stores a file's handle.
    ///
    /// # Safety
    ///
    /// MPI's caller has room for a file's handle at the address.
    unsafe fn set_file(place: usize, file: Handle<File>);

    /// See [`crate::Argument::store_made`].
    ///
    /// # Safety
    ///
    /// MPI's caller has room for a request at the address.
    unsafe fn set_request(place: usize, make: impl FnOnce(RequestRoom<'_>) -> c_int) -> c_int;
}

/// C, with counts of 4 or of 8 bytes. The upper half of an `int` argument is undefined.
#[derive(Clone, Copy, Debug)]
pub struct C<const IS_LARGE: bool>;

impl<const IS_LARGE: bool> Language for C<IS_LARGE> {
    const REQUEST_BYTES: usize = if Request::IS_POINTER { 8 } else { 4 };

    #[inline(always)]
    unsafe fn int(word: usize) -> c_int {
        word as c_int
    }

    #[inline(always)]
    unsafe fn long(word: usize) -> i64 {
        word as i64
    }

    #[inline(always)]
    unsafe fn count(word: usize) -> i64 {
        if IS_LARGE { word as i64 } else { i64::from(word as c_int) }
    }

    unsafe fn text<'call>(word: usize, _len: usize) -> &'call [u8] {
        if word == 0 {
            return b"";
        }
        // SAFETY: MPI's caller has a text with a zero at its end there, as the caller of this function promises.
        unsafe { CStr::from_ptr(word as *const c_char) }.to_bytes()
    }

    #[inline(always)]
    unsafe fn handle<K: HandleKind>(word: usize) -> Handle<K> {
        // If handles are shorter than a register, the upper bytes are undefined.
        let bits = if K::IS_POINTER { word as u64 } else { u64::from(word as u32) };
        // SAFETY: MPI's caller has passed the handle, as the caller of this function promises.
        unsafe { Handle::new(bits) }
    }

    #[inline]
    unsafe fn handle_at<K: HandleKind>(place: usize) -> Handle<K> {
        // SAFETY: MPI or its caller has stored a handle of this size there, as the caller of this function promises.
        unsafe { Handle::new(if K::IS_POINTER { *(place as *const u64) } else { u64::from(*(place as *const u32)) }) }
    }

    unsafe fn set_file(place: usize, file: Handle<File>) {
        // SAFETY: MPI's caller has room for a file's handle, 8 bytes, as the caller of this function promises.
        unsafe { *(place as *mut u64) = file.bits() };
    }

    #[inline]
    unsafe fn set_request(place: usize, make: impl FnOnce(RequestRoom<'_>) -> c_int) -> c_int {
        make(RequestRoom { place: place as *mut c_void, of: PhantomData })
    }
}

/// Fortran: every argument is an address. Handles are integers; `mpi_f08` wraps them in structs of one integer.
#[derive(Clone, Copy, Debug)]
pub struct Fortran;

impl Language for Fortran {
    const REQUEST_BYTES: usize = size_of::<c_int>();

    unsafe fn int(word: usize) -> c_int {
        // SAFETY: MPI's caller has a readable integer at the address, as the caller of this function promises.
        unsafe { *(word as *const c_int) }
    }

    unsafe fn long(word: usize) -> i64 {
        // SAFETY: MPI's caller has a readable integer of kind `MPI_ADDRESS_KIND` or `MPI_OFFSET_KIND` at the address,
        // as the caller of this function promises.
        unsafe { *(word as *const i64) }
    }

    unsafe fn count(word: usize) -> i64 {
        // SAFETY: Fortran's calls have counts of 4 bytes here. MPI's caller has a readable one at the address, as the
        // caller of this function promises.
        i64::from(unsafe { Self::int(word) })
    }

    unsafe fn text<'call>(word: usize, len: usize) -> &'call [u8] {
        // SAFETY: MPI's caller has a text of `len` bytes there, as the caller of this function promises.
        unsafe { std::slice::from_raw_parts(word as *const u8, len) }.trim_ascii_end()
    }

    unsafe fn handle<K: HandleKind>(word: usize) -> Handle<K> {
        // SAFETY: MPI's caller has the integer of a handle at the address, as the caller of this function promises. MPI
        // looks the integer up, and refuses an unknown one.
        unsafe { Handle::new(K::OF_FORTRAN(Self::int(word))) }
    }

    unsafe fn handle_at<K: HandleKind>(place: usize) -> Handle<K> {
        // SAFETY: a stored handle is an integer, too, and MPI or its caller has stored one there, as the caller of this
        // function promises.
        unsafe { Self::handle(place) }
    }

    unsafe fn set_file(place: usize, file: Handle<File>) {
        // SAFETY: MPI's caller has room for an integer, as the caller of this function promises. MPI has returned the
        // handle.
        unsafe { *(place as *mut c_int) = vgasnet_mpi_front_file_to(file.bits()) };
    }

    unsafe fn set_request(place: usize, make: impl FnOnce(RequestRoom<'_>) -> c_int) -> c_int {
        // Longer than any MPI's handle.
        let mut made: u64 = 0;
        let code = make(RequestRoom { place: (&raw mut made).cast(), of: PhantomData });
        if code == SUCCESS && made != 0 {
            // SAFETY: a request is in `made`. MPI's caller has room for an integer, as the caller of this function
            // promises.
            unsafe { *(place as *mut c_int) = vgasnet_mpi_front_request_to((&raw const made).cast()) };
        }
        code
    }
}

//! The functions of MPI's that the library defines, as C calls them.

use crate::access::{self, Access, At};
use crate::control::{self, Pointer};
use crate::ffi::{self, Status, put};
use crate::files::{self, Wanted};
use crate::{job, settings};
use std::ffi::{CStr, c_char, c_int, c_void};
use vgasnet_mpi_front::{SUCCESS, calls, handle, handle_at};

/// An `int`.
#[inline]
fn int(argument: usize) -> c_int {
    argument as c_int
}

/// The file at an address that the caller passed to MPI for one.
fn file_at(place: usize) -> u64 {
    // SAFETY: MPI has one there, which is a pointer.
    unsafe { *(place as *const u64) }
}

/// A string of the caller's.
fn string<'a>(place: usize) -> &'a [u8] {
    if place == 0 {
        return b"";
    }
    // SAFETY: the caller has a string there.
    unsafe { CStr::from_ptr(place as *const c_char) }.to_bytes()
}

/// Memory, elements, and their datatype.
pub(super) fn buffer([buffer, count, datatype]: [usize; 3], file: usize, at: At, is_write: bool) -> Access {
    Access { file: file as u64, at, is_write, buffer, count: i64::from(int(count)), datatype: handle(datatype) }
}

fn at(argument: usize) -> At {
    At::Offset(argument as i64)
}

fn started(code: c_int) -> c_int {
    if code == SUCCESS {
        job::start();
    }
    code
}

calls! {
    // SAFETY: the arguments are those of the caller, who calls MPI.
    MPI_Init(argc argv) |_next| started(unsafe { ffi::init(argc, argv, std::ptr::null_mut()) });
    // SAFETY: as above.
    MPI_Init_thread(argc argv required provided) |_next| started(unsafe { ffi::init(argc, argv, provided as *mut c_int) });

    MPI_File_open(comm name mode info file) |next| {
        let wanted =
            || Wanted { comm: handle(comm), name: string(name), mode: int(mode), hints: settings::hints_of(handle(info)) };
        files::open(wanted, next, || file_at(file))
    };
    MPI_File_close(file) |next| files::close(file_at(file), next);
    MPI_File_set_view(file displacement unit tile representation info) |next|
        control::set_view(file as u64, displacement as i64, [handle(unit), handle(tile)], string(representation), next);
    MPI_File_get_info(file info) |next| {
        // SAFETY: MPI has put one there.
        control::info(file as u64, next, || unsafe { handle_at(info) })
    };
    MPI_File_get_size(file size) |next| put(size, control::size(file as u64, next));
    MPI_File_set_size(file size) |next| control::set_size(file as u64, size as i64, next);
    MPI_File_preallocate(file size) |next| control::preallocate(file as u64, size as i64, next);
    MPI_File_sync(file) |next| control::sync(file as u64, next);
    MPI_File_set_atomicity(file flag) |next| control::set_atomicity(file as u64, int(flag), next);
    MPI_File_get_atomicity(file flag) |next| put(flag, control::atomicity(file as u64, next));
    MPI_File_seek(file offset whence) |next|
        control::seek(file as u64, offset as i64, int(whence), Pointer::Individual, next);
    MPI_File_seek_shared(file offset whence) |next|
        control::seek(file as u64, offset as i64, int(whence), Pointer::Shared, next);
    MPI_File_get_position(file offset) |next| put(offset, control::position(file as u64, Pointer::Individual, next));
    MPI_File_get_position_shared(file offset) |next| put(offset, control::position(file as u64, Pointer::Shared, next));
}

calls! {
    MPI_File_read_at(file offset buf count kind status) |next| access::now(&buffer([buf, count, kind], file, at(offset), false), Status::C(status), next);
    MPI_File_read_at_all(file offset buf count kind status) |next| access::now(&buffer([buf, count, kind], file, at(offset), false), Status::C(status), next);
    MPI_File_read(file buf count kind status) |next| access::now(&buffer([buf, count, kind], file, At::Individual, false), Status::C(status), next);
    MPI_File_read_all(file buf count kind status) |next| access::now(&buffer([buf, count, kind], file, At::Individual, false), Status::C(status), next);
    MPI_File_read_shared(file buf count kind status) |next| access::now(&buffer([buf, count, kind], file, At::Shared, false), Status::C(status), next);
    MPI_File_read_ordered(file buf count kind status) |next| access::now(&buffer([buf, count, kind], file, At::Ordered, false), Status::C(status), next);
    MPI_File_write_at(file offset buf count kind status) |next| access::now(&buffer([buf, count, kind], file, at(offset), true), Status::C(status), next);
    MPI_File_write_at_all(file offset buf count kind status) |next| access::now(&buffer([buf, count, kind], file, at(offset), true), Status::C(status), next);
    MPI_File_write(file buf count kind status) |next| access::now(&buffer([buf, count, kind], file, At::Individual, true), Status::C(status), next);
    MPI_File_write_all(file buf count kind status) |next| access::now(&buffer([buf, count, kind], file, At::Individual, true), Status::C(status), next);
    MPI_File_write_shared(file buf count kind status) |next| access::now(&buffer([buf, count, kind], file, At::Shared, true), Status::C(status), next);
    MPI_File_write_ordered(file buf count kind status) |next| access::now(&buffer([buf, count, kind], file, At::Ordered, true), Status::C(status), next);
}

calls! {
    MPI_File_iread_at(file offset buf count kind request) |next| access::later(&buffer([buf, count, kind], file, at(offset), false), request as *mut c_void, next);
    MPI_File_iread_at_all(file offset buf count kind request) |next| access::later(&buffer([buf, count, kind], file, at(offset), false), request as *mut c_void, next);
    MPI_File_iread(file buf count kind request) |next| access::later(&buffer([buf, count, kind], file, At::Individual, false), request as *mut c_void, next);
    MPI_File_iread_all(file buf count kind request) |next| access::later(&buffer([buf, count, kind], file, At::Individual, false), request as *mut c_void, next);
    MPI_File_iread_shared(file buf count kind request) |next| access::later(&buffer([buf, count, kind], file, At::Shared, false), request as *mut c_void, next);
    MPI_File_iwrite_at(file offset buf count kind request) |next| access::later(&buffer([buf, count, kind], file, at(offset), true), request as *mut c_void, next);
    MPI_File_iwrite_at_all(file offset buf count kind request) |next| access::later(&buffer([buf, count, kind], file, at(offset), true), request as *mut c_void, next);
    MPI_File_iwrite(file buf count kind request) |next| access::later(&buffer([buf, count, kind], file, At::Individual, true), request as *mut c_void, next);
    MPI_File_iwrite_all(file buf count kind request) |next| access::later(&buffer([buf, count, kind], file, At::Individual, true), request as *mut c_void, next);
    MPI_File_iwrite_shared(file buf count kind request) |next| access::later(&buffer([buf, count, kind], file, At::Shared, true), request as *mut c_void, next);
}

calls! {
    MPI_File_read_at_all_begin(file offset buf count kind) |next| access::begin(&buffer([buf, count, kind], file, at(offset), false), "MPI_File_read_at_all", next);
    MPI_File_read_all_begin(file buf count kind) |next| access::begin(&buffer([buf, count, kind], file, At::Individual, false), "MPI_File_read_all", next);
    MPI_File_read_ordered_begin(file buf count kind) |next| access::begin(&buffer([buf, count, kind], file, At::Ordered, false), "MPI_File_read_ordered", next);
    MPI_File_read_at_all_end(file buf status) |next| access::end(file as u64, "MPI_File_read_at_all", Status::C(status), next);
    MPI_File_read_all_end(file buf status) |next| access::end(file as u64, "MPI_File_read_all", Status::C(status), next);
    MPI_File_read_ordered_end(file buf status) |next| access::end(file as u64, "MPI_File_read_ordered", Status::C(status), next);
    MPI_File_write_at_all_begin(file offset buf count kind) |next| access::begin(&buffer([buf, count, kind], file, at(offset), true), "MPI_File_write_at_all", next);
    MPI_File_write_all_begin(file buf count kind) |next| access::begin(&buffer([buf, count, kind], file, At::Individual, true), "MPI_File_write_all", next);
    MPI_File_write_ordered_begin(file buf count kind) |next| access::begin(&buffer([buf, count, kind], file, At::Ordered, true), "MPI_File_write_ordered", next);
    MPI_File_write_at_all_end(file buf status) |next| access::end(file as u64, "MPI_File_write_at_all", Status::C(status), next);
    MPI_File_write_all_end(file buf status) |next| access::end(file as u64, "MPI_File_write_all", Status::C(status), next);
    MPI_File_write_ordered_end(file buf status) |next| access::end(file as u64, "MPI_File_write_ordered", Status::C(status), next);
}

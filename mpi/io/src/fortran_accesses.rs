//! Reads and writes for Fortran callers in Open MPI. MPICH's functions call the C functions.

use crate::access::{self, Access, At};
use crate::ffi::{self, Status};
use crate::fortran::{file, int, long};
use std::ffi::c_int;
use vgasnet_mpi_front::{SUCCESS, fortran, request_to_fortran, type_of};

/// An access from the arguments for memory, count and datatype.
fn buffer([buffer, count, datatype]: [usize; 3], place: usize, at: At, is_write: bool) -> Access {
    let is_bottom = buffer as u64 == ffi::constants().fortran_bottom;
    Access {
        file: file(place),
        at,
        is_write,
        buffer: if is_bottom { 0 } else { buffer },
        count: i64::from(int(count)),
        datatype: type_of(int(datatype)),
    }
}

fn at(place: usize) -> At {
    At::Offset(long(place))
}

/// An access completed before the call returns.
fn now(access: &Access, status: usize, next: impl Fn() -> c_int) -> c_int {
    access::now(access, Status::Fortran(status), next)
}

/// Stores the handle of the request in an integer of Fortran. If `next` calls MPI, MPI stores the handle itself.
fn later(access: &Access, place: usize, next: impl Fn() -> c_int) -> c_int {
    let mut made: u64 = 0;
    let code = access::later(access, (&raw mut made).cast(), next);
    if code == SUCCESS && made != 0 {
        // SAFETY: a request is there.
        let number = unsafe { request_to_fortran(&raw const made as usize) };
        // SAFETY: the caller has an integer there.
        unsafe { *(place as *mut c_int) = number };
    }
    code
}

/// Defines functions that read or write: their names, the argument with an offset, the start of the access, and whether
/// it writes.
macro_rules! accesses {
    ($now:ident: $($name:ident, $of_f08:ident ($($offset:ident)?) => $at:expr, $is_write:literal;)*) => {
        fortran! {$(
            $name, $of_f08 => (place $($offset)? buf count kind last) |next|
                $now(&buffer([buf, count, kind], place, $at, $is_write), last, next);
        )*}
    };
}

/// Defines the two halves of split collectives.
macro_rules! splits {
    ($($name:literal:
        $begin:ident, $begin_of_f08:ident ($($offset:ident)?) => $at:expr, $is_write:literal, $end:ident, $end_of_f08:ident;)*) => {
        fortran! {$(
            $begin, $begin_of_f08 => (place $($offset)? buf count kind) |next|
                access::begin(&buffer([buf, count, kind], place, $at, $is_write), $name, next);
            $end, $end_of_f08 => (place buf status) |next| access::end(file(place), $name, Status::Fortran(status), next);
        )*}
    };
}

accesses! {
    now:
    mpi_file_read_at_, mpi_file_read_at_f08_ (offset) => at(offset), false;
    mpi_file_read_at_all_, mpi_file_read_at_all_f08_ (offset) => at(offset), false;
    mpi_file_read_, mpi_file_read_f08_ () => At::Individual, false;
    mpi_file_read_all_, mpi_file_read_all_f08_ () => At::Individual, false;
    mpi_file_read_shared_, mpi_file_read_shared_f08_ () => At::Shared, false;
    mpi_file_read_ordered_, mpi_file_read_ordered_f08_ () => At::Ordered, false;
    mpi_file_write_at_, mpi_file_write_at_f08_ (offset) => at(offset), true;
    mpi_file_write_at_all_, mpi_file_write_at_all_f08_ (offset) => at(offset), true;
    mpi_file_write_, mpi_file_write_f08_ () => At::Individual, true;
    mpi_file_write_all_, mpi_file_write_all_f08_ () => At::Individual, true;
    mpi_file_write_shared_, mpi_file_write_shared_f08_ () => At::Shared, true;
    mpi_file_write_ordered_, mpi_file_write_ordered_f08_ () => At::Ordered, true;
}

accesses! {
    later:
    mpi_file_iread_at_, mpi_file_iread_at_f08_ (offset) => at(offset), false;
    mpi_file_iread_at_all_, mpi_file_iread_at_all_f08_ (offset) => at(offset), false;
    mpi_file_iread_, mpi_file_iread_f08_ () => At::Individual, false;
    mpi_file_iread_all_, mpi_file_iread_all_f08_ () => At::Individual, false;
    mpi_file_iread_shared_, mpi_file_iread_shared_f08_ () => At::Shared, false;
    mpi_file_iwrite_at_, mpi_file_iwrite_at_f08_ (offset) => at(offset), true;
    mpi_file_iwrite_at_all_, mpi_file_iwrite_at_all_f08_ (offset) => at(offset), true;
    mpi_file_iwrite_, mpi_file_iwrite_f08_ () => At::Individual, true;
    mpi_file_iwrite_all_, mpi_file_iwrite_all_f08_ () => At::Individual, true;
    mpi_file_iwrite_shared_, mpi_file_iwrite_shared_f08_ () => At::Shared, true;
}

splits! {
    "MPI_File_read_at_all":
        mpi_file_read_at_all_begin_, mpi_file_read_at_all_begin_f08_ (offset) => at(offset), false,
        mpi_file_read_at_all_end_, mpi_file_read_at_all_end_f08_;
    "MPI_File_read_all":
        mpi_file_read_all_begin_, mpi_file_read_all_begin_f08_ () => At::Individual, false,
        mpi_file_read_all_end_, mpi_file_read_all_end_f08_;
    "MPI_File_read_ordered":
        mpi_file_read_ordered_begin_, mpi_file_read_ordered_begin_f08_ () => At::Ordered, false,
        mpi_file_read_ordered_end_, mpi_file_read_ordered_end_f08_;
    "MPI_File_write_at_all":
        mpi_file_write_at_all_begin_, mpi_file_write_at_all_begin_f08_ (offset) => at(offset), true,
        mpi_file_write_at_all_end_, mpi_file_write_at_all_end_f08_;
    "MPI_File_write_all":
        mpi_file_write_all_begin_, mpi_file_write_all_begin_f08_ () => At::Individual, true,
        mpi_file_write_all_end_, mpi_file_write_all_end_f08_;
    "MPI_File_write_ordered":
        mpi_file_write_ordered_begin_, mpi_file_write_ordered_begin_f08_ () => At::Ordered, true,
        mpi_file_write_ordered_end_, mpi_file_write_ordered_end_f08_;
}

//! MPI's functions that read and write. MPICH's of Fortran call the C functions.

use crate::access::{self, Access, At};
use crate::ffi;
use std::ffi::c_int;
use vgasnet_mpi_front::kind::{Count, Datatype, File, NewRequest, Status};
use vgasnet_mpi_front::{Argument, Language, calls};

/// The buffer and the status of a language's callers.
trait Buffers: Language {
    fn buffer(argument: usize) -> usize {
        argument
    }
    fn status(argument: Argument<'_, Self, Status>) -> ffi::Status;
}

impl<const IS_LARGE: bool> Buffers for vgasnet_mpi_front::C<IS_LARGE> {
    fn status(argument: Argument<'_, Self, Status>) -> ffi::Status {
        // SAFETY: MPI's caller has passed the address for a status in C, and the status is set before the call returns.
        unsafe { ffi::Status::of_c(argument.address()) }
    }
}

#[cfg(open_mpi)]
impl Buffers for vgasnet_mpi_front::Fortran {
    fn buffer(argument: usize) -> usize {
        if argument as u64 == ffi::constants().fortran_bottom { 0 } else { argument }
    }

    fn status(argument: Argument<'_, Self, Status>) -> ffi::Status {
        // SAFETY: MPI's caller has passed the address for a status in Fortran, and the status is set before the call
        // returns.
        unsafe { ffi::Status::of_fortran(argument.address()) }
    }
}

/// An access with these arguments.
///
/// # Safety
/// MPI's caller has passed the arguments to such an access: `count` elements of the datatype at `buffer`. Until it is
/// complete, by MPI's rules, the elements of a write are readable, and nobody writes them; the elements of a read are
/// writable, and nobody else accesses them.
unsafe fn access<L: Buffers>(
    file: Argument<'_, L, File>,
    at: At,
    is_write: bool,
    buffer: usize,
    (count, datatype): (Argument<'_, L, Count>, Argument<'_, L, Datatype>),
) -> Access {
    let elements = (L::buffer(buffer), count.read(), datatype.read());
    // SAFETY: MPI's caller leaves the elements to the access until it is complete, as the caller of this promises.
    unsafe { Access::new(file.read(), at, is_write, elements) }
}

/// An access completed before the call returns.
fn now<L: Buffers>(access: &Access, status: Argument<'_, L, Status>, next: impl Fn() -> c_int) -> c_int {
    access::now(access, L::status(status), next)
}

/// An access with a request.
fn later<L: Language>(access: &Access, request: Argument<'_, L, NewRequest>, next: impl Fn() -> c_int) -> c_int {
    request.store_made(|room| access::later(access, &room, next))
}

/// Ends the split collective of this name.
fn end<L: Buffers>(
    file: Argument<'_, L, File>,
    name: &str,
    status: Argument<'_, L, Status>,
    next: impl Fn() -> c_int,
) -> c_int {
    access::end(file.read(), name, L::status(status), next)
}

/// Defines functions by how the access completes, and the kind of their last argument: a status or a request. In each
/// row are the argument with an offset, where the access starts, whether it writes, and the names. For `unsafe` see
/// [`calls!`].
macro_rules! accesses {
    (unsafe $($how:ident $last:ident {
        $(($($offset:ident)?) $at:ident $is_write:literal: $name:ident $of_fortran:ident;)+
    })+) => {$(
        calls! {
            unsafe
            [c large fortran_buffers] {$(
                $name $of_fortran (file: File $($offset: Long)? buf count: Count datatype: Datatype last: $last) |next| {
                    let at = At::$at$(($offset.read()))?;
                    // SAFETY: MPI's caller leaves the elements of the buffer to the access until it is complete.
                    let access = unsafe { access(file, at, $is_write, buf, (count, datatype)) };
                    $how(&access, last, next)
                };
            )+}
        }
    )+};
}

/// Defines the two halves of split collectives. For `unsafe` see [`calls!`].
macro_rules! splits {
    (unsafe $($name:literal ($($offset:ident)?) $at:ident $is_write:literal:
        $begin:ident $begin_of_fortran:ident $end:ident $end_of_fortran:ident;)+
    ) => {
        calls! {
            unsafe
            [c large fortran_buffers] {$(
                $begin $begin_of_fortran (file: File $($offset: Long)? buf count: Count datatype: Datatype) |next| {
                    let at = At::$at$(($offset.read()))?;
                    // SAFETY: MPI's caller leaves the elements of the buffer to the access until its end has returned.
                    let access = unsafe { access(file, at, $is_write, buf, (count, datatype)) };
                    access::begin(&access, $name, next)
                };
            )+}
            [c fortran_buffers] {$(
                $end $end_of_fortran (file: File buf status: Status) |next| end(file, $name, status, next);
            )+}
        }
    };
}

// SAFETY: by MPI's standard the functions have these parameters, of these kinds.
accesses! {
    unsafe
    now Status {
        (offset) Offset false: MPI_File_read_at mpi_file_read_at;
        (offset) Offset false: MPI_File_read_at_all mpi_file_read_at_all;
        () Individual false: MPI_File_read mpi_file_read;
        () Individual false: MPI_File_read_all mpi_file_read_all;
        () Shared false: MPI_File_read_shared mpi_file_read_shared;
        () Ordered false: MPI_File_read_ordered mpi_file_read_ordered;
        (offset) Offset true: MPI_File_write_at mpi_file_write_at;
        (offset) Offset true: MPI_File_write_at_all mpi_file_write_at_all;
        () Individual true: MPI_File_write mpi_file_write;
        () Individual true: MPI_File_write_all mpi_file_write_all;
        () Shared true: MPI_File_write_shared mpi_file_write_shared;
        () Ordered true: MPI_File_write_ordered mpi_file_write_ordered;
    }
    later NewRequest {
        (offset) Offset false: MPI_File_iread_at mpi_file_iread_at;
        (offset) Offset false: MPI_File_iread_at_all mpi_file_iread_at_all;
        () Individual false: MPI_File_iread mpi_file_iread;
        () Individual false: MPI_File_iread_all mpi_file_iread_all;
        () Shared false: MPI_File_iread_shared mpi_file_iread_shared;
        (offset) Offset true: MPI_File_iwrite_at mpi_file_iwrite_at;
        (offset) Offset true: MPI_File_iwrite_at_all mpi_file_iwrite_at_all;
        () Individual true: MPI_File_iwrite mpi_file_iwrite;
        () Individual true: MPI_File_iwrite_all mpi_file_iwrite_all;
        () Shared true: MPI_File_iwrite_shared mpi_file_iwrite_shared;
    }
}

// SAFETY: by MPI's standard the functions have these parameters, of these kinds.
splits! {
    unsafe
    "MPI_File_read_at_all" (offset) Offset false:
        MPI_File_read_at_all_begin mpi_file_read_at_all_begin MPI_File_read_at_all_end mpi_file_read_at_all_end;
    "MPI_File_read_all" () Individual false:
        MPI_File_read_all_begin mpi_file_read_all_begin MPI_File_read_all_end mpi_file_read_all_end;
    "MPI_File_read_ordered" () Ordered false:
        MPI_File_read_ordered_begin mpi_file_read_ordered_begin MPI_File_read_ordered_end mpi_file_read_ordered_end;
    "MPI_File_write_at_all" (offset) Offset true:
        MPI_File_write_at_all_begin mpi_file_write_at_all_begin MPI_File_write_at_all_end mpi_file_write_at_all_end;
    "MPI_File_write_all" () Individual true:
        MPI_File_write_all_begin mpi_file_write_all_begin MPI_File_write_all_end mpi_file_write_all_end;
    "MPI_File_write_ordered" () Ordered true:
        MPI_File_write_ordered_begin mpi_file_write_ordered_begin MPI_File_write_ordered_end mpi_file_write_ordered_end;
}

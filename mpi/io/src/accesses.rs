//! MPI's functions that read and write. MPICH's of Fortran call the C functions.

use crate::access::{self, Access, At};
use crate::ffi::Status;
use std::ffi::c_int;
use vgasnet_mpi_front::{Arguments, calls};

/// The buffer and the status of a language's callers.
trait Buffers: Arguments {
    fn buffer(argument: usize) -> usize {
        argument
    }
    fn status(argument: usize) -> Status;
}

impl<const IS_LARGE: bool> Buffers for vgasnet_mpi_front::C<IS_LARGE> {
    fn status(argument: usize) -> Status {
        Status::C(argument)
    }
}

#[cfg(open_mpi)]
impl Buffers for vgasnet_mpi_front::Fortran {
    fn buffer(argument: usize) -> usize {
        if argument as u64 == crate::ffi::constants().fortran_bottom { 0 } else { argument }
    }

    fn status(argument: usize) -> Status {
        Status::Fortran(argument)
    }
}

/// An access with these arguments for memory, count and datatype.
fn access<A: Buffers>([buffer, count, datatype]: [usize; 3], file: usize, at: At, is_write: bool) -> Access {
    let (file, buffer, count, datatype) = (A::file(file), A::buffer(buffer), A::count(count), A::datatype(datatype));
    Access { file, at, is_write, buffer, count, datatype }
}

/// An access completed before the call returns.
fn now<A: Buffers>(access: &Access, status: usize, next: impl Fn() -> c_int) -> c_int {
    access::now(access, A::status(status), next)
}

/// An access with a request.
fn later<A: Buffers>(access: &Access, request: usize, next: impl Fn() -> c_int) -> c_int {
    A::set_request(request, |place| access::later(access, place as *mut std::ffi::c_void, next))
}

/// Defines functions whose last argument is a status or a request: how the access completes, the argument with an
/// offset, where the access starts, whether it writes, and the names.
macro_rules! accesses {
    ($($how:ident ($($offset:ident)?) $at:ident $is_write:literal: $name:ident $of_fortran:ident;)+) => {
        calls! {
            [c large fortran_buffers] {$(
                $name $of_fortran (file $($offset)? buf count kind last) |next| {
                    let at = At::$at$((Arg::long($offset)))?;
                    $how::<Arg>(&access::<Arg>([buf, count, kind], file, at, $is_write), last, next)
                };
            )+}
        }
    };
}

/// Defines the two halves of split collectives.
macro_rules! splits {
    ($($name:literal ($($offset:ident)?) $at:ident $is_write:literal: $begin:ident $begin_of_fortran:ident $end:ident $end_of_fortran:ident;)+) => {
        calls! {
            [c large fortran_buffers] {$(
                $begin $begin_of_fortran (file $($offset)? buf count kind) |next| {
                    let at = At::$at$((Arg::long($offset)))?;
                    access::begin(&access::<Arg>([buf, count, kind], file, at, $is_write), $name, next)
                };
            )+}
            [c fortran_buffers] {$(
                $end $end_of_fortran (file buf status) |next| access::end(Arg::file(file), $name, Arg::status(status), next);
            )+}
        }
    };
}

accesses! {
    now (offset) Offset false: MPI_File_read_at mpi_file_read_at;
    now (offset) Offset false: MPI_File_read_at_all mpi_file_read_at_all;
    now () Individual false: MPI_File_read mpi_file_read;
    now () Individual false: MPI_File_read_all mpi_file_read_all;
    now () Shared false: MPI_File_read_shared mpi_file_read_shared;
    now () Ordered false: MPI_File_read_ordered mpi_file_read_ordered;
    later (offset) Offset false: MPI_File_iread_at mpi_file_iread_at;
    later (offset) Offset false: MPI_File_iread_at_all mpi_file_iread_at_all;
    later () Individual false: MPI_File_iread mpi_file_iread;
    later () Individual false: MPI_File_iread_all mpi_file_iread_all;
    later () Shared false: MPI_File_iread_shared mpi_file_iread_shared;
    now (offset) Offset true: MPI_File_write_at mpi_file_write_at;
    now (offset) Offset true: MPI_File_write_at_all mpi_file_write_at_all;
    now () Individual true: MPI_File_write mpi_file_write;
    now () Individual true: MPI_File_write_all mpi_file_write_all;
    now () Shared true: MPI_File_write_shared mpi_file_write_shared;
    now () Ordered true: MPI_File_write_ordered mpi_file_write_ordered;
    later (offset) Offset true: MPI_File_iwrite_at mpi_file_iwrite_at;
    later (offset) Offset true: MPI_File_iwrite_at_all mpi_file_iwrite_at_all;
    later () Individual true: MPI_File_iwrite mpi_file_iwrite;
    later () Individual true: MPI_File_iwrite_all mpi_file_iwrite_all;
    later () Shared true: MPI_File_iwrite_shared mpi_file_iwrite_shared;
}

splits! {
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

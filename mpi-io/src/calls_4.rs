//! The functions of MPI 4 whose counts have 8 bytes.

use crate::access::{self, Access, At};
use crate::ffi::Status;
use std::ffi::c_void;
use vgasnet_mpi_front::{calls, handle};

/// Memory, elements, and their datatype.
fn buffer([buffer, count, datatype]: [usize; 3], file: usize, at: At, is_write: bool) -> Access {
    Access { file: file as u64, at, is_write, buffer, count: count as i64, datatype: handle(datatype) }
}

fn at(argument: usize) -> At {
    At::Offset(argument as i64)
}

calls! {
    MPI_File_read_at_c(file offset buf count kind status) |next| access::now(&buffer([buf, count, kind], file, at(offset), false), Status::C(status), next);
    MPI_File_read_at_all_c(file offset buf count kind status) |next| access::now(&buffer([buf, count, kind], file, at(offset), false), Status::C(status), next);
    MPI_File_read_c(file buf count kind status) |next| access::now(&buffer([buf, count, kind], file, At::Individual, false), Status::C(status), next);
    MPI_File_read_all_c(file buf count kind status) |next| access::now(&buffer([buf, count, kind], file, At::Individual, false), Status::C(status), next);
    MPI_File_read_shared_c(file buf count kind status) |next| access::now(&buffer([buf, count, kind], file, At::Shared, false), Status::C(status), next);
    MPI_File_read_ordered_c(file buf count kind status) |next| access::now(&buffer([buf, count, kind], file, At::Ordered, false), Status::C(status), next);
    MPI_File_write_at_c(file offset buf count kind status) |next| access::now(&buffer([buf, count, kind], file, at(offset), true), Status::C(status), next);
    MPI_File_write_at_all_c(file offset buf count kind status) |next| access::now(&buffer([buf, count, kind], file, at(offset), true), Status::C(status), next);
    MPI_File_write_c(file buf count kind status) |next| access::now(&buffer([buf, count, kind], file, At::Individual, true), Status::C(status), next);
    MPI_File_write_all_c(file buf count kind status) |next| access::now(&buffer([buf, count, kind], file, At::Individual, true), Status::C(status), next);
    MPI_File_write_shared_c(file buf count kind status) |next| access::now(&buffer([buf, count, kind], file, At::Shared, true), Status::C(status), next);
    MPI_File_write_ordered_c(file buf count kind status) |next| access::now(&buffer([buf, count, kind], file, At::Ordered, true), Status::C(status), next);
}

calls! {
    MPI_File_iread_at_c(file offset buf count kind request) |next| access::later(&buffer([buf, count, kind], file, at(offset), false), request as *mut c_void, next);
    MPI_File_iread_at_all_c(file offset buf count kind request) |next| access::later(&buffer([buf, count, kind], file, at(offset), false), request as *mut c_void, next);
    MPI_File_iread_c(file buf count kind request) |next| access::later(&buffer([buf, count, kind], file, At::Individual, false), request as *mut c_void, next);
    MPI_File_iread_all_c(file buf count kind request) |next| access::later(&buffer([buf, count, kind], file, At::Individual, false), request as *mut c_void, next);
    MPI_File_iread_shared_c(file buf count kind request) |next| access::later(&buffer([buf, count, kind], file, At::Shared, false), request as *mut c_void, next);
    MPI_File_iwrite_at_c(file offset buf count kind request) |next| access::later(&buffer([buf, count, kind], file, at(offset), true), request as *mut c_void, next);
    MPI_File_iwrite_at_all_c(file offset buf count kind request) |next| access::later(&buffer([buf, count, kind], file, at(offset), true), request as *mut c_void, next);
    MPI_File_iwrite_c(file buf count kind request) |next| access::later(&buffer([buf, count, kind], file, At::Individual, true), request as *mut c_void, next);
    MPI_File_iwrite_all_c(file buf count kind request) |next| access::later(&buffer([buf, count, kind], file, At::Individual, true), request as *mut c_void, next);
    MPI_File_iwrite_shared_c(file buf count kind request) |next| access::later(&buffer([buf, count, kind], file, At::Shared, true), request as *mut c_void, next);
}

calls! {
    MPI_File_read_at_all_begin_c(file offset buf count kind) |next| access::begin(&buffer([buf, count, kind], file, at(offset), false), "MPI_File_read_at_all", next);
    MPI_File_read_all_begin_c(file buf count kind) |next| access::begin(&buffer([buf, count, kind], file, At::Individual, false), "MPI_File_read_all", next);
    MPI_File_read_ordered_begin_c(file buf count kind) |next| access::begin(&buffer([buf, count, kind], file, At::Ordered, false), "MPI_File_read_ordered", next);
    MPI_File_write_at_all_begin_c(file offset buf count kind) |next| access::begin(&buffer([buf, count, kind], file, at(offset), true), "MPI_File_write_at_all", next);
    MPI_File_write_all_begin_c(file buf count kind) |next| access::begin(&buffer([buf, count, kind], file, At::Individual, true), "MPI_File_write_all", next);
    MPI_File_write_ordered_begin_c(file buf count kind) |next| access::begin(&buffer([buf, count, kind], file, At::Ordered, true), "MPI_File_write_ordered", next);
}

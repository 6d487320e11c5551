//! MPI's functions for Fortran callers, where Fortran's calls bypass the C functions: all functions in Open MPI; in
//! MPICH the functions of `mpi_f08` without buffers.

use crate::calls::{finalize, start};
use crate::closing;
use crate::company;
use crate::control::{self, Pointer};
use crate::ffi::{self, put};
use crate::opening::{self, HandlePlace, Wanted};
use crate::{job, rescue, settings};
use std::ffi::c_int;
use vgasnet_mpi_front::{comm_of, file_of, file_to_fortran, fortran, info_of, type_of};

/// The integer at an address.
pub(super) fn int(place: usize) -> c_int {
    // SAFETY: Fortran passes an integer.
    unsafe { *(place as *const c_int) }
}

/// The integer of kind `MPI_OFFSET_KIND` at an address.
pub(super) fn long(place: usize) -> i64 {
    // SAFETY: Fortran passes an integer of this kind.
    unsafe { *(place as *const i64) }
}

/// The file of the Fortran handle at an address.
pub(super) fn file(place: usize) -> u64 {
    file_of(int(place))
}

/// A Fortran caller's place for a file's handle.
struct FortranPlace(usize);

impl HandlePlace for FortranPlace {
    fn get(&self) -> u64 {
        file(self.0)
    }

    fn clear(&self) {
        let null = file_to_fortran(ffi::constants().file_null);
        // SAFETY: Fortran has room for an integer.
        unsafe { *(self.0 as *mut c_int) = null };
    }
}

/// A string without trailing blanks.
fn string<'a>(place: usize, len: usize) -> &'a [u8] {
    // SAFETY: Fortran passes a string and its length.
    unsafe { std::slice::from_raw_parts(place as *const u8, len) }.trim_ascii_end()
}

fn started(provided: *mut c_int, next: impl Fn() -> c_int) -> c_int {
    // SAFETY: null pointers stand for a program that does not pass its arguments; the level is null, or an integer of
    // the caller.
    start(|| unsafe { ffi::init(0, 0, provided) }, next)
}

fortran! {
    mpi_init_, mpi_init_f08_ => () |next| started(std::ptr::null_mut(), next);
    mpi_init_thread_, mpi_init_thread_f08_ => (required provided) |next| started(provided as *mut c_int, next);

    mpi_abort_, mpi_abort_f08_ => (comm code) |next| {
        if job::library().is_some() {
            rescue::all("MPI_Abort");
        }
        next()
    };
    mpi_finalize_, mpi_finalize_f08_ => () |next| finalize(next);

    mpi_comm_spawn_, mpi_comm_spawn_f08_ => (command argv processes info root comm new codes; len len2) |next|
        company::come("MPI_Comm_spawn", comm_of(int(comm)), int(root), next);
    mpi_comm_spawn_multiple_, mpi_comm_spawn_multiple_f08_ => (count commands argv processes info root comm new codes; len len2) |next|
        company::come("MPI_Comm_spawn_multiple", comm_of(int(comm)), int(root), next);
    mpi_comm_accept_, mpi_comm_accept_f08_ => (port info root comm new; len) |next|
        company::come("MPI_Comm_accept", comm_of(int(comm)), int(root), next);
    mpi_comm_connect_, mpi_comm_connect_f08_ => (port info root comm new; len) |next|
        company::come("MPI_Comm_connect", comm_of(int(comm)), int(root), next);
    mpi_comm_join_, mpi_comm_join_f08_ => (descriptor new) |next| {
        company::expect("MPI_Comm_join");
        next()
    };

    mpi_file_open_, mpi_file_open_f08_ => (comm name mode info place; len) |next| {
        let wanted = || Wanted {
            comm: comm_of(int(comm)),
            name: string(name, len),
            mode: int(mode),
            hints: settings::hints_of(info_of(int(info))),
        };
        opening::open(wanted, next, &FortranPlace(place))
    };
    mpi_file_close_, mpi_file_close_f08_ => (place) |next| closing::close(file(place), next);
    mpi_file_set_view_, mpi_file_set_view_f08_ => (place displacement unit tile representation info; len) |next| {
        let types = [type_of(int(unit)), type_of(int(tile))];
        control::set_view(file(place), long(displacement), types, string(representation, len), next)
    };
    mpi_file_get_info_, mpi_file_get_info_f08_ => (place info) |next|
        control::info(file(place), next, || info_of(int(info)));
    mpi_file_get_size_, mpi_file_get_size_f08_ => (place size) |next| put(size, control::size(file(place), next));
    mpi_file_set_size_, mpi_file_set_size_f08_ => (place size) |next| control::set_size(file(place), long(size), next);
    mpi_file_preallocate_, mpi_file_preallocate_f08_ => (place size) |next|
        control::preallocate(file(place), long(size), next);
    mpi_file_sync_, mpi_file_sync_f08_ => (place) |next| control::sync(file(place), next);
    mpi_file_set_atomicity_, mpi_file_set_atomicity_f08_ => (place flag) |next|
        control::set_atomicity(file(place), int(flag), next);
    mpi_file_get_atomicity_, mpi_file_get_atomicity_f08_ => (place flag) |next|
        put(flag, control::atomicity(file(place), next));
    mpi_file_seek_, mpi_file_seek_f08_ => (place offset whence) |next|
        control::seek(file(place), long(offset), int(whence), Pointer::Individual, next);
    mpi_file_seek_shared_, mpi_file_seek_shared_f08_ => (place offset whence) |next|
        control::seek(file(place), long(offset), int(whence), Pointer::Shared, next);
    mpi_file_get_position_, mpi_file_get_position_f08_ => (place offset) |next|
        put(offset, control::position(file(place), Pointer::Individual, next));
    mpi_file_get_position_shared_, mpi_file_get_position_shared_f08_ => (place offset) |next|
        put(offset, control::position(file(place), Pointer::Shared, next));
}

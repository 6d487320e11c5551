//! MPI's functions defined by the library.

use crate::closing;
use crate::company;
use crate::control::{self, Pointer};
use crate::ffi::{self, put};
use crate::opening::{self, Wanted};
use crate::{job, rescue, settings};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use vgasnet_mpi_front::{Arguments, SUCCESS, calls};

/// Starts MPI, with its highest thread level, and vgasnet.
fn start(init: impl Fn() -> c_int, next: impl Fn() -> c_int) -> c_int {
    /// A tool loaded after the library comes back with the call.
    static IS_STARTING: AtomicBool = AtomicBool::new(false);
    if IS_STARTING.swap(true, Ordering::Relaxed) || !job::has_its_mpi() {
        return next();
    }
    let code = init();
    if code == SUCCESS {
        job::start();
    }
    IS_STARTING.store(false, Ordering::Relaxed);
    code
}

/// Ends vgasnet, and then MPI.
fn finalize(next: impl Fn() -> c_int) -> c_int {
    closing::close_all();
    job::end();
    vgasnet_mpi_front::end();
    next()
}

calls! {
    [c] {
        // SAFETY: the arguments come from a caller of MPI.
        MPI_Init (argc argv) |next| start(|| unsafe { ffi::init(argc, argv, std::ptr::null_mut()) }, next);
        MPI_Init_thread (argc argv required provided) |next|
            // SAFETY: as above.
            start(|| unsafe { ffi::init(argc, argv, provided as *mut c_int) }, next);
    }
    // Fortran programs do not pass their arguments.
    [fortran] {
        // SAFETY: null pointers stand for arguments that are not passed.
        MPI_Init mpi_init () |next| start(|| unsafe { ffi::init(0, 0, std::ptr::null_mut()) }, next);
        MPI_Init_thread mpi_init_thread (required provided) |next|
            // SAFETY: as above; the level is an integer of the caller.
            start(|| unsafe { ffi::init(0, 0, provided as *mut c_int) }, next);
    }
    [c fortran] {
        MPI_Finalize mpi_finalize () |next| finalize(next);
        MPI_Abort mpi_abort (comm code) |next| {
            if job::library().is_some() {
                rescue::all("MPI_Abort");
            }
            next()
        };

        MPI_Comm_spawn mpi_comm_spawn (command argv processes info root comm new codes; len len2) |next|
            company::come("MPI_Comm_spawn", Arg::comm(comm), Arg::int(root), next);
        MPI_Comm_spawn_multiple mpi_comm_spawn_multiple (count commands argv processes info root comm new codes; len len2) |next|
            company::come("MPI_Comm_spawn_multiple", Arg::comm(comm), Arg::int(root), next);
        MPI_Comm_accept mpi_comm_accept (port info root comm new; len) |next|
            company::come("MPI_Comm_accept", Arg::comm(comm), Arg::int(root), next);
        MPI_Comm_connect mpi_comm_connect (port info root comm new; len) |next|
            company::come("MPI_Comm_connect", Arg::comm(comm), Arg::int(root), next);
        MPI_Comm_join mpi_comm_join (descriptor new) |next| {
            company::expect("MPI_Comm_join");
            next()
        };

        MPI_File_open mpi_file_open (comm name mode info file; len) |next| {
            let wanted = || Wanted {
                comm: Arg::comm(comm),
                name: Arg::string(name, len),
                mode: Arg::int(mode),
                hints: settings::hints_of(Arg::info(info)),
            };
            opening::open::<Arg>(wanted, next, file)
        };
        MPI_File_close mpi_file_close (file) |next| closing::close(Arg::file_at(file), next);
        MPI_File_set_view mpi_file_set_view (file displacement unit tile representation info; len) |next| {
            let types = [Arg::datatype(unit), Arg::datatype(tile)];
            control::set_view(Arg::file(file), Arg::long(displacement), types, Arg::string(representation, len), next)
        };
        MPI_File_get_info mpi_file_get_info (file info) |next|
            control::info(Arg::file(file), next, || Arg::info_at(info));
        MPI_File_get_size mpi_file_get_size (file size) |next| put(size, control::size(Arg::file(file), next));
        MPI_File_set_size mpi_file_set_size (file size) |next|
            control::resize(Arg::file(file), Arg::long(size), true, next);
        MPI_File_preallocate mpi_file_preallocate (file size) |next|
            control::resize(Arg::file(file), Arg::long(size), false, next);
        MPI_File_sync mpi_file_sync (file) |next| control::sync(Arg::file(file), next);
        MPI_File_set_atomicity mpi_file_set_atomicity (file flag) |next|
            control::set_atomicity(Arg::file(file), Arg::int(flag), next);
        MPI_File_get_atomicity mpi_file_get_atomicity (file flag) |next|
            put(flag, control::atomicity(Arg::file(file), next));
        MPI_File_seek mpi_file_seek (file offset whence) |next|
            control::seek(Arg::file(file), Arg::long(offset), Arg::int(whence), Pointer::Individual, next);
        MPI_File_seek_shared mpi_file_seek_shared (file offset whence) |next|
            control::seek(Arg::file(file), Arg::long(offset), Arg::int(whence), Pointer::Shared, next);
        MPI_File_get_position mpi_file_get_position (file offset) |next|
            put(offset, control::position(Arg::file(file), Pointer::Individual, next));
        MPI_File_get_position_shared mpi_file_get_position_shared (file offset) |next|
            put(offset, control::position(Arg::file(file), Pointer::Shared, next));
    }
}

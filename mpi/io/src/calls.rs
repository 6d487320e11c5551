//! MPI's functions defined by the library.

use crate::closing;
use crate::company;
use crate::control::{self, Pointer};
use crate::ffi;
use crate::opening::{self, Wanted};
use crate::{job, rescue, settings};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use vgasnet_mpi_front::{SUCCESS, calls};

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

/// Stores an answer for MPI's caller, or returns MPI's code.
fn answer<T>(value: Result<T, c_int>, store: impl FnOnce(T)) -> c_int {
    match value {
        Ok(value) => {
            store(value);
            SUCCESS
        }
        Err(code) => code,
    }
}

// SAFETY: by MPI's standard the functions have these parameters, of these kinds.
calls! {
    unsafe
    [c] {
        // SAFETY: MPI's caller has passed null, or the addresses of the arguments of `main`.
        MPI_Init (argc argv) |next| start(|| unsafe { ffi::init(argc, argv, std::ptr::null_mut()) }, next);
        MPI_Init_thread (argc argv required provided) |next|
            // SAFETY: MPI's caller has passed null, or the addresses of the arguments of `main`, and has room for the
            // level.
            start(|| unsafe { ffi::init(argc, argv, provided as *mut c_int) }, next);
    }
    // Fortran programs do not pass their arguments.
    [fortran] {
        // SAFETY: null pointers stand for arguments that are not passed.
        MPI_Init mpi_init () |next| start(|| unsafe { ffi::init(0, 0, std::ptr::null_mut()) }, next);
        MPI_Init_thread mpi_init_thread (required provided) |next|
            // SAFETY: null pointers stand for arguments that are not passed. MPI's caller has room for the level.
            start(|| unsafe { ffi::init(0, 0, provided as *mut c_int) }, next);
    }
    [c fortran] {
        MPI_Finalize mpi_finalize () |next| finalize(next);
        MPI_Abort mpi_abort (comm code) |next| {
            rescue::abort();
            next()
        };

        MPI_Comm_spawn mpi_comm_spawn (command argv processes info root: Int comm: Comm new codes; len len2) |next|
            company::come("MPI_Comm_spawn", comm.read(), root.read(), next);
        MPI_Comm_spawn_multiple mpi_comm_spawn_multiple (count commands argv processes info root: Int comm: Comm new codes;
            len len2) |next|
            company::come("MPI_Comm_spawn_multiple", comm.read(), root.read(), next);
        MPI_Comm_accept mpi_comm_accept (port info root: Int comm: Comm new; len) |next|
            company::come("MPI_Comm_accept", comm.read(), root.read(), next);
        MPI_Comm_connect mpi_comm_connect (port info root: Int comm: Comm new; len) |next|
            company::come("MPI_Comm_connect", comm.read(), root.read(), next);
        MPI_Comm_join mpi_comm_join (descriptor new) |next| {
            company::expect("MPI_Comm_join");
            next()
        };

        MPI_File_open mpi_file_open (comm: Comm name: Text mode: Int info: Info file: NewFile; len) |next| {
            let wanted = || Wanted {
                comm: comm.read(),
                // SAFETY: the length is the name's, which is the only text.
                name: unsafe { name.text(len) },
                mode: mode.read(),
                hints: settings::hints_of(info.read()),
            };
            opening::open(wanted, next, file)
        };
        MPI_File_close mpi_file_close (file: FileAt) |next| closing::close(file.read(), next);
        MPI_File_set_view mpi_file_set_view (file: File displacement: Long unit: Datatype tile: Datatype
            representation: Text info; len) |next| {
            // SAFETY: the length is the representation's, which is the only text.
            let representation = unsafe { representation.text(len) };
            control::set_view(file.read(), displacement.read(), [unit.read(), tile.read()], representation, next)
        };
        MPI_File_get_info mpi_file_get_info (file: File info: NewInfo) |next|
            // SAFETY: it is called after MPI has returned success.
            control::info(file.read(), next, || unsafe { info.stored() });
        MPI_File_get_size mpi_file_get_size (file: File size: Offset) |next|
            answer(control::size(file.read(), next), |bytes| size.store(bytes));
        MPI_File_set_size mpi_file_set_size (file: File size: Long) |next|
            control::resize(file.read(), size.read(), true, next);
        MPI_File_preallocate mpi_file_preallocate (file: File size: Long) |next|
            control::resize(file.read(), size.read(), false, next);
        MPI_File_sync mpi_file_sync (file: File) |next| control::sync(file.read(), next);
        MPI_File_set_atomicity mpi_file_set_atomicity (file: File flag: Int) |next|
            control::set_atomicity(file.read(), flag.read(), next);
        MPI_File_get_atomicity mpi_file_get_atomicity (file: File flag: Flag) |next|
            answer(control::atomicity(file.read(), next), |is_atomic| flag.store(is_atomic));
        MPI_File_seek mpi_file_seek (file: File offset: Long whence: Int) |next|
            control::seek(file.read(), offset.read(), whence.read(), Pointer::Individual, next);
        MPI_File_seek_shared mpi_file_seek_shared (file: File offset: Long whence: Int) |next|
            control::seek(file.read(), offset.read(), whence.read(), Pointer::Shared, next);
        MPI_File_get_position mpi_file_get_position (file: File offset: Offset) |next|
            answer(control::position(file.read(), Pointer::Individual, next), |units| offset.store(units));
        MPI_File_get_position_shared mpi_file_get_position_shared (file: File offset: Offset) |next|
            answer(control::position(file.read(), Pointer::Shared, next), |units| offset.store(units));
    }
}

//! MPI's functions defined by the library for C callers.

use crate::access;
use crate::closing;
use crate::company;
use crate::control::{self, Pointer};
use crate::ffi::{self, Status, put};
use crate::opening::{self, HandlePlace, Wanted};
use crate::{job, rescue, settings};
use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use vgasnet_mpi_front::{SUCCESS, calls, handle, handle_at};

/// An `int` argument.
#[inline]
fn int(argument: usize) -> c_int {
    argument as c_int
}

/// The file's handle at an address passed to MPI for it.
fn file_at(place: usize) -> u64 {
    // SAFETY: MPI has stored a handle there, which is a pointer.
    unsafe { *(place as *const u64) }
}

/// A C caller's place for a file's handle.
struct CPlace(usize);

impl HandlePlace for CPlace {
    fn get(&self) -> u64 {
        file_at(self.0)
    }

    fn clear(&self) {
        // SAFETY: the caller has room for a handle there, which is a pointer.
        unsafe { *(self.0 as *mut u64) = ffi::constants().file_null };
    }
}

/// A string of the caller.
fn string<'a>(place: usize) -> &'a [u8] {
    if place == 0 {
        return b"";
    }
    // SAFETY: the caller has a string there.
    unsafe { CStr::from_ptr(place as *const c_char) }.to_bytes()
}

/// Starts MPI, with its highest thread level, and vgasnet.
pub(super) fn start(init: impl Fn() -> c_int, next: impl Fn() -> c_int) -> c_int {
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
pub(super) fn finalize(next: impl Fn() -> c_int) -> c_int {
    closing::close_all();
    job::end();
    vgasnet_mpi_front::end();
    next()
}

calls! {
    // SAFETY: the arguments come from a caller of MPI.
    MPI_Init(argc argv) |next| start(|| unsafe { ffi::init(argc, argv, std::ptr::null_mut()) }, next);
    // SAFETY: as above.
    MPI_Init_thread(argc argv required provided) |next| start(|| unsafe { ffi::init(argc, argv, provided as *mut c_int) }, next);
    MPI_Finalize() |next| finalize(next);
    MPI_Abort(comm code) |next| {
        if job::library().is_some() {
            rescue::all("MPI_Abort");
        }
        next()
    };

    MPI_Comm_spawn(command argv processes info root comm new codes) |next|
        company::come("MPI_Comm_spawn", handle(comm), int(root), next);
    MPI_Comm_spawn_multiple(count commands argv processes info root comm new codes) |next|
        company::come("MPI_Comm_spawn_multiple", handle(comm), int(root), next);
    MPI_Comm_accept(port info root comm new) |next| company::come("MPI_Comm_accept", handle(comm), int(root), next);
    MPI_Comm_connect(port info root comm new) |next| company::come("MPI_Comm_connect", handle(comm), int(root), next);
    MPI_Comm_join(descriptor new) |next| {
        company::expect("MPI_Comm_join");
        next()
    };

    MPI_File_open(comm name mode info file) |next| {
        let wanted =
            || Wanted { comm: handle(comm), name: string(name), mode: int(mode), hints: settings::hints_of(handle(info)) };
        opening::open(wanted, next, &CPlace(file))
    };
    MPI_File_close(file) |next| closing::close(file_at(file), next);
    MPI_File_set_view(file displacement unit tile representation info) |next|
        control::set_view(file as u64, displacement as i64, [handle(unit), handle(tile)], string(representation), next);
    MPI_File_get_info(file info) |next| {
        // SAFETY: MPI has stored a handle there.
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

accesses! {
    now offset false short: MPI_File_read_at MPI_File_read_at_all;
    now Individual false short: MPI_File_read MPI_File_read_all;
    now Shared false short: MPI_File_read_shared;
    now Ordered false short: MPI_File_read_ordered;
    later offset false short: MPI_File_iread_at MPI_File_iread_at_all;
    later Individual false short: MPI_File_iread MPI_File_iread_all;
    later Shared false short: MPI_File_iread_shared;
    begin offset false short: MPI_File_read_at_all_begin;
    begin Individual false short: MPI_File_read_all_begin;
    begin Ordered false short: MPI_File_read_ordered_begin;
    now offset true short: MPI_File_write_at MPI_File_write_at_all;
    now Individual true short: MPI_File_write MPI_File_write_all;
    now Shared true short: MPI_File_write_shared;
    now Ordered true short: MPI_File_write_ordered;
    later offset true short: MPI_File_iwrite_at MPI_File_iwrite_at_all;
    later Individual true short: MPI_File_iwrite MPI_File_iwrite_all;
    later Shared true short: MPI_File_iwrite_shared;
    begin offset true short: MPI_File_write_at_all_begin;
    begin Individual true short: MPI_File_write_all_begin;
    begin Ordered true short: MPI_File_write_ordered_begin;
}

// MPI 4's functions.
#[cfg(mpi_4)]
accesses! {
    now offset false long: MPI_File_read_at_c MPI_File_read_at_all_c;
    now Individual false long: MPI_File_read_c MPI_File_read_all_c;
    now Shared false long: MPI_File_read_shared_c;
    now Ordered false long: MPI_File_read_ordered_c;
    later offset false long: MPI_File_iread_at_c MPI_File_iread_at_all_c;
    later Individual false long: MPI_File_iread_c MPI_File_iread_all_c;
    later Shared false long: MPI_File_iread_shared_c;
    begin offset false long: MPI_File_read_at_all_begin_c;
    begin Individual false long: MPI_File_read_all_begin_c;
    begin Ordered false long: MPI_File_read_ordered_begin_c;
    now offset true long: MPI_File_write_at_c MPI_File_write_at_all_c;
    now Individual true long: MPI_File_write_c MPI_File_write_all_c;
    now Shared true long: MPI_File_write_shared_c;
    now Ordered true long: MPI_File_write_ordered_c;
    later offset true long: MPI_File_iwrite_at_c MPI_File_iwrite_at_all_c;
    later Individual true long: MPI_File_iwrite_c MPI_File_iwrite_all_c;
    later Shared true long: MPI_File_iwrite_shared_c;
    begin offset true long: MPI_File_write_at_all_begin_c;
    begin Individual true long: MPI_File_write_all_begin_c;
    begin Ordered true long: MPI_File_write_ordered_begin_c;
}

calls! {
    MPI_File_read_at_all_end(file buf status) |next|
        access::end(file as u64, "MPI_File_read_at_all", Status::C(status), next);
    MPI_File_read_all_end(file buf status) |next|
        access::end(file as u64, "MPI_File_read_all", Status::C(status), next);
    MPI_File_read_ordered_end(file buf status) |next|
        access::end(file as u64, "MPI_File_read_ordered", Status::C(status), next);
    MPI_File_write_at_all_end(file buf status) |next|
        access::end(file as u64, "MPI_File_write_at_all", Status::C(status), next);
    MPI_File_write_all_end(file buf status) |next|
        access::end(file as u64, "MPI_File_write_all", Status::C(status), next);
    MPI_File_write_ordered_end(file buf status) |next|
        access::end(file as u64, "MPI_File_write_ordered", Status::C(status), next);
}

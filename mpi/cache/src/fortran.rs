//! MPI's functions for Fortran callers, where Fortran's calls bypass the C functions: all functions in Open MPI; in
//! MPICH the functions of `mpi_f08` without buffers.

use crate::creation::Creation;
use crate::{completion, creation, ffi, news, pools, report, requests};
use std::ffi::c_int;
use vgasnet_mpi_front::{comm_of, fortran, group_of, info_of, request_of, win_of};

#[cfg(open_mpi)]
#[path = "fortran_buffers.rs"]
mod buffers;

/// The integer at an address.
fn int(place: usize) -> c_int {
    // SAFETY: Fortran passes an integer.
    unsafe { *(place as *const c_int) }
}

fn win(place: usize) -> u64 {
    win_of(int(place))
}

fn request(array: usize) -> impl Fn(usize) -> u64 {
    move |index| request_of(int(array + index * size_of::<c_int>()))
}

fn is_null(array: usize) -> impl Fn(usize) -> bool {
    move |index| request(array)(index) == ffi::constants().request_null
}

fn one(array: usize, next: impl Fn() -> c_int) -> c_int {
    requests::complete(1, request(array), is_null(array), next)
}

fn some(count: usize, array: usize, next: impl Fn() -> c_int) -> c_int {
    requests::complete(int(count), request(array), is_null(array), next)
}

fn make(call: &'static str, [unit, info, comm, place]: [usize; 4], next: impl Fn() -> c_int) -> c_int {
    let creation = Creation { call, unit: i64::from(int(unit)), info: info_of(int(info)), comm: comm_of(int(comm)) };
    creation::create(&creation, next, || win(place))
}

fortran! {
    mpi_win_allocate_ mpi_win_allocate_cptr_, mpi_win_allocate_f08_ => (size unit info comm base place) |next|
        news::after(|| make("MPI_Win_allocate", [unit, info, comm, place], next));
    mpi_win_allocate_shared_ mpi_win_allocate_shared_cptr_, mpi_win_allocate_shared_f08_ => (size unit info comm base place) |next|
        news::after(|| creation::create_other(next));
    mpi_win_create_dynamic_, mpi_win_create_dynamic_f08_ => (info comm place) |next| news::after(|| creation::create_other(next));
    mpi_win_free_, mpi_win_free_f08_ => (place) |next| news::after(|| creation::free(win(place), next));
    mpi_win_set_info_, mpi_win_set_info_f08_ => (place info) |next|
        creation::set_info(win(place), info_of(int(info)), next);

    mpi_win_flush_, mpi_win_flush_f08_ => (rank place) |next| news::after(|| completion::flush(win(place), int(rank), true, next));
    mpi_win_flush_local_, mpi_win_flush_local_f08_ => (rank place) |next|
        news::after(|| completion::flush(win(place), int(rank), false, next));
    mpi_win_flush_all_, mpi_win_flush_all_f08_ => (place) |next| news::after(|| completion::flush_all(win(place), true, next));
    mpi_win_flush_local_all_, mpi_win_flush_local_all_f08_ => (place) |next| news::after(|| completion::flush_all(win(place), false, next));
    mpi_win_fence_, mpi_win_fence_f08_ => (assert place) |next| news::after(|| completion::fence(win(place), int(assert), next));
    mpi_win_lock_, mpi_win_lock_f08_ => (kind rank assert place) |next| news::after(|| completion::lock_one(win(place), int(rank), next));
    mpi_win_unlock_, mpi_win_unlock_f08_ => (rank place) |next| news::after(|| completion::unlock_one(win(place), int(rank), next));
    mpi_win_lock_all_, mpi_win_lock_all_f08_ => (assert place) |next| news::after(|| completion::lock_all(win(place), next));
    mpi_win_unlock_all_, mpi_win_unlock_all_f08_ => (place) |next| news::after(|| completion::unlock_all(win(place), next));
    mpi_win_start_, mpi_win_start_f08_ => (group assert place) |next|
        news::after(|| completion::start(win(place), group_of(int(group)), next));
    mpi_win_complete_, mpi_win_complete_f08_ => (place) |next| news::after(|| completion::complete(win(place), next));
    mpi_win_post_, mpi_win_post_f08_ => (group assert place) |next| news::after(|| completion::post(win(place), int(assert), next));
    mpi_win_wait_, mpi_win_wait_f08_ => (place) |next| news::after(|| completion::wait(win(place), next, || true));
    mpi_win_test_, mpi_win_test_f08_ => (place flag) |next|
        news::if_found(|| completion::wait(win(place), next, || int(flag) != 0), flag);
    mpi_win_sync_, mpi_win_sync_f08_ => (place) |next| news::after(|| completion::sync(win(place), next));

    mpi_wait_, mpi_wait_f08_ => (array status) |next| news::after(|| one(array, next));
    mpi_waitall_, mpi_waitall_f08_ => (count array statuses) |next| news::after(|| some(count, array, next));
    mpi_waitany_, mpi_waitany_f08_ => (count array index status) |next| news::after(|| some(count, array, next));
    mpi_waitsome_, mpi_waitsome_f08_ => (count array done indices statuses) |next| news::after(|| some(count, array, next));
    mpi_test_, mpi_test_f08_ => (array flag status) |next| news::if_found(|| one(array, next), flag);
    mpi_testall_, mpi_testall_f08_ => (count array flag statuses) |next| news::if_found(|| some(count, array, next), flag);
    mpi_testany_, mpi_testany_f08_ => (count array index flag status) |next| news::if_found(|| some(count, array, next), flag);
    mpi_testsome_, mpi_testsome_f08_ => (count array done indices statuses) |next| news::after(|| some(count, array, next));
    mpi_request_get_status_, mpi_request_get_status_f08_ => (array flag status) |next|
        news::if_found(|| requests::look(request(array)(0), next, || int(flag) != 0), flag);
    mpi_request_free_, mpi_request_free_f08_ => (array) |next| requests::free(|| request(array)(0), next);

    mpi_finalize_, mpi_finalize_f08_ => () |next| {
        report::at_end();
        pools::at_end();
        next()
    };
}

//! MPI's functions about windows and requests, defined by the library.

use crate::creation::Creation;
use crate::gets::{Buffer, Get};
use crate::window::Effect;
use crate::writers::Write;
use crate::{completion, creation, ffi, gets, news, pools, report, requests, windows, writers};
use std::ffi::c_int;
use vgasnet_mpi_front::{Arguments, C, calls};

/// Whether MPI has set a flag.
fn is_set(flag: usize) -> bool {
    // SAFETY: the caller has an integer there for MPI.
    unsafe { *(flag as *const c_int) != 0 }
}

fn make<A: Arguments>(call: &'static str, [unit, info, comm, win]: [usize; 4], next: impl Fn() -> c_int) -> c_int {
    let creation = Creation { call, unit: A::count(unit), info: A::info(info), comm: A::comm(comm) };
    creation::create(&creation, next, || A::win_at(win))
}

/// A call that may complete requests of an array.
#[inline]
fn complete<A: Arguments>(count: c_int, array: usize, next: impl Fn() -> c_int) -> c_int {
    let handle = |index| A::request_at(array, index);
    requests::complete(count, handle, |index| handle(index) == ffi::constants().request_null, next)
}

/// A get of these arguments.
#[inline]
fn get_of<A: Arguments>(arguments: [usize; 8]) -> Get {
    let [origin, origin_count, origin_type, target, displacement, target_count, target_type, win] = arguments;
    Get {
        origin,
        origin_count: A::count(origin_count),
        origin_type: A::datatype(origin_type),
        target: A::int(target),
        displacement: A::long(displacement),
        target_count: A::count(target_count),
        target_type: A::datatype(target_type),
        win: A::win(win),
        is_atomic: false,
    }
}

/// Out of line, so that calls passed on unchanged save no registers.
#[inline(never)]
fn get<A: Arguments>(arguments: [usize; 8], next: impl Fn() -> c_int) -> c_int {
    // SAFETY: the arguments come from a caller of MPI.
    unsafe { gets::get(&get_of::<A>(arguments), next) }
}

fn rget<A: Arguments>(get: &Get, request: usize, next: impl Fn() -> c_int) -> c_int {
    // SAFETY: there is room for the request.
    let complete = || A::set_request(request, |place| unsafe { ffi::completed_request(place) });
    // SAFETY: the arguments come from a caller of MPI.
    unsafe { gets::rget(get, next, complete, || A::request_at(request, 0)) }
}

/// `MPI_Get_accumulate`, which is a get if it changes nothing. The arguments are as for a get into the result buffer.
fn get_accumulate<A: Arguments>(arguments: [usize; 8], op: usize, next: impl Fn() -> c_int) -> c_int {
    if !windows::is_any_cached() {
        return next();
    }
    let get = get_of::<A>(arguments);
    if ffi::is_no_op(A::op(op)) {
        // SAFETY: as for `get`.
        return unsafe { gets::get(&Get { is_atomic: true, ..get }, next) };
    }
    writers::write(&write_of(&get), Effect::Fetch, next)
}

/// `MPI_Rget_accumulate`.
fn rget_accumulate<A: Arguments>(arguments: [usize; 8], op: usize, request: usize, next: impl Fn() -> c_int) -> c_int {
    if !windows::is_any_cached() {
        return next();
    }
    let get = get_of::<A>(arguments);
    if ffi::is_no_op(A::op(op)) {
        return rget::<A>(&Get { is_atomic: true, ..get }, request, next);
    }
    writers::write_by_request(&write_of(&get), next, || A::request_at(request, 0))
}

/// The write of an accumulate that fetches the bytes of this get.
fn write_of(get: &Get) -> Write {
    let &Get { target, displacement, target_count: count, target_type: datatype, win, .. } = get;
    Write { target, displacement, count, datatype, win, result: Some(Buffer::of(get)) }
}

/// The write of an operation.
#[inline]
fn to<A: Arguments>([target, displacement, count, datatype, win]: [usize; 5]) -> Write {
    Write { count: A::count(count), ..one_to::<A>([target, displacement, datatype, win]) }
}

/// The write of one element.
#[inline]
fn one_to<A: Arguments>([target, displacement, datatype, win]: [usize; 4]) -> Write {
    let (target, displacement) = (A::int(target), A::long(displacement));
    Write { target, displacement, count: 1, datatype: A::datatype(datatype), win: A::win(win), result: None }
}

/// The write of one element, which the operation fetches.
#[inline]
fn fetching<A: Arguments>(result: usize, arguments: [usize; 4]) -> Write {
    let write = one_to::<A>(arguments);
    Write { result: Some(Buffer { address: result, count: 1, datatype: write.datatype }), ..write }
}

calls! {
    [c large fortran_buffers] {
        MPI_Win_create mpi_win_create (base size unit info comm win) |next|
            news::after(|| make::<Arg>("MPI_Win_create", [unit, info, comm, win], next));
    }
    [c large fortran fortran_cptr] {
        MPI_Win_allocate mpi_win_allocate (size unit info comm base win) |next|
            news::after(|| make::<Arg>("MPI_Win_allocate", [unit, info, comm, win], next));
        MPI_Win_allocate_shared mpi_win_allocate_shared (size unit info comm base win) |next|
            news::after(|| creation::create_other(next));
    }
    [c fortran] {
        MPI_Win_create_dynamic mpi_win_create_dynamic (info comm win) |next| news::after(|| creation::create_other(next));
        MPI_Win_free mpi_win_free (win) |next| news::after(|| creation::free(Arg::win_at(win), next));
        MPI_Win_set_info mpi_win_set_info (win info) |next| creation::set_info(Arg::win(win), Arg::info(info), next);
    }
    [c] {
        // Only dynamic windows have attached memory, and they are not cached.
        MPI_Win_attach (win base size) |next| next();
        MPI_Win_detach (win base) |next| next();
    }
}

calls! {
    [c large fortran_buffers] {
        MPI_Get mpi_get (origin origin_count origin_type target displacement target_count target_type win) |next| {
            // Tested before the arguments are converted: so the call compiles to a jump.
            if !windows::is_any_cached() {
                return next();
            }
            if let Some(error) = gets::leave_at_once(Arg::win(win), Arg::int(target), next) {
                return error;
            }
            get::<Arg>([origin, origin_count, origin_type, target, displacement, target_count, target_type, win], next)
        };
        MPI_Rget mpi_rget (origin origin_count origin_type target displacement target_count target_type win request) |next| {
            if !windows::is_any_cached() {
                return next();
            }
            if let Some(error) = gets::leave_at_once(Arg::win(win), Arg::int(target), next) {
                return error;
            }
            let arguments = [origin, origin_count, origin_type, target, displacement, target_count, target_type, win];
            rget::<Arg>(&get_of::<Arg>(arguments), request, next)
        };
        MPI_Put mpi_put (origin origin_count origin_type target displacement count datatype win) |next|
            writers::write(&to::<Arg>([target, displacement, count, datatype, win]), Effect::Write, next);
        MPI_Rput mpi_rput (origin origin_count origin_type target displacement count datatype win request) |next|
            writers::write(&to::<Arg>([target, displacement, count, datatype, win]), Effect::Write, next);
        MPI_Accumulate mpi_accumulate (origin origin_count origin_type target displacement count datatype op win) |next|
            writers::update(&to::<Arg>([target, displacement, count, datatype, win]), Arg::op(op), Effect::Write, next);
        MPI_Raccumulate mpi_raccumulate (origin origin_count origin_type target displacement count datatype op win request) |next|
            writers::update(&to::<Arg>([target, displacement, count, datatype, win]), Arg::op(op), Effect::Write, next);
        MPI_Get_accumulate mpi_get_accumulate (origin origin_count origin_type result result_count result_type target displacement
            count datatype op win) |next|
            get_accumulate::<Arg>([result, result_count, result_type, target, displacement, count, datatype, win], op, next);
        MPI_Rget_accumulate mpi_rget_accumulate (origin origin_count origin_type result result_count result_type target displacement
            count datatype op win request) |next| {
            let arguments = [result, result_count, result_type, target, displacement, count, datatype, win];
            rget_accumulate::<Arg>(arguments, op, request, next)
        };
    }
    [c fortran_buffers] {
        MPI_Fetch_and_op mpi_fetch_and_op (origin result datatype target displacement op win) |next|
            writers::update(&fetching::<Arg>(result, [target, displacement, datatype, win]), Arg::op(op), Effect::Fetch, next);
        MPI_Compare_and_swap mpi_compare_and_swap (origin compare result datatype target displacement win) |next|
            writers::write(&fetching::<Arg>(result, [target, displacement, datatype, win]), Effect::Fetch, next);
    }
}

calls! {
    [c fortran] {
        MPI_Win_flush mpi_win_flush (rank win) |next|
            news::after_cached(next, move || completion::flush(Arg::win(win), Arg::int(rank), true, next));
        MPI_Win_flush_local mpi_win_flush_local (rank win) |next|
            news::after_cached(next, move || completion::flush(Arg::win(win), Arg::int(rank), false, next));
        MPI_Win_flush_all mpi_win_flush_all (win) |next|
            news::after_cached(next, move || completion::flush_all(Arg::win(win), true, next));
        MPI_Win_flush_local_all mpi_win_flush_local_all (win) |next|
            news::after_cached(next, move || completion::flush_all(Arg::win(win), false, next));
        MPI_Win_fence mpi_win_fence (assert win) |next|
            news::after(|| completion::fence(Arg::win(win), Arg::int(assert), next));
        MPI_Win_lock mpi_win_lock (kind rank assert win) |next|
            news::after(|| completion::lock_one(Arg::win(win), Arg::int(rank), next));
        MPI_Win_unlock mpi_win_unlock (rank win) |next|
            news::after(|| completion::unlock_one(Arg::win(win), Arg::int(rank), next));
        MPI_Win_lock_all mpi_win_lock_all (assert win) |next| news::after(|| completion::lock_all(Arg::win(win), next));
        MPI_Win_unlock_all mpi_win_unlock_all (win) |next| news::after(|| completion::unlock_all(Arg::win(win), next));
        MPI_Win_start mpi_win_start (group assert win) |next|
            news::after(|| completion::start(Arg::win(win), Arg::group(group), next));
        MPI_Win_complete mpi_win_complete (win) |next| news::after(|| completion::complete(Arg::win(win), next));
        MPI_Win_post mpi_win_post (group assert win) |next|
            news::after(|| completion::post(Arg::win(win), Arg::int(assert), next));
        MPI_Win_wait mpi_win_wait (win) |next| news::after(|| completion::wait(Arg::win(win), next, || true));
        MPI_Win_test mpi_win_test (win flag) |next|
            news::if_found(|| completion::wait(Arg::win(win), next, || is_set(flag)), flag);
        MPI_Win_sync mpi_win_sync (win) |next| news::after(|| completion::sync(Arg::win(win), next));

        MPI_Wait mpi_wait (request status) |next| news::after(|| complete::<Arg>(1, request, next));
        MPI_Waitall mpi_waitall (count array statuses) |next|
            news::after(|| complete::<Arg>(Arg::int(count), array, next));
        MPI_Waitany mpi_waitany (count array index status) |next|
            news::after(|| complete::<Arg>(Arg::int(count), array, next));
        MPI_Waitsome mpi_waitsome (count array done indices statuses) |next|
            news::after(|| complete::<Arg>(Arg::int(count), array, next));
        MPI_Test mpi_test (request flag status) |next| news::if_found(|| complete::<Arg>(1, request, next), flag);
        MPI_Testall mpi_testall (count array flag statuses) |next|
            news::if_found(|| complete::<Arg>(Arg::int(count), array, next), flag);
        MPI_Testany mpi_testany (count array index flag status) |next|
            news::if_found(|| complete::<Arg>(Arg::int(count), array, next), flag);
        MPI_Testsome mpi_testsome (count array done indices statuses) |next|
            news::after(|| complete::<Arg>(Arg::int(count), array, next));
        MPI_Request_get_status mpi_request_get_status (request flag status) |next|
            news::if_found(|| requests::look(Arg::request(request), next, || is_set(flag)), flag);
        MPI_Request_free mpi_request_free (request) |next| requests::free(|| Arg::request_at(request, 0), next);

        MPI_Finalize mpi_finalize () |next| {
            report::at_end();
            pools::at_end();
            next()
        };
    }
}

/// CLaMPI's function: the window's entries are stale.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "CLaMPI's name")]
pub extern "C" fn CLAMPI_Invalidate(win: usize) -> c_int {
    creation::invalidate(C::<false>::win(win))
}

//! MPI's functions defined by the library for C callers.

use crate::creation::Creation;
use crate::ffi;
use crate::gets::{Buffer, Get};
use crate::window::Effect;
use crate::writers::Write;
use crate::{completion, creation, gets, news, pools, report, requests, windows, writers};
use std::ffi::c_int;
use vgasnet_mpi_front::{HANDLE_BYTES, calls, handle, handle_at};

/// An `int` argument.
#[inline]
fn int(argument: usize) -> c_int {
    argument as c_int
}

/// A count passed as an `int`.
#[inline]
fn short(argument: usize) -> i64 {
    i64::from(int(argument))
}

/// A count, size or displacement that fills its register.
#[inline]
fn long(argument: usize) -> i64 {
    argument as i64
}

/// The handle at an address passed to MPI for it.
fn at(place: usize) -> u64 {
    // SAFETY: MPI has stored a handle there.
    unsafe { handle_at(place) }
}

/// Reads a handle of an array.
fn in_array(array: usize) -> impl Fn(usize) -> u64 {
    move |index| at(array + index * HANDLE_BYTES)
}

/// Whether MPI has set a flag.
fn is_set(flag: usize) -> bool {
    // SAFETY: the caller has an integer there for MPI.
    unsafe { *(flag as *const c_int) != 0 }
}

/// Whether a request in an array is the null request.
fn is_null(array: usize) -> impl Fn(usize) -> bool {
    move |index| in_array(array)(index) == ffi::constants().request_null
}

fn make(call: &'static str, unit: i64, info: usize, comm: usize, win: usize, next: impl Fn() -> c_int) -> c_int {
    let creation = Creation { call, unit, info: handle(info), comm: handle(comm) };
    creation::create(&creation, next, || at(win))
}

/// The arguments of a get or a put.
#[derive(Clone, Copy)]
struct Transfer {
    origin: usize,
    origin_count: i64,
    origin_type: usize,
    target: usize,
    displacement: usize,
    target_count: i64,
    target_type: usize,
    win: usize,
}

impl Transfer {
    #[inline]
    fn get(self) -> Get {
        Get {
            origin: self.origin,
            origin_count: self.origin_count,
            origin_type: handle(self.origin_type),
            target: int(self.target),
            displacement: long(self.displacement),
            target_count: self.target_count,
            target_type: handle(self.target_type),
            win: handle(self.win),
            is_atomic: false,
        }
    }

    /// `MPI_Get_accumulate`, which is a get if it changes nothing. The origin is the result buffer.
    fn get_accumulate(self, op: usize, next: impl Fn() -> c_int) -> c_int {
        if !windows::is_any_cached() {
            return next();
        }
        let get = self.get();
        if ffi::is_no_op(handle(op)) {
            // SAFETY: as for `get_now`.
            return unsafe { gets::get(&Get { is_atomic: true, ..get }, next) };
        }
        writers::write(&write_of(&get), Effect::Fetch, next)
    }

    /// `MPI_Rget_accumulate`.
    fn rget_accumulate(self, op: usize, request: usize, next: impl Fn() -> c_int) -> c_int {
        if !windows::is_any_cached() {
            return next();
        }
        let get = self.get();
        if ffi::is_no_op(handle(op)) {
            // SAFETY: as for `get_by_request`.
            let complete = || unsafe { ffi::completed_request(request) };
            // SAFETY: as above.
            return unsafe { gets::rget(&Get { is_atomic: true, ..get }, next, complete, || at(request)) };
        }
        writers::write_by_request(&write_of(&get), next, || at(request))
    }

    /// Out of line, so that calls passed on unchanged save no registers.
    #[inline(never)]
    fn get_now(self, next: impl Fn() -> c_int) -> c_int {
        // SAFETY: the arguments come from a caller of MPI.
        unsafe { gets::get(&self.get(), next) }
    }

    fn get_by_request(self, request: usize, next: impl Fn() -> c_int) -> c_int {
        // SAFETY: as above; there is room for the request.
        let complete = || unsafe { ffi::completed_request(request) };
        // SAFETY: as above.
        unsafe { gets::rget(&self.get(), next, complete, || at(request)) }
    }
}

/// The write of an accumulate that fetches the bytes of this get.
fn write_of(get: &Get) -> Write {
    let &Get { target, displacement, target_count: count, target_type: datatype, win, .. } = get;
    Write { target, displacement, count, datatype, win, result: Some(Buffer::of(get)) }
}

/// The write of an operation.
fn to(target: usize, displacement: usize, count: i64, datatype: usize, win: usize) -> Write {
    let (datatype, win) = (handle(datatype), handle(win));
    Write { target: int(target), displacement: long(displacement), count, datatype, win, result: None }
}

/// The write of an operation on one element, which it fetches.
fn to_one(result: usize, target: usize, displacement: usize, datatype: usize, win: usize) -> Write {
    let buffer = Buffer { address: result, count: 1, datatype: handle(datatype) };
    Write { result: Some(buffer), ..to(target, displacement, 1, datatype, win) }
}

calls! {
    MPI_Win_create(base size unit info comm win) |next|
        news::after(|| make("MPI_Win_create", short(unit), info, comm, win, next));
    MPI_Win_allocate(size unit info comm base win) |next|
        news::after(|| make("MPI_Win_allocate", short(unit), info, comm, win, next));
    MPI_Win_allocate_shared(size unit info comm base win) |next| news::after(|| creation::create_other(next));
    MPI_Win_create_dynamic(info comm win) |next| news::after(|| creation::create_other(next));
    MPI_Win_free(win) |next| news::after(|| creation::free(at(win), next));
    MPI_Win_set_info(win info) |next| creation::set_info(handle(win), handle(info), next);
    // Only dynamic windows have attached memory, and they are not cached.
    MPI_Win_attach(win base size) |next| next();
    MPI_Win_detach(win base) |next| next();

    MPI_Get(origin origin_count origin_type target displacement target_count target_type win) |next| {
        // Tested before the arguments are converted: so the call compiles to a jump.
        if !windows::is_any_cached() {
            return next();
        }
        if let Some(error) = gets::leave_at_once(handle(win), int(target), next) {
            return error;
        }
        let (origin_count, target_count) = (short(origin_count), short(target_count));
        Transfer { origin, origin_count, origin_type, target, displacement, target_count, target_type, win }.get_now(next)
    };
    MPI_Rget(origin origin_count origin_type target displacement target_count target_type win request) |next| {
        if !windows::is_any_cached() {
            return next();
        }
        if let Some(error) = gets::leave_at_once(handle(win), int(target), next) {
            return error;
        }
        let (origin_count, target_count) = (short(origin_count), short(target_count));
        Transfer { origin, origin_count, origin_type, target, displacement, target_count, target_type, win }
            .get_by_request(request, next)
    };

    MPI_Put(origin origin_count origin_type target displacement count datatype win) |next|
        writers::write(&to(target, displacement, short(count), datatype, win), Effect::Write, next);
    MPI_Rput(origin origin_count origin_type target displacement count datatype win request) |next|
        writers::write(&to(target, displacement, short(count), datatype, win), Effect::Write, next);
    MPI_Accumulate(origin origin_count origin_type target displacement count datatype op win) |next|
        writers::update(&to(target, displacement, short(count), datatype, win), handle(op), Effect::Write, next);
    MPI_Raccumulate(origin origin_count origin_type target displacement count datatype op win request) |next|
        writers::update(&to(target, displacement, short(count), datatype, win), handle(op), Effect::Write, next);
    MPI_Get_accumulate(origin origin_count origin_type result result_count result_type target displacement count datatype op win) |next| {
        let (origin_count, target_count) = (short(result_count), short(count));
        let (origin, origin_type, target_type) = (result, result_type, datatype);
        Transfer { origin, origin_count, origin_type, target, displacement, target_count, target_type, win }.get_accumulate(op, next)
    };
    MPI_Rget_accumulate(origin origin_count origin_type result result_count result_type target displacement count datatype op win
        request) |next| {
        let (origin_count, target_count) = (short(result_count), short(count));
        let (origin, origin_type, target_type) = (result, result_type, datatype);
        Transfer { origin, origin_count, origin_type, target, displacement, target_count, target_type, win }
            .rget_accumulate(op, request, next)
    };
    MPI_Fetch_and_op(origin result datatype target displacement op win) |next|
        writers::update(&to_one(result, target, displacement, datatype, win), handle(op), Effect::Fetch, next);
    MPI_Compare_and_swap(origin compare result datatype target displacement win) |next|
        writers::write(&to_one(result, target, displacement, datatype, win), Effect::Fetch, next);

    MPI_Win_flush(rank win) |next| news::after_cached(next, move || completion::flush(handle(win), int(rank), true, next));
    MPI_Win_flush_local(rank win) |next| news::after_cached(next, move || completion::flush(handle(win), int(rank), false, next));
    MPI_Win_flush_all(win) |next| news::after_cached(next, move || completion::flush_all(handle(win), true, next));
    MPI_Win_flush_local_all(win) |next| news::after_cached(next, move || completion::flush_all(handle(win), false, next));
    MPI_Win_fence(assert win) |next| news::after(|| completion::fence(handle(win), int(assert), next));
    MPI_Win_lock(kind rank assert win) |next| news::after(|| completion::lock_one(handle(win), int(rank), next));
    MPI_Win_unlock(rank win) |next| news::after(|| completion::unlock_one(handle(win), int(rank), next));
    MPI_Win_lock_all(assert win) |next| news::after(|| completion::lock_all(handle(win), next));
    MPI_Win_unlock_all(win) |next| news::after(|| completion::unlock_all(handle(win), next));
    MPI_Win_start(group assert win) |next| news::after(|| completion::start(handle(win), handle(group), next));
    MPI_Win_complete(win) |next| news::after(|| completion::complete(handle(win), next));
    MPI_Win_post(group assert win) |next| news::after(|| completion::post(handle(win), int(assert), next));
    MPI_Win_wait(win) |next| news::after(|| completion::wait(handle(win), next, || true));
    MPI_Win_test(win flag) |next|
        news::if_found(|| completion::wait(handle(win), next, || is_set(flag)), flag);
    MPI_Win_sync(win) |next| news::after(|| completion::sync(handle(win), next));

    MPI_Wait(request status) |next|
        news::after(|| requests::complete(1, in_array(request), is_null(request), next));
    MPI_Waitall(count array statuses) |next|
        news::after(|| requests::complete(int(count), in_array(array), is_null(array), next));
    MPI_Waitany(count array index status) |next|
        news::after(|| requests::complete(int(count), in_array(array), is_null(array), next));
    MPI_Waitsome(count array done indices statuses) |next|
        news::after(|| requests::complete(int(count), in_array(array), is_null(array), next));
    MPI_Test(request flag status) |next|
        news::if_found(|| requests::complete(1, in_array(request), is_null(request), next), flag);
    MPI_Testall(count array flag statuses) |next|
        news::if_found(|| requests::complete(int(count), in_array(array), is_null(array), next), flag);
    MPI_Testany(count array index flag status) |next|
        news::if_found(|| requests::complete(int(count), in_array(array), is_null(array), next), flag);
    MPI_Testsome(count array done indices statuses) |next|
        news::after(|| requests::complete(int(count), in_array(array), is_null(array), next));
    MPI_Request_get_status(request flag status) |next|
        news::if_found(|| requests::look(handle(request), next, || is_set(flag)), flag);
    MPI_Request_free(request) |next| requests::free(|| at(request), next);

    MPI_Finalize() |next| {
        report::at_end();
        pools::at_end();
        next()
    };
}

#[cfg(mpi_4)]
calls! {
    MPI_Win_create_c(base size unit info comm win) |next|
        news::after(|| make("MPI_Win_create_c", long(unit), info, comm, win, next));
    MPI_Win_allocate_c(size unit info comm base win) |next|
        news::after(|| make("MPI_Win_allocate_c", long(unit), info, comm, win, next));
    MPI_Win_allocate_shared_c(size unit info comm base win) |next| news::after(|| creation::create_other(next));

    MPI_Get_c(origin origin_count origin_type target displacement target_count target_type win) |next| {
        // Tested before the arguments are converted: so the call compiles to a jump.
        if !windows::is_any_cached() {
            return next();
        }
        let (origin_count, target_count) = (long(origin_count), long(target_count));
        Transfer { origin, origin_count, origin_type, target, displacement, target_count, target_type, win }.get_now(next)
    };
    MPI_Rget_c(origin origin_count origin_type target displacement target_count target_type win request) |next| {
        let (origin_count, target_count) = (long(origin_count), long(target_count));
        Transfer { origin, origin_count, origin_type, target, displacement, target_count, target_type, win }
            .get_by_request(request, next)
    };

    MPI_Put_c(origin origin_count origin_type target displacement count datatype win) |next|
        writers::write(&to(target, displacement, long(count), datatype, win), Effect::Write, next);
    MPI_Rput_c(origin origin_count origin_type target displacement count datatype win request) |next|
        writers::write(&to(target, displacement, long(count), datatype, win), Effect::Write, next);
    MPI_Accumulate_c(origin origin_count origin_type target displacement count datatype op win) |next|
        writers::update(&to(target, displacement, long(count), datatype, win), handle(op), Effect::Write, next);
    MPI_Raccumulate_c(origin origin_count origin_type target displacement count datatype op win request) |next|
        writers::update(&to(target, displacement, long(count), datatype, win), handle(op), Effect::Write, next);
    MPI_Get_accumulate_c(origin origin_count origin_type result result_count result_type target displacement count datatype op win) |next| {
        let (origin_count, target_count) = (long(result_count), long(count));
        let (origin, origin_type, target_type) = (result, result_type, datatype);
        Transfer { origin, origin_count, origin_type, target, displacement, target_count, target_type, win }.get_accumulate(op, next)
    };
    MPI_Rget_accumulate_c(origin origin_count origin_type result result_count result_type target displacement count datatype op win
        request) |next| {
        let (origin_count, target_count) = (long(result_count), long(count));
        let (origin, origin_type, target_type) = (result, result_type, datatype);
        Transfer { origin, origin_count, origin_type, target, displacement, target_count, target_type, win }
            .rget_accumulate(op, request, next)
    };
}

/// CLaMPI's function: the window's entries are stale.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "CLaMPI's name")]
pub extern "C" fn CLAMPI_Invalidate(win: usize) -> c_int {
    creation::invalidate(handle(win))
}

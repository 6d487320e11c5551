//! MPI's functions about windows and requests, defined by the library.

use crate::creation::Creation;
use crate::gets::Get;
use crate::reissue::Buffer;
use crate::window::Effect;
use crate::writers::Write;
use crate::{completion, creation, ffi, gets, news, pools, report, requests, windows, writers};
use std::ffi::c_int;
use vgasnet_mpi_front::kind::{Comm, Count, Datatype, Info, Int, Long, NewRequest, NewWin, Op, RequestAt, Win};
use vgasnet_mpi_front::{Argument, C, Language, calls};

fn make<L: Language>(
    call: &'static str,
    unit: Argument<'_, L, Count>,
    info: Argument<'_, L, Info>,
    comm: Argument<'_, L, Comm>,
    win: Argument<'_, L, NewWin>,
    next: impl Fn() -> c_int,
) -> c_int {
    let creation = Creation { call, unit: unit.read(), info: info.read(), comm: comm.read() };
    // SAFETY: it is called after MPI has returned success.
    creation::create(&creation, next, || unsafe { win.stored() })
}

/// The arguments of a get, not read yet.
struct GetArguments<'call, L> {
    origin: usize,
    origin_count: Argument<'call, L, Count>,
    origin_type: Argument<'call, L, Datatype>,
    target: Argument<'call, L, Int>,
    displacement: Argument<'call, L, Long>,
    target_count: Argument<'call, L, Count>,
    target_type: Argument<'call, L, Datatype>,
    win: Argument<'call, L, Win>,
}

impl<L: Language> GetArguments<'_, L> {
    /// The get of these arguments.
    ///
    /// # Safety
    ///
    /// MPI's caller has passed them to a get, or to an accumulate that gets the former bytes into `origin`. By MPI's
    /// rules the elements there are writable, and nobody else accesses them, until the operation is complete.
    #[inline]
    unsafe fn read(self) -> Get {
        let datatype = self.origin_type.read();
        let origin = Buffer { address: self.origin, count: self.origin_count.read(), datatype };
        let elements = (self.target_count.read(), self.target_type.read());
        // SAFETY: the arguments are a get's, and its elements in the origin are the get's until it is complete, as the
        // caller promises.
        unsafe { Get::new(origin, self.target.read(), self.displacement.read(), elements, self.win.read()) }
    }
}

/// `MPI_Get`. Out of line, so that calls passed on unchanged save no registers.
///
/// # Safety
///
/// MPI's caller has passed the arguments to a get. By MPI's rules the elements of the origin are writable, and nobody
/// else accesses them, until it is complete.
#[inline(never)]
unsafe fn get<L: Language>(arguments: GetArguments<'_, L>, next: impl Fn() -> c_int) -> c_int {
    // SAFETY: the arguments are a get's, and so are the elements of its origin, as the caller promises.
    gets::get(&unsafe { arguments.read() }, next)
}

fn rget<L: Language>(get: &Get, request: Argument<'_, L, NewRequest>, next: impl Fn() -> c_int) -> c_int {
    let complete = || request.store_made(|room| ffi::completed_request(&room));
    // SAFETY: it is called after MPI has returned success.
    gets::rget(get, next, complete, || unsafe { request.stored() })
}

/// `MPI_Get_accumulate`, which is a get if it changes nothing.
fn get_accumulate<L: Language>(get: Get, op: Argument<'_, L, Op>, next: impl Fn() -> c_int) -> c_int {
    if ffi::is_no_op(op.read()) {
        return gets::get(&get.atomic(), next);
    }
    writers::write(&write_of(&get), Effect::Fetch, next)
}

/// `MPI_Rget_accumulate`.
fn rget_accumulate<L: Language>(
    get: Get,
    op: Argument<'_, L, Op>,
    request: Argument<'_, L, NewRequest>,
    next: impl Fn() -> c_int,
) -> c_int {
    if ffi::is_no_op(op.read()) {
        return rget(&get.atomic(), request, next);
    }
    // SAFETY: it is called after MPI has returned success.
    writers::write_by_request(&write_of(&get), next, || unsafe { request.stored() })
}

/// The write of an accumulate that fetches the bytes of this get.
fn write_of(get: &Get) -> Write {
    let &Get { target, displacement, target_count: count, target_type: datatype, win, .. } = get;
    Write { target, displacement, count, datatype, win, result: Some(*get.origin()) }
}

/// The write of an operation.
#[inline]
fn to<L: Language>(
    target: Argument<'_, L, Int>,
    displacement: Argument<'_, L, Long>,
    count: Argument<'_, L, Count>,
    datatype: Argument<'_, L, Datatype>,
    win: Argument<'_, L, Win>,
) -> Write {
    Write { count: count.read(), ..one_to(target, displacement, datatype, win) }
}

/// The write of one element.
#[inline]
fn one_to<L: Language>(
    target: Argument<'_, L, Int>,
    displacement: Argument<'_, L, Long>,
    datatype: Argument<'_, L, Datatype>,
    win: Argument<'_, L, Win>,
) -> Write {
    let (target, displacement) = (target.read(), displacement.read());
    Write { target, displacement, count: 1, datatype: datatype.read(), win: win.read(), result: None }
}

/// The same write, by an operation that fetches the element.
#[inline]
fn fetching(write: Write, result: usize) -> Write {
    Write { result: Some(Buffer { address: result, count: 1, datatype: write.datatype }), ..write }
}

/// A call that may complete one request.
#[inline]
fn complete<L: Language>(request: Argument<'_, L, RequestAt>, next: impl Fn() -> c_int) -> c_int {
    requests::complete(request.alone(), next)
}

// SAFETY: by MPI's standard the functions have these parameters, of these kinds.
calls! {
    unsafe
    [c large fortran_buffers] {
        MPI_Win_create mpi_win_create (base size unit: Count info: Info comm: Comm win: NewWin) |next|
            news::after(|| make("MPI_Win_create", unit, info, comm, win, next));
    }
    [c large fortran fortran_cptr] {
        MPI_Win_allocate mpi_win_allocate (size unit: Count info: Info comm: Comm base win: NewWin) |next|
            news::after(|| make("MPI_Win_allocate", unit, info, comm, win, next));
        MPI_Win_allocate_shared mpi_win_allocate_shared (size unit info comm base win) |next|
            news::after(|| creation::create_other(next));
    }
    [c fortran] {
        MPI_Win_create_dynamic mpi_win_create_dynamic (info comm win) |next| news::after(|| creation::create_other(next));
        MPI_Win_free mpi_win_free (win: WinAt) |next| news::after(|| creation::free(win.read(), next));
        MPI_Win_set_info mpi_win_set_info (win: Win info: Info) |next| creation::set_info(win.read(), info.read(), next);
    }
    [c] {
        // Only dynamic windows have attached memory, and they are not cached.
        MPI_Win_attach (win base size) |next| next();
        MPI_Win_detach (win base) |next| next();
    }
}

// SAFETY: by MPI's standard the functions have these parameters, of these kinds.
calls! {
    unsafe
    [c large fortran_buffers] {
        MPI_Get mpi_get (origin origin_count: Count origin_type: Datatype target: Int displacement: Long target_count: Count
            target_type: Datatype win: Win) |next| {
            // Tested before the arguments are converted: so the call compiles to a jump.
            if !windows::is_any_cached() {
                return next();
            }
            if let Some(error) = gets::leave_at_once(win.read(), target.read(), next) {
                return error;
            }
            let arguments =
                GetArguments { origin, origin_count, origin_type, target, displacement, target_count, target_type, win };
            // SAFETY: MPI's caller leaves the origin to the get until it is complete.
            unsafe { get(arguments, next) }
        };
        MPI_Rget mpi_rget (origin origin_count: Count origin_type: Datatype target: Int displacement: Long target_count: Count
            target_type: Datatype win: Win request: NewRequest) |next| {
            if !windows::is_any_cached() {
                return next();
            }
            if let Some(error) = gets::leave_at_once(win.read(), target.read(), next) {
                return error;
            }
            let arguments =
                GetArguments { origin, origin_count, origin_type, target, displacement, target_count, target_type, win };
            // SAFETY: MPI's caller leaves the origin to the get until it is complete.
            rget(&unsafe { arguments.read() }, request, next)
        };
        MPI_Put mpi_put (origin origin_count origin_type target: Int displacement: Long count: Count datatype: Datatype win: Win)
            |next| writers::write(&to(target, displacement, count, datatype, win), Effect::Write, next);
        MPI_Rput mpi_rput (origin origin_count origin_type target: Int displacement: Long count: Count datatype: Datatype win: Win
            request) |next| writers::write(&to(target, displacement, count, datatype, win), Effect::Write, next);
        MPI_Accumulate mpi_accumulate (origin origin_count origin_type target: Int displacement: Long count: Count
            datatype: Datatype op: Op win: Win) |next|
            writers::update(&to(target, displacement, count, datatype, win), op.read(), Effect::Write, next);
        MPI_Raccumulate mpi_raccumulate (origin origin_count origin_type target: Int displacement: Long count: Count
            datatype: Datatype op: Op win: Win request) |next|
            writers::update(&to(target, displacement, count, datatype, win), op.read(), Effect::Write, next);
        MPI_Get_accumulate mpi_get_accumulate (origin origin_count origin_type result result_count: Count result_type: Datatype
            target: Int displacement: Long count: Count datatype: Datatype op: Op win: Win) |next| {
            if !windows::is_any_cached() {
                return next();
            }
            let arguments = GetArguments {
                origin: result,
                origin_count: result_count,
                origin_type: result_type,
                target,
                displacement,
                target_count: count,
                target_type: datatype,
                win,
            };
            // SAFETY: MPI's caller leaves the result buffer to the operation until it is complete.
            get_accumulate(unsafe { arguments.read() }, op, next)
        };
        MPI_Rget_accumulate mpi_rget_accumulate (origin origin_count origin_type result result_count: Count
            result_type: Datatype target: Int displacement: Long count: Count datatype: Datatype op: Op win: Win
            request: NewRequest) |next| {
            if !windows::is_any_cached() {
                return next();
            }
            let arguments = GetArguments {
                origin: result,
                origin_count: result_count,
                origin_type: result_type,
                target,
                displacement,
                target_count: count,
                target_type: datatype,
                win,
            };
            // SAFETY: MPI's caller leaves the result buffer to the operation until it is complete.
            rget_accumulate(unsafe { arguments.read() }, op, request, next)
        };
    }
    [c fortran_buffers] {
        MPI_Fetch_and_op mpi_fetch_and_op (origin result datatype: Datatype target: Int displacement: Long op: Op win: Win)
            |next| {
            let write = fetching(one_to(target, displacement, datatype, win), result);
            writers::update(&write, op.read(), Effect::Fetch, next)
        };
        MPI_Compare_and_swap mpi_compare_and_swap (origin compare result datatype: Datatype target: Int displacement: Long
            win: Win) |next| {
            let write = fetching(one_to(target, displacement, datatype, win), result);
            writers::write(&write, Effect::Fetch, next)
        };
    }
}

// SAFETY: by MPI's standard the functions have these parameters, of these kinds.
calls! {
    unsafe
    [c fortran] {
        MPI_Win_flush mpi_win_flush (rank: Int win: Win) |next|
            news::after_cached(next, move || completion::flush(win.read(), rank.read(), true, next));
        MPI_Win_flush_local mpi_win_flush_local (rank: Int win: Win) |next|
            news::after_cached(next, move || completion::flush(win.read(), rank.read(), false, next));
        MPI_Win_flush_all mpi_win_flush_all (win: Win) |next|
            news::after_cached(next, move || completion::flush_all(win.read(), true, next));
        MPI_Win_flush_local_all mpi_win_flush_local_all (win: Win) |next|
            news::after_cached(next, move || completion::flush_all(win.read(), false, next));
        MPI_Win_fence mpi_win_fence (assert: Int win: Win) |next|
            news::after(|| completion::fence(win.read(), assert.read(), next));
        MPI_Win_lock mpi_win_lock (kind rank: Int assert win: Win) |next|
            news::after(|| completion::lock_one(win.read(), rank.read(), next));
        MPI_Win_unlock mpi_win_unlock (rank: Int win: Win) |next|
            news::after(|| completion::unlock_one(win.read(), rank.read(), next));
        MPI_Win_lock_all mpi_win_lock_all (assert win: Win) |next| news::after(|| completion::lock_all(win.read(), next));
        MPI_Win_unlock_all mpi_win_unlock_all (win: Win) |next| news::after(|| completion::unlock_all(win.read(), next));
        MPI_Win_start mpi_win_start (group: Group assert win: Win) |next|
            news::after(|| completion::start(win.read(), group.read(), next));
        MPI_Win_complete mpi_win_complete (win: Win) |next| news::after(|| completion::complete(win.read(), next));
        MPI_Win_post mpi_win_post (group assert: Int win: Win) |next|
            news::after(|| completion::post(win.read(), assert.read(), next));
        MPI_Win_wait mpi_win_wait (win: Win) |next| news::after(|| completion::wait(win.read(), next, || true));
        MPI_Win_test mpi_win_test (win: Win flag: Flag) |next| {
            // SAFETY: it is called after MPI has returned success.
            let is_over = || unsafe { flag.is_set() };
            news::if_found(|| completion::wait(win.read(), next, is_over), flag)
        };
        MPI_Win_sync mpi_win_sync (win: Win) |next| news::after(|| completion::sync(win.read(), next));

        MPI_Wait mpi_wait (request: RequestAt status) |next| news::after(|| complete(request, next));
        MPI_Test mpi_test (request: RequestAt flag: Flag status) |next| news::if_found(|| complete(request, next), flag);
        MPI_Request_get_status mpi_request_get_status (request: Request flag: Flag status) |next| {
            // SAFETY: it is called after MPI has returned success.
            let is_complete = || unsafe { flag.is_set() };
            news::if_found(|| requests::look(request.read(), next, is_complete), flag)
        };
        // Of MPI 4.1.
        MPI_Request_get_status_all mpi_request_get_status_all (count: Int array: Requests flag: Flag statuses) |next| {
            // SAFETY: by MPI's standard the array has `count` requests.
            let requests = unsafe { array.of(count.read()) };
            news::if_found(|| requests::look_at_all(requests, next), flag)
        };
        MPI_Request_get_status_any mpi_request_get_status_any (count: Int array: Requests index flag: Flag status)
            |next| {
            // SAFETY: by MPI's standard the array has `count` requests.
            let requests = unsafe { array.of(count.read()) };
            news::if_found(|| requests::look_at_all(requests, next), flag)
        };
        MPI_Request_get_status_some mpi_request_get_status_some (count: Int array: Requests done indices statuses)
            |next| {
            // SAFETY: by MPI's standard the array has `count` requests.
            let requests = unsafe { array.of(count.read()) };
            news::after(|| requests::look_at_all(requests, next))
        };
        MPI_Request_free mpi_request_free (request: RequestAt) |next| requests::free(|| request.read(), next);
        MPI_Waitall mpi_waitall (count: Int array: Requests statuses) |next| {
            // SAFETY: by MPI's standard the array has `count` requests.
            let requests = unsafe { array.of(count.read()) };
            news::after(|| requests::complete(requests, next))
        };
        MPI_Waitany mpi_waitany (count: Int array: Requests index status) |next| {
            // SAFETY: by MPI's standard the array has `count` requests.
            let requests = unsafe { array.of(count.read()) };
            news::after(|| requests::complete(requests, next))
        };
        MPI_Waitsome mpi_waitsome (count: Int array: Requests done indices statuses) |next| {
            // SAFETY: by MPI's standard the array has `count` requests.
            let requests = unsafe { array.of(count.read()) };
            news::after(|| requests::complete(requests, next))
        };
        MPI_Testall mpi_testall (count: Int array: Requests flag: Flag statuses) |next| {
            // SAFETY: by MPI's standard the array has `count` requests.
            let requests = unsafe { array.of(count.read()) };
            news::if_found(|| requests::complete(requests, next), flag)
        };
        MPI_Testany mpi_testany (count: Int array: Requests index flag: Flag status) |next| {
            // SAFETY: by MPI's standard the array has `count` requests.
            let requests = unsafe { array.of(count.read()) };
            news::if_found(|| requests::complete(requests, next), flag)
        };
        MPI_Testsome mpi_testsome (count: Int array: Requests done indices statuses) |next| {
            // SAFETY: by MPI's standard the array has `count` requests.
            let requests = unsafe { array.of(count.read()) };
            news::after(|| requests::complete(requests, next))
        };

        MPI_Finalize mpi_finalize () |next| {
            report::at_end();
            pools::at_end();
            next()
        };
    }
}

/// CLaMPI's function: the window's entries are stale.
///
/// # Safety
///
/// The program passes the handle of a window, and frees the window only after the call.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "CLaMPI's name")]
pub unsafe extern "C" fn CLAMPI_Invalidate(win: usize) -> c_int {
    // SAFETY: the program has passed the word for a window's handle, as C passes handles.
    creation::invalidate(unsafe { C::<false>::handle::<Win>(win) })
}

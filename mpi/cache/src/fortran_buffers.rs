//! Open MPI's Fortran functions with buffers. MPICH's call the C functions.

use super::{int, make, win};
use crate::gets::{self, Buffer, Get};
use crate::window::Effect;
use crate::writers::{self, Write};
use crate::{ffi, news, windows};
use std::ffi::c_int;
use vgasnet_mpi_front::{fortran, op_of, request_of, request_to_fortran, type_of};

/// The address-sized integer at an address.
fn long(place: usize) -> i64 {
    // SAFETY: Fortran passes an integer of kind `MPI_ADDRESS_KIND`.
    unsafe { *(place as *const i64) }
}

/// The arguments of a get, in the order of C.
fn get_of(arguments: [usize; 8]) -> Get {
    let [origin, origin_count, origin_type, target, displacement, target_count, target_type, place] = arguments;
    Get {
        origin,
        origin_count: i64::from(int(origin_count)),
        origin_type: type_of(int(origin_type)),
        target: int(target),
        displacement: long(displacement),
        target_count: i64::from(int(target_count)),
        target_type: type_of(int(target_type)),
        win: win(place),
        is_atomic: false,
    }
}

fn get(arguments: [usize; 8], next: impl Fn() -> c_int) -> c_int {
    // SAFETY: the arguments come from a caller of MPI.
    unsafe { gets::get(&get_of(arguments), next) }
}

/// The arguments are as for a get into the result buffer.
fn get_accumulate(arguments: [usize; 8], op: usize, next: impl Fn() -> c_int) -> c_int {
    if !windows::is_any_cached() || !ffi::is_no_op(op_of(int(op))) {
        return writers::write(&write_part(arguments), Effect::Fetch, next);
    }
    let get = Get { is_atomic: true, ..get_of(arguments) };
    // SAFETY: as for `get`.
    unsafe { gets::get(&get, next) }
}

fn rget_accumulate(arguments: [usize; 8], op: usize, request: usize, next: impl Fn() -> c_int) -> c_int {
    if !windows::is_any_cached() || !ffi::is_no_op(op_of(int(op))) {
        return writers::write_by_request(&write_part(arguments), next, || request_of(int(request)));
    }
    rget(&Get { is_atomic: true, ..get_of(arguments) }, request, next)
}

/// The write.
fn write_part(arguments: [usize; 8]) -> Write {
    let [_, _, _, target, displacement, count, datatype, place] = arguments;
    let result = Some(Buffer::of(&get_of(arguments)));
    Write { result, ..write_of([target, displacement, count, datatype, place]) }
}

fn get_by_request(arguments: [usize; 8], request: usize, next: impl Fn() -> c_int) -> c_int {
    rget(&get_of(arguments), request, next)
}

fn rget(get: &Get, request: usize, next: impl Fn() -> c_int) -> c_int {
    let complete = || {
        let mut place: u64 = 0;
        let place = &raw mut place as usize;
        // SAFETY: there is room for a handle, which is 8 bytes in Open MPI.
        let (code, number) = unsafe { (ffi::completed_request(place), request_to_fortran(place)) };
        // SAFETY: the caller has an integer there.
        unsafe { *(request as *mut c_int) = number };
        code
    };
    // SAFETY: as above.
    unsafe { gets::rget(get, next, complete, || request_of(int(request))) }
}

fn write(arguments: [usize; 5], effect: Effect, next: impl Fn() -> c_int) -> c_int {
    writers::write(&write_of(arguments), effect, next)
}

fn update(arguments: [usize; 5], op: usize, effect: Effect, next: impl Fn() -> c_int) -> c_int {
    writers::update(&write_of(arguments), op_of(int(op)), effect, next)
}

fn write_of([target, displacement, count, datatype, place]: [usize; 5]) -> Write {
    Write {
        target: int(target),
        displacement: long(displacement),
        count: i64::from(int(count)),
        datatype: type_of(int(datatype)),
        win: win(place),
        result: None,
    }
}

/// The write of an operation on one element, which it fetches.
fn write_of_one(result: usize, [target, displacement, datatype, place]: [usize; 4]) -> Write {
    let buffer = Buffer { address: result, count: 1, datatype: type_of(int(datatype)) };
    Write { result: Some(buffer), ..write_of([target, displacement, one(), datatype, place]) }
}

/// The count of operations without a count argument.
static ONE: c_int = 1;

fn one() -> usize {
    &raw const ONE as usize
}

fortran! {
    mpi_win_create_, mpi_win_create_f08_ => (base size unit info comm place) |next|
        news::after(|| make("MPI_Win_create", [unit, info, comm, place], next));

    mpi_get_, mpi_get_f08_ => (o n t rank at count kind place) |next| get([o, n, t, rank, at, count, kind, place], next);
    mpi_rget_, mpi_rget_f08_ => (o n t rank at count kind place request) |next|
        get_by_request([o, n, t, rank, at, count, kind, place], request, next);

    mpi_put_, mpi_put_f08_ => (o n t rank at count kind place) |next| write([rank, at, count, kind, place], Effect::Write, next);
    mpi_rput_, mpi_rput_f08_ => (o n t rank at count kind place request) |next|
        write([rank, at, count, kind, place], Effect::Write, next);
    mpi_accumulate_, mpi_accumulate_f08_ => (o n t rank at count kind op place) |next|
        update([rank, at, count, kind, place], op, Effect::Write, next);
    mpi_raccumulate_, mpi_raccumulate_f08_ => (o n t rank at count kind op place request) |next|
        update([rank, at, count, kind, place], op, Effect::Write, next);
    mpi_get_accumulate_, mpi_get_accumulate_f08_ => (o n t r rn rt rank at count kind op place) |next|
        get_accumulate([r, rn, rt, rank, at, count, kind, place], op, next);
    mpi_rget_accumulate_, mpi_rget_accumulate_f08_ => (o n t r rn rt rank at count kind op place request) |next|
        rget_accumulate([r, rn, rt, rank, at, count, kind, place], op, request, next);
    mpi_fetch_and_op_, mpi_fetch_and_op_f08_ => (o r kind rank at op place) |next|
        writers::update(&write_of_one(r, [rank, at, kind, place]), op_of(int(op)), Effect::Fetch, next);
    mpi_compare_and_swap_, mpi_compare_and_swap_f08_ => (o c r kind rank at place) |next|
        writers::write(&write_of_one(r, [rank, at, kind, place]), Effect::Fetch, next);
}

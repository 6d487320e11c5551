//! Requests of `MPI_Rget` with bytes to keep and, in mode told, of operations with a completion to tell.

use crate::ffi::{self, SUCCESS};
use crate::pending::Ticket;
use crate::window::lock;
use crate::{completion, meter};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// By handle.
static REQUESTS: Mutex<BTreeMap<u64, Ticket>> = Mutex::new(BTreeMap::new());

/// Their number. While it is 0, calls about requests cost one load.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Changes the requests.
fn change<T>(work: impl FnOnce(&mut BTreeMap<u64, Ticket>) -> T) -> T {
    let mut requests = lock(&REQUESTS);
    let result = work(&mut requests);
    COUNT.store(requests.len(), Ordering::Relaxed);
    result
}

/// Notes a request. An older one of the same handle was completed by a function unknown to the library. It is not kept,
/// since its buffer may have been written since.
pub fn note(handle: u64, ticket: Ticket) {
    let before = change(|requests| requests.insert(handle, ticket));
    before.into_iter().for_each(completion::on_request_failed);
}

fn end(ticket: Ticket, error: c_int) {
    if error == SUCCESS { completion::on_request(ticket) } else { completion::on_request_failed(ticket) }
}

/// A call that may complete some of `count` requests. `handle` reads the handle of one; `is_null` returns whether it
/// has become the null request, and so is complete.
#[inline]
pub fn complete(
    count: c_int,
    handle: impl Fn(usize) -> u64,
    is_null: impl Fn(usize) -> bool,
    next: impl Fn() -> c_int,
) -> c_int {
    meter::complete(|| complete_metered(count, handle, is_null, next))
}

#[inline]
fn complete_metered(
    count: c_int,
    handle: impl Fn(usize) -> u64,
    is_null: impl Fn(usize) -> bool,
    next: impl Fn() -> c_int,
) -> c_int {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return next();
    }
    let handles: Vec<u64> = (0..usize::try_from(count).unwrap_or(0)).map(handle).collect();
    if ffi::is_thread_multiple() {
        complete_among_threads(&handles, is_null, next)
    } else {
        complete_alone(&handles, is_null, next)
    }
}

/// No other thread calls MPI meanwhile, so the complete handles are looked up afterwards. Each is looked up once, even
/// if the program waits for one of many again and again.
fn complete_alone(handles: &[u64], is_null: impl Fn(usize) -> bool, next: impl Fn() -> c_int) -> c_int {
    let null = ffi::constants().request_null;
    let error = next();
    for (_, handle) in handles.iter().enumerate().filter(|(at, handle)| **handle != null && is_null(*at)) {
        let ticket = change(|requests| requests.remove(handle));
        ticket.into_iter().for_each(|ticket| end(ticket, error));
    }
    error
}

/// As soon as a request is complete, another thread may get its handle. So all are taken out before.
fn complete_among_threads(handles: &[u64], is_null: impl Fn(usize) -> bool, next: impl Fn() -> c_int) -> c_int {
    let take = |requests: &mut BTreeMap<u64, Ticket>| -> Vec<(usize, u64, Ticket)> {
        let known = handles.iter().enumerate();
        known.filter_map(|(at, handle)| Some((at, *handle, requests.remove(handle)?))).collect()
    };
    let known = change(take);
    let error = next();
    let (done, left): (Vec<_>, Vec<_>) = known.into_iter().partition(|(at, ..)| is_null(*at));
    change(|requests| requests.extend(left.into_iter().map(|(_, handle, ticket)| (handle, ticket))));
    done.into_iter().for_each(|(_, _, ticket)| end(ticket, error));
    error
}

/// `MPI_Request_get_status`. A complete request leaves its buffer to the program, although it is yet to be freed.
pub fn look(handle: u64, next: impl Fn() -> c_int, is_complete: impl FnOnce() -> bool) -> c_int {
    let error = next();
    if COUNT.load(Ordering::Relaxed) > 0 && error == SUCCESS && is_complete() {
        let ticket = lock(&REQUESTS).get(&handle).copied();
        ticket.into_iter().for_each(completion::on_request);
    }
    error
}

/// `MPI_Request_free`. The bytes still arrive, with the next flush.
pub fn free(handle: impl Fn() -> u64, next: impl Fn() -> c_int) -> c_int {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return next();
    }
    let handle = handle();
    let ticket = change(|requests| requests.remove(&handle));
    let error = next();
    if let Some(ticket) = ticket.filter(|_| error != SUCCESS) {
        note(handle, ticket);
    }
    error
}

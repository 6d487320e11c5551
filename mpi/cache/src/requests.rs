//! Requests of `MPI_Rget` with bytes to keep and, in mode told, of operations with a completion to tell.

use crate::ffi::{self, SUCCESS};
use crate::locking::lock;
use crate::pending::Ticket;
use crate::{completion, meter};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use vgasnet_mpi_front::kind::Request;
use vgasnet_mpi_front::{Handle, Language, RequestArray};

type Tickets = BTreeMap<Handle<Request>, Ticket>;

/// By handle.
static REQUESTS: Mutex<Tickets> = Mutex::new(BTreeMap::new());

/// Their number. While it is 0, calls about requests cost one load.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Changes the requests.
fn change<T>(work: impl FnOnce(&mut Tickets) -> T) -> T {
    let mut requests = lock(&REQUESTS);
    let result = work(&mut requests);
    COUNT.store(requests.len(), Ordering::Relaxed);
    result
}

/// Notes a request. An older one of the same handle was completed by a function unknown to the library. It is not kept,
/// since its buffer may have been written since.
pub fn note(handle: Handle<Request>, ticket: Ticket) {
    let before = change(|requests| requests.insert(handle, ticket));
    before.into_iter().for_each(completion::on_request_failed);
}

fn end(ticket: Ticket, error: c_int) {
    if error == SUCCESS { completion::on_request(ticket) } else { completion::on_request_failed(ticket) }
}

/// A call that may complete some of these requests. A request that has become the null request is complete.
#[inline]
pub fn complete<L: Language>(requests: RequestArray<'_, L>, next: impl Fn() -> c_int) -> c_int {
    meter::complete(|| complete_metered(requests, next))
}

#[inline]
fn complete_metered<L: Language>(requests: RequestArray<'_, L>, next: impl Fn() -> c_int) -> c_int {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return next();
    }
    let handles: Vec<Handle<Request>> = (0..requests.count()).map(|index| requests.handle(index)).collect();
    let is_complete = |index| is_null(requests.handle(index));
    if ffi::is_thread_multiple() {
        complete_among_threads(&handles, is_complete, next)
    } else {
        complete_alone(&handles, is_complete, next)
    }
}

fn is_null(handle: Handle<Request>) -> bool {
    handle.bits() == ffi::constants().request_null
}

/// No other thread calls MPI meanwhile, so the complete handles are looked up afterwards. Each is looked up once, even
/// if the program waits for one of many again and again.
fn complete_alone(handles: &[Handle<Request>], is_complete: impl Fn(usize) -> bool, next: impl Fn() -> c_int) -> c_int {
    let error = next();
    for (_, handle) in handles.iter().enumerate().filter(|(at, handle)| !is_null(**handle) && is_complete(*at)) {
        let ticket = change(|requests| requests.remove(handle));
        ticket.into_iter().for_each(|ticket| end(ticket, error));
    }
    error
}

/// As soon as a request is complete, another thread may get its handle. So all are taken out before.
fn complete_among_threads(
    handles: &[Handle<Request>],
    is_complete: impl Fn(usize) -> bool,
    next: impl Fn() -> c_int,
) -> c_int {
    let take = |requests: &mut Tickets| -> Vec<(usize, Handle<Request>, Ticket)> {
        let known = handles.iter().enumerate();
        known.filter_map(|(at, handle)| Some((at, *handle, requests.remove(handle)?))).collect()
    };
    let known = change(take);
    let error = next();
    let (done, left): (Vec<_>, Vec<_>) = known.into_iter().partition(|(at, ..)| is_complete(*at));
    change(|requests| requests.extend(left.into_iter().map(|(_, handle, ticket)| (handle, ticket))));
    done.into_iter().for_each(|(_, _, ticket)| end(ticket, error));
    error
}

/// `MPI_Request_get_status`. A complete request leaves its buffer to the program, although it is yet to be freed.
pub fn look(handle: Handle<Request>, next: impl Fn() -> c_int, is_complete: impl FnOnce() -> bool) -> c_int {
    let error = next();
    if COUNT.load(Ordering::Relaxed) > 0 && error == SUCCESS && is_complete() {
        let ticket = lock(&REQUESTS).get(&handle).copied();
        ticket.into_iter().for_each(completion::on_request);
    }
    error
}

/// `MPI_Request_get_status` of MPI 4.1, for several requests. The statuses do not tell all complete ones, so each is
/// asked for.
pub fn look_at_all<L: Language>(requests: RequestArray<'_, L>, next: impl Fn() -> c_int) -> c_int {
    let error = next();
    if COUNT.load(Ordering::Relaxed) > 0 && error == SUCCESS {
        let handles = (0..requests.count()).map(|index| requests.handle(index)).filter(|handle| !is_null(*handle));
        let tickets = handles.filter_map(|handle| Some((handle, lock(&REQUESTS).get(&handle).copied()?)));
        tickets.filter(|(handle, _)| ffi::is_complete(*handle)).for_each(|(_, ticket)| completion::on_request(ticket));
    }
    error
}

/// `MPI_Request_free`. The bytes still arrive, with the next flush.
pub fn free(handle: impl Fn() -> Handle<Request>, next: impl Fn() -> c_int) -> c_int {
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

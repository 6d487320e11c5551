//! Requests of `MPI_Rget` whose bytes are kept when they have come.

use crate::completion;
use crate::ffi::{self, SUCCESS};
use crate::pending::Ticket;
use crate::window::lock;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// By handle. A call that may complete a request takes it out before: as soon as it is complete, another thread may get its handle.
static REQUESTS: Mutex<BTreeMap<u64, Ticket>> = Mutex::new(BTreeMap::new());

/// How many there are: where there is none, calls about requests cost one load.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Notes a request. One that is there already was completed by a function that the library does not know.
pub fn note(handle: u64, ticket: Ticket) {
    if ffi::is_complete_request(handle) {
        return completion::on_request(ticket);
    }
    let mut requests = lock(&REQUESTS);
    requests.insert(handle, ticket);
    COUNT.store(requests.len(), Ordering::Relaxed);
}

fn take(handle: u64) -> Option<Ticket> {
    let mut requests = lock(&REQUESTS);
    let ticket = requests.remove(&handle);
    COUNT.store(requests.len(), Ordering::Relaxed);
    ticket
}

/// A call that may complete some of so many requests. `handle` reads the handle of one, `is_null` says whether it is the null request
/// by now, which those are that are complete.
#[inline]
pub fn complete(
    count: c_int,
    handle: impl Fn(usize) -> u64,
    is_null: impl Fn(usize) -> bool,
    next: impl Fn() -> c_int,
) -> c_int {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return next();
    }
    let all = 0..usize::try_from(count).unwrap_or(0);
    let known: Vec<(usize, u64, Ticket)> =
        all.map(|at| (at, handle(at))).filter_map(|(at, handle)| Some((at, handle, take(handle)?))).collect();
    let error = next();
    for (at, handle, ticket) in known {
        match is_null(at) {
            false => note(handle, ticket),
            true if error == SUCCESS => completion::on_request(ticket),
            true => completion::on_request_failed(ticket),
        }
    }
    error
}

/// `MPI_Request_free`. The bytes come all the same, with the next flush.
pub fn free(handle: impl Fn() -> u64, next: impl Fn() -> c_int) -> c_int {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return next();
    }
    let handle = handle();
    let ticket = take(handle);
    let error = next();
    if let Some(ticket) = ticket.filter(|_| error != SUCCESS) {
        note(handle, ticket);
    }
    error
}

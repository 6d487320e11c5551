//! Requests of `MPI_Rget` whose bytes are kept when they have come.

use crate::completion;
use crate::ffi::SUCCESS;
use crate::pending::{self, Ticket};
use crate::window::lock;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// By handle. Requests that are complete from the beginning may share one: Open MPI has one for all of them.
static REQUESTS: Mutex<BTreeMap<u64, Vec<Ticket>>> = Mutex::new(BTreeMap::new());

/// How many there are: where there is none, calls about requests cost one load.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Notes a request.
pub fn note(handle: u64, ticket: Ticket) {
    let mut requests = lock(&REQUESTS);
    let same = requests.entry(handle).or_default();
    // What a flush has filed, or a request that was completed by a function that the library does not know.
    same.retain(|known| pending::is_underway(*known));
    same.push(ticket);
    COUNT.store(requests.len(), Ordering::Relaxed);
}

fn take(handle: u64) -> Option<Ticket> {
    let mut requests = lock(&REQUESTS);
    let same = requests.get_mut(&handle)?;
    let ticket = (!same.is_empty()).then(|| same.remove(0));
    if same.is_empty() {
        requests.remove(&handle);
    }
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
    let known: Vec<(usize, u64)> = {
        let requests = lock(&REQUESTS);
        let all = 0..usize::try_from(count).unwrap_or(0);
        all.map(|at| (at, handle(at))).filter(|(_, handle)| requests.contains_key(handle)).collect()
    };
    let error = next();
    for (_, handle) in known.into_iter().filter(|(at, _)| is_null(*at)) {
        match take(handle) {
            Some(ticket) if error == SUCCESS => completion::on_request(ticket),
            Some(ticket) => completion::on_request_failed(ticket),
            None => {}
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

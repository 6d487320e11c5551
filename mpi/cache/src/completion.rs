//! Calls that begin and end epochs and complete operations: completed gets are filed, and in mode told words are
//! raised.

use crate::ffi::{self, SUCCESS};
use crate::locking::lock;
use crate::near::Nearness;
use crate::pending::{self, Filed, Ticket, first_error};
use crate::reissue::reissue;
use crate::report::{COUNTS, count};
use crate::settings::Mode;
use crate::window::{Effect, Mark, Window, access};
use crate::{meter, progress, store, windows, words};
use std::ffi::c_int;
use std::sync::atomic::Ordering;
use vgasnet_mpi_front::Handle;
use vgasnet_mpi_front::kind::{Group, Win};

/// The operations in flight when a completion began.
struct InFlight {
    marks: Vec<Mark>,
    /// The last noted get.
    last: u64,
}

impl InFlight {
    fn of(window: &Window, number: u32) -> InFlight {
        InFlight::at(vec![window.mark(number)])
    }

    fn of_all(window: &Window) -> InFlight {
        InFlight::at(window.mark_all())
    }

    /// Takes the number after the marks: gets are noted before they are counted, so all marked ones are filed.
    fn at(marks: Vec<Mark>) -> InFlight {
        InFlight { marks, last: pending::last_number() }
    }

    /// MPI has completed all of them.
    fn settle(&self, window: &Window, is_there: bool) -> Filed {
        let settled = |filed: Filed, mark| filed.and(settle(window, mark, self.last, is_there));
        self.marks.iter().fold(Filed::default(), settled)
    }
}

fn settle(window: &Window, mark: &Mark, last: u64, is_there: bool) -> Filed {
    forget_read(window, mark.target);
    // SAFETY: `last` was noted before MPI was called, so MPI has completed these gets. The call has not returned to the
    // program.
    let filed = unsafe { pending::file(window.space, mark.target, last) };
    // A joined get may be within the mark. Its own thread must not find it done before it has its bytes.
    if !filed.lacks {
        window.on_done(mark, is_there);
    }
    filed
}

/// In mode checked, a get may bring news of writes to anything read before. Gets in flight are not kept either.
fn forget_read(window: &Window, number: u32) {
    if window.mode() == Mode::Checked {
        store::drop_target(window.space, number);
    }
}

/// A get is complete by its request.
pub fn on_request(ticket: Ticket) {
    let Some(window) = windows::of_space(ticket.space) else { return };
    if ticket.is_of_fetch() {
        return words::tell_one_fetch(window, ticket.target);
    }
    window.targets[ticket.target as usize].nearness.forget();
    forget_read(window, ticket.target);
    // SAFETY: the request is complete, and the call that found it so has not returned to the program.
    unsafe { pending::file_one(ticket) };
}

/// `MPI_Win_flush`, or `MPI_Win_flush_local` if not `is_there`. With nothing in flight it calls nothing.
#[inline]
pub fn flush(handle: Handle<Win>, rank: c_int, is_there: bool, next: impl Fn() -> c_int) -> c_int {
    meter::complete(|| flush_metered(handle, rank, is_there, next))
}

#[inline]
fn flush_metered(handle: Handle<Win>, rank: c_int, is_there: bool, next: impl Fn() -> c_int) -> c_int {
    let Some((window, target)) = windows::find_cached(handle).and_then(|window| Some((window, window.target(rank)?)))
    else {
        return next();
    };
    // Before the progress: another thread may note gets that were left to MPI.
    let has_left = !target.left.is_clear();
    if target.progress.is_done(is_there) && window.mode() != Mode::Off && window.is_passive(target) {
        // Gets left to MPI take nothing but MPI's call. Nothing of them is filed.
        if window.trial.is_left() {
            return next();
        }
        if !has_left {
            count(&COUNTS.flushes_saved);
            progress::on_saved_call();
            return SUCCESS;
        }
    }
    if !window.trial.is_left() {
        note_left(window, |number| number == rank as u32);
    }
    flush_one(window, rank as u32, is_there, next)
}

fn flush_one(window: &Window, number: u32, is_there: bool, next: impl Fn() -> c_int) -> c_int {
    let mut refused = SUCCESS;
    loop {
        let in_flight = InFlight::of(window, number);
        let error = window.targets[number as usize].nearness.complete(&next);
        if error != SUCCESS {
            return error;
        }
        // Before it counts as done: another thread that finds it done may tell of it.
        if is_there {
            words::tell(window, &in_flight.marks[0]);
        } else {
            words::tell_fetches(window, &in_flight.marks[0]);
        }
        let filed = in_flight.settle(window, is_there);
        refused = first_error(refused, filed.error);
        if !filed.lacks {
            return refused;
        }
        // Another thread is about to ask MPI for the bytes of this thread's joined get.
        std::thread::yield_now();
    }
}

/// Notes and counts the gets left to MPI at some targets. Gets asked for meanwhile are not kept: they may have the same
/// buffers. Where no epoch is open, none is in flight.
fn note_left(window: &Window, is_noted: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut noted = Vec::new();
    window.take_left(is_noted, |number| {
        if window.is_accessible(&window.targets[number as usize]) {
            _ = pending::note_anywhere(window.space, number);
            window.on_issued(number, Effect::Read);
            noted.push(number);
        }
    });
    noted
}

/// A window in mode off is about to be cached. Its gets in flight were not noted, as if left to MPI.
pub fn leave_open(window: &Window) {
    for mark in window.mark_all() {
        window.left.on_get(&window.targets[mark.target as usize].left, mark.target);
    }
}

/// The cache serves a window's gets again. Gets left to MPI are completed if the epoch allows it, else noted. Copies are
/// dropped if the window was written meanwhile.
#[cold]
pub fn catch_up(window: &Window) {
    window.left.see_writes(|| store::invalidate(window.space));
    for number in note_left(window, |_| true) {
        if window.is_passive(&window.targets[number as usize]) {
            // If MPI refuses, the gets stay noted.
            flush_local(window, number);
        }
    }
}

/// Completes the operations in flight to a target, locally.
pub fn flush_local(window: &Window, number: u32) -> c_int {
    flush_one(window, number, false, || ffi::flush_local(window.handle, number))
}

/// `MPI_Win_flush_all`, or `MPI_Win_flush_local_all`.
pub fn flush_all(handle: Handle<Win>, is_there: bool, next: impl Fn() -> c_int) -> c_int {
    meter::complete(|| flush_all_metered(handle, is_there, next))
}

fn flush_all_metered(handle: Handle<Win>, is_there: bool, next: impl Fn() -> c_int) -> c_int {
    let Some(window) = windows::find_cached(handle) else { return next() };
    // Before the progress, as in `flush`.
    let has_left = window.left.has_gets();
    if window.progress.is_done(is_there) && window.mode() != Mode::Off && window.is_any_passive() {
        if window.trial.is_left() {
            return next();
        }
        if !has_left {
            count(&COUNTS.flushes_saved);
            progress::on_saved_call();
            return SUCCESS;
        }
    }
    if !window.trial.is_left() {
        note_left(window, |_| true);
    }
    let mut refused = SUCCESS;
    loop {
        let in_flight = InFlight::of_all(window);
        let error = measure(window, &in_flight, &next);
        if error != SUCCESS {
            return error;
        }
        let tell = if is_there { words::tell } else { words::tell_fetches };
        in_flight.marks.iter().for_each(|mark| tell(window, mark));
        let filed = in_flight.settle(window, is_there);
        refused = first_error(refused, filed.error);
        window.forget_done();
        if !filed.lacks {
            return refused;
        }
        std::thread::yield_now();
    }
}

/// Completes and measures operations of several targets.
fn measure(window: &Window, in_flight: &InFlight, next: impl Fn() -> c_int) -> c_int {
    let targets = || in_flight.marks.iter().map(|mark| &window.targets[mark.target as usize].nearness);
    Nearness::complete_all(targets, next)
}

/// An epoch of another kind has begun, which ends the fence's epoch: MPI refuses its gets from now on.
fn end_fence(window: &Window) {
    window.access.fetch_and(!access::FENCED, Ordering::Relaxed);
}

/// `MPI_Win_lock`.
pub fn lock_one(handle: Handle<Win>, rank: c_int, next: impl Fn() -> c_int) -> c_int {
    let error = next();
    let Some(window) = windows::find(handle).filter(|_| error == SUCCESS) else { return error };
    end_fence(window);
    if let Some(target) = window.target(rank) {
        target.access.fetch_or(access::LOCKED, Ordering::Relaxed);
        window.locks.fetch_add(1, Ordering::Relaxed);
    }
    error
}

/// `MPI_Win_unlock`. In mode told the word is raised before the lock is released, since the next holder may read.
pub fn unlock_one(handle: Handle<Win>, rank: c_int, next: impl Fn() -> c_int) -> c_int {
    meter::complete(|| unlock_one_metered(handle, rank, next))
}

fn unlock_one_metered(handle: Handle<Win>, rank: c_int, next: impl Fn() -> c_int) -> c_int {
    let Some((window, target)) = windows::find(handle).and_then(|window| Some((window, window.target(rank)?))) else {
        return next();
    };
    let number = rank as u32;
    let in_flight = InFlight::of(window, number);
    if window.is_passive(target) {
        tell_before_unlock(window, &in_flight.marks[0]);
        if number == window.rank && window.words.is_some() {
            words::tell_own(window);
        }
    }
    let error = target.nearness.complete(&next);
    if error != SUCCESS {
        return error;
    }
    target.access.fetch_and(!access::LOCKED, Ordering::Relaxed);
    window.locks.fetch_sub(1, Ordering::Relaxed);
    // Behind the call: no get may be asked for during it.
    window.take_left(|left| left == number, |_| ());
    in_flight.settle(window, true).error
}

fn tell_before_unlock(window: &Window, mark: &Mark) {
    if words::is_untold(window, mark) && ffi::flush(window.handle, mark.target) == SUCCESS {
        words::tell(window, mark);
    }
}

/// `MPI_Win_lock_all`.
pub fn lock_all(handle: Handle<Win>, next: impl Fn() -> c_int) -> c_int {
    let error = next();
    if let Some(window) = windows::find(handle).filter(|_| error == SUCCESS) {
        end_fence(window);
        window.access.fetch_or(access::ALL_LOCKED, Ordering::Relaxed);
    }
    error
}

/// `MPI_Win_unlock_all`.
pub fn unlock_all(handle: Handle<Win>, next: impl Fn() -> c_int) -> c_int {
    meter::complete(|| unlock_all_metered(handle, next))
}

fn unlock_all_metered(handle: Handle<Win>, next: impl Fn() -> c_int) -> c_int {
    let Some(window) = windows::find(handle) else { return next() };
    let in_flight = InFlight::of_all(window);
    if window.words.is_some() && window.access.load(Ordering::Relaxed) & access::ALL_LOCKED != 0 {
        in_flight.marks.iter().for_each(|mark| tell_before_unlock(window, mark));
        words::tell_own(window);
    }
    let error = measure(window, &in_flight, next);
    if error == SUCCESS { end_all(window, &in_flight, access::ALL_LOCKED) } else { error }
}

/// An epoch with all targets has ended. Returns the error of a get that joined in vain.
fn end_all(window: &Window, in_flight: &InFlight, epoch: u32) -> c_int {
    window.access.fetch_and(!epoch, Ordering::Relaxed);
    window.take_left(|_| true, |_| ());
    let filed = in_flight.settle(window, true);
    window.forget_done();
    filed.error
}

/// `MPI_Win_fence`.
pub fn fence(handle: Handle<Win>, assert: c_int, next: impl Fn() -> c_int) -> c_int {
    meter::complete(|| fence_metered(handle, assert, next))
}

fn fence_metered(handle: Handle<Win>, assert: c_int, next: impl Fn() -> c_int) -> c_int {
    let Some(window) = windows::find(handle) else { return next() };
    let in_flight = InFlight::of_all(window);
    let error = measure(window, &in_flight, next);
    if error != SUCCESS {
        return error;
    }
    let refused = end_all(window, &in_flight, access::FENCED);
    let constants = ffi::constants();
    words::end_at_fence(window, &in_flight.marks);
    if assert & constants.no_succeed == 0 {
        window.access.fetch_or(access::FENCED, Ordering::Relaxed);
    }
    refused
}

/// `MPI_Win_start`.
pub fn start(handle: Handle<Win>, group: Handle<Group>, next: impl Fn() -> c_int) -> c_int {
    let error = next();
    let Some(window) = windows::find(handle).filter(|_| error == SUCCESS) else { return error };
    end_fence(window);
    // If the members are unknown, gets to them are not cached.
    let members = ffi::members(group, handle, window.targets.len()).unwrap_or_default();
    for number in &members {
        if let Some(target) = window.targets.get(*number as usize) {
            target.access.fetch_or(access::STARTED, Ordering::Relaxed);
        }
    }
    *lock(&window.started) = members;
    error
}

/// `MPI_Win_complete`. The targets tell of the writes, when they have waited.
pub fn complete(handle: Handle<Win>, next: impl Fn() -> c_int) -> c_int {
    meter::complete(|| complete_metered(handle, next))
}

fn complete_metered(handle: Handle<Win>, next: impl Fn() -> c_int) -> c_int {
    let Some(window) = windows::find(handle) else { return next() };
    let in_flight = InFlight::of_all(window);
    let error = measure(window, &in_flight, next);
    if error != SUCCESS {
        return error;
    }
    let refused = end_all(window, &in_flight, 0);
    for mark in &in_flight.marks {
        words::tell_fetches(window, mark);
        words::set_told(window, mark);
    }
    for number in std::mem::take(&mut *lock(&window.started)) {
        if let Some(target) = window.targets.get(number as usize) {
            target.access.fetch_and(!access::STARTED, Ordering::Relaxed);
        }
    }
    refused
}

/// `MPI_Win_post`. In mode told, others must not mistake older entries for this rank's new stores.
pub fn post(handle: Handle<Win>, assert: c_int, next: impl Fn() -> c_int) -> c_int {
    let Some(window) = windows::find(handle) else { return next() };
    if window.words.is_some() {
        let constants = ffi::constants();
        window.is_exposed_to_puts.store(assert & constants.no_put == 0, Ordering::Relaxed);
        if assert & constants.no_store == 0 {
            words::tell_own(window);
        }
    }
    let error = next();
    if error == SUCCESS {
        end_fence(window);
    }
    error
}

/// `MPI_Win_wait` and `MPI_Win_test`; `is_over` says whether the epoch has ended.
pub fn wait(handle: Handle<Win>, next: impl Fn() -> c_int, is_over: impl FnOnce() -> bool) -> c_int {
    let error = next();
    let Some(window) = windows::find(handle).filter(|_| error == SUCCESS && is_over()) else { return error };
    if window.words.is_some() && window.is_exposed_to_puts.load(Ordering::Relaxed) {
        words::tell_own(window);
    }
    error
}

/// `MPI_Win_sync`.
pub fn sync(handle: Handle<Win>, next: impl Fn() -> c_int) -> c_int {
    let error = next();
    if let Some(window) = windows::find(handle).filter(|window| error == SUCCESS && window.words.is_some()) {
        words::tell_own(window);
    }
    error
}

/// The bytes of gets joined to a failed one are requested again.
pub fn on_request_failed(ticket: Ticket) {
    let Some(window) = windows::of_space(ticket.space) else { return };
    reissue(pending::discard_one(ticket), window);
}

//! Writing operations drop the entries they overlap.

use crate::ffi::{self, SUCCESS};
use crate::pending::{self, Ticket};
use crate::reissue::Buffer;
use crate::settings::Mode;
use crate::window::{Effect, Target, Window};
use crate::{gets, requests, store, windows, words};
use std::ffi::c_int;
use vgasnet_mpi_front::Handle;
use vgasnet_mpi_front::kind::{Datatype, Op, Request, Win};

/// The write of an operation.
#[derive(Debug)]
pub struct Write {
    pub target: i32,
    pub displacement: i64,
    pub count: i64,
    pub datatype: Handle<Datatype>,
    pub win: Handle<Win>,
    /// Where it fetches to.
    pub result: Option<Buffer>,
}

/// Drops the entries overlapped by an operation.
fn drop_overlapped(window: &Window, target: &Target, write: &Write) {
    let number = write.target as u32;
    let range =
        ffi::span(write.datatype, write.count).and_then(|(low, bytes)| target.span(write.displacement, low, bytes));
    match range {
        Some((start, bytes)) => store::drop_range(window.space, number, start, bytes),
        None => store::drop_target(window.space, number),
    }
}

/// A write is about to be asked for, or was. While the window's gets are left to MPI, all copies are dropped once, before
/// the next get by the cache.
fn forget(window: &Window, target: &Target, write: &Write) {
    if window.trial.is_left() {
        window.left.on_write();
    } else {
        drop_overlapped(window, target, write);
    }
}

/// An operation that writes, and may fetch as well.
pub fn write(write: &Write, effect: Effect, next: impl Fn() -> c_int) -> c_int {
    let Some((window, target)) =
        windows::find_cached(write.win).and_then(|window| Some((window, window.target(write.target)?)))
    else {
        return next();
    };
    if window.mode() != Mode::Off {
        forget(window, target, write);
    }
    let error = next();
    if error == SUCCESS {
        window.on_issued(write.target as u32, effect);
        // Another thread may have begun a get before this write was counted, and its old bytes would be kept.
        if window.mode() != Mode::Off && ffi::is_thread_multiple() {
            forget(window, target, write);
        }
        if let Some(result) = write.result.as_ref().filter(|_| pending::has_any()) {
            result.overwrite(window);
        }
    }
    error
}

/// An operation that writes unless it is `MPI_NO_OP`.
pub fn update(write: &Write, op: Handle<Op>, effect: Effect, next: impl Fn() -> c_int) -> c_int {
    if !windows::is_any_cached() {
        return next();
    }
    if !ffi::is_no_op(op) {
        return self::write(write, effect, next);
    }
    let error = next();
    if let Some(window) =
        windows::find_cached(write.win).filter(|window| error == SUCCESS && window.target(write.target).is_some())
    {
        let number = write.target as u32;
        match &write.result {
            Some(result) => _ = gets::on_passed(window, number, result),
            None => window.on_issued(number, Effect::Read),
        }
    }
    error
}

/// As [`write`], with a request. `handle` reads it, and is called after `next` has succeeded.
pub fn write_by_request(write: &Write, next: impl Fn() -> c_int, handle: impl Fn() -> Handle<Request>) -> c_int {
    let error = self::write(write, Effect::Fetch, next);
    let window = windows::find_cached(write.win).filter(|window| error == SUCCESS && window.words.is_some());
    let Some(window) = window.filter(|window| window.target(write.target).is_some()) else {
        return error;
    };
    // An MPI may have one request for all operations complete at once, which cannot be told from others of its kind.
    let (number, handle) = (write.target as u32, handle());
    if ffi::is_complete(handle) {
        words::tell_one_fetch(window, number);
    } else {
        requests::note(handle, Ticket::of_fetch(window.space, number));
    }
    error
}

//! Operations that write to a target: what they overlap is dropped.

use crate::ffi::{self, SUCCESS};
use crate::settings::Mode;
use crate::window::{Target, Window};
use crate::{store, windows};
use std::ffi::c_int;

/// What an operation writes.
#[derive(Debug)]
pub struct Write {
    pub target: i32,
    pub displacement: i64,
    pub count: i64,
    pub datatype: u64,
    pub win: u64,
}

/// Drops what an operation overlaps.
fn drop_overlapped(window: &Window, target: &Target, write: &Write) {
    let number = write.target as u32;
    let range = ffi::span(write.datatype, write.count).and_then(|(low, bytes)| {
        let start = write.displacement.checked_mul(target.unit)?.checked_add(low)?;
        Some((u64::try_from(start).ok()?, u64::try_from(bytes).ok()?))
    });
    match range {
        Some((start, bytes)) => store::drop_range(window.space, number, start, bytes),
        None => store::drop_target(window.space, number),
    }
}

/// An operation that writes.
pub fn write(write: &Write, next: impl Fn() -> c_int) -> c_int {
    let Some((window, target)) =
        windows::find(write.win).and_then(|window| Some((window, window.target(write.target)?)))
    else {
        return next();
    };
    if window.mode() != Mode::Off {
        drop_overlapped(window, target, write);
    }
    let error = next();
    if error == SUCCESS {
        window.on_issued(write.target as u32, true);
        // Another thread may have begun a get before this was counted, whose old bytes would be kept.
        if window.mode() != Mode::Off && ffi::is_thread_multiple() {
            drop_overlapped(window, target, write);
        }
    }
    error
}

/// An operation that writes unless it is `MPI_NO_OP`.
pub fn update(write: &Write, op: u64, next: impl Fn() -> c_int) -> c_int {
    if !ffi::is_no_op(op) {
        return self::write(write, next);
    }
    let error = next();
    if let Some(window) =
        windows::find(write.win).filter(|window| error == SUCCESS && window.target(write.target).is_some())
    {
        window.on_issued(write.target as u32, false);
    }
    error
}

//! `MPI_Get` and `MPI_Rget`.

use crate::ffi::{self, SUCCESS};
use crate::pending::{self, Noted, Reissue, Ticket};
use crate::report::{COUNTS, count, count_alone};
use crate::settings::Mode;
use crate::store::{self, Atom, Fill, GET_BYTES_MAX, Outcome};
use crate::window::{Effect, Target, Window};
use crate::{completion, meter, requests, windows, words};
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

/// The arguments of a get.
#[derive(Debug)]
pub struct Get {
    pub origin: usize,
    pub origin_count: i64,
    pub origin_type: u64,
    pub target: i32,
    pub displacement: i64,
    pub target_count: i64,
    pub target_type: u64,
    pub win: u64,
    /// By an accumulate without a change: its elements are read atomically.
    pub is_atomic: bool,
}

/// A get in the cache's terms.
struct Place<'a> {
    window: &'a Window,
    target: &'a Target,
    number: u32,
    atom: Atom,
    displacement: i64,
    /// In the target's memory.
    address: u64,
    origin: usize,
    len: usize,
}

impl Place<'_> {
    fn noted(&self) -> Noted {
        Noted { space: self.window.space, target: self.number, atom: self.atom, dest: self.origin, len: self.len }
    }
}

/// MPI's own types in use, with their element sizes. They are never freed, so a slot keeps its type.
static NAMED: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];
static NAMED_BYTES: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

#[inline]
fn slot_of(datatype: u64) -> usize {
    (datatype.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58) as usize
}

/// Bytes of contiguous elements, or 0.
#[inline]
fn contiguous(datatype: u64, elements: i64) -> usize {
    let slot = slot_of(datatype);
    // The size is written once, before the type. A slot with a type keeps it.
    let element = match NAMED[slot].load(Ordering::Acquire) == datatype && datatype != 0 {
        true => NAMED_BYTES[slot].load(Ordering::Relaxed) as u32,
        false => look_at(datatype, slot),
    };
    let bytes = i64::from(element).checked_mul(elements).unwrap_or(0);
    usize::try_from(bytes).unwrap_or(0)
}

#[cold]
fn look_at(datatype: u64, slot: usize) -> u32 {
    let (bytes, is_named) = ffi::element(datatype);
    let size = u64::from(bytes);
    // The first thread to set the size owns the slot.
    if is_named && size > 0 && NAMED_BYTES[slot].compare_exchange(0, size, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    {
        NAMED[slot].store(datatype, Ordering::Release);
    }
    bytes
}

/// The atomic unit of an atomic operation on one of MPI's own types.
fn atom(call: &Get) -> Option<Atom> {
    let slot = slot_of(call.target_type);
    let is_named = NAMED[slot].load(Ordering::Acquire) == call.target_type && call.origin_type == call.target_type;
    Atom::of_bytes(NAMED_BYTES[slot].load(Ordering::Relaxed) as u32).filter(|_| is_named)
}

/// The place of a get of a cached window, if the get may be cached.
#[inline]
fn place<'a>(window: &'a Window, call: &Get) -> Option<Place<'a>> {
    let target = window.target(call.target)?;
    if call.target as u32 == window.rank || !window.is_accessible(target) {
        return None;
    }
    let len = contiguous(call.target_type, call.target_count);
    let is_same = call.origin_type == call.target_type && call.origin_count == call.target_count;
    if len == 0 || len > GET_BYTES_MAX || (!is_same && len != contiguous(call.origin_type, call.origin_count)) {
        return None;
    }
    let address = target.address(call.displacement)?;
    address.checked_add(len as u64)?;
    let atom = if call.is_atomic { atom(call)? } else { Atom::NONE };
    let (displacement, origin, number) = (call.displacement, call.origin, call.target as u32);
    Some(Place { window, target, number, atom, displacement, address, origin, len })
}

/// Asks MPI for the bytes of gets that joined in vain.
#[cold]
pub fn reissue(reissues: Vec<Reissue>, window: &Window) {
    for get in reissues {
        let win = if get.space == window.space {
            window
        } else {
            match windows::of_space(get.space) {
                Some(other) => other,
                None => continue,
            }
        };
        // SAFETY: the arguments come from an incomplete get of the program.
        let error = unsafe { ffi::get_bytes(get.dest, get.len, get.target, get.displacement, win.handle, get.atom) };
        pending::on_reissued(&get, error);
        // Counted even if MPI has refused it: the next completion must not find everything done.
        win.on_issued(get.target, Effect::Read);
    }
}

/// Passes a get on to MPI, and counts it as in flight.
fn pass(window: &Window, target: i32, next: impl Fn() -> c_int) -> c_int {
    count(&COUNTS.gets_passed);
    let error = next();
    if error == SUCCESS && window.target(target).is_some() {
        window.on_issued(target as u32, Effect::Read);
    }
    error
}

/// Leaves a get to MPI, which is faster. Nothing is counted but that there was such a get.
#[inline]
fn leave(window: &Window, call: &Get, next: impl Fn() -> c_int) -> c_int {
    count_alone(&COUNTS.gets_passed);
    let error = next();
    if let Some(target) = window.target(call.target) {
        window.on_left(target);
    }
    if pending::has_any() {
        overwrite(window, call);
    }
    error
}

/// A get that certainly goes to MPI, before its other arguments are looked at. If it may not, returns nothing.
#[inline(always)]
pub fn leave_at_once(win: u64, target: i32, next: impl Fn() -> c_int) -> Option<c_int> {
    let window = windows::find_at_once(win)?;
    let target = window.target(target)?;
    if pending::has_any() || !window.trial.leaves_at_once() {
        return None;
    }
    count_alone(&COUNTS.gets_passed);
    let error = next();
    window.on_left(target);
    Some(error)
}

/// A get that is left to MPI writes its buffer. Copies of gets in flight to the same buffer are not kept.
#[cold]
fn overwrite(window: &Window, call: &Get) {
    let span = ffi::span(call.origin_type, call.origin_count);
    if let Some((low, bytes)) = span.and_then(|(low, bytes)| Some((low, usize::try_from(bytes).ok()?))) {
        reissue(pending::on_written(call.origin.wrapping_add_signed(low as isize), bytes), window);
    }
}

/// Asks MPI for the missing bytes, and notes the get in flight.
fn fetch(place: &Place<'_>, fill: Option<Fill>, next: impl Fn() -> c_int) -> (c_int, Option<Ticket>) {
    let window = place.window;
    let error = place.target.nearness.get(place.len, next);
    if error != SUCCESS {
        if let Some(fill) = fill {
            reissue(pending::abandon(window.space, place.number, fill), window);
        }
        return (error, None);
    }
    let (ticket, reissues) = pending::note(&place.noted(), keep(place, fill, window));
    window.on_issued(place.number, Effect::Read);
    reissue(reissues, window);
    (SUCCESS, Some(ticket))
}

/// While this rank's writes to a target are in flight, a get may or may not see them. Its bytes are not kept.
fn keep(place: &Place<'_>, fill: Option<Fill>, window: &Window) -> Option<Fill> {
    let target = place.target;
    if target.writes.load(Ordering::Relaxed) == target.writes_done.load(Ordering::Relaxed) {
        return fill;
    }
    if let Some(fill) = fill {
        reissue(pending::abandon(window.space, place.number, fill), window);
    }
    None
}

/// Fetches the tail of a get if its first bytes are cached, or all of it if displacements cannot express the tail.
fn fetch_tail(place: &Place<'_>, from: usize, fill: Option<Fill>, next: impl Fn() -> c_int) -> c_int {
    let unit = place.target.unit;
    let (skip, remainder) = (from as i64 / unit.max(1), from as i64 % unit.max(1));
    if from == 0 || unit == 0 || remainder != 0 || place.atom != Atom::NONE {
        return fetch(place, fill, next).0;
    }
    let tail = || {
        let (origin, len) = (place.origin + from, place.len - from);
        // SAFETY: it is a part of the program's get.
        unsafe { ffi::get_bytes(origin, len, place.number, place.displacement + skip, place.window.handle, Atom::NONE) }
    };
    fetch(place, fill, tail).0
}

/// Looks for the bytes of a get.
///
/// # Safety
///
/// As for `MPI_Get`.
#[inline]
unsafe fn look_up(place: &Place<'_>) -> Outcome {
    let window = place.window;
    // SAFETY: MPI's rules for the buffer satisfy the cache: the buffer belongs to the get until it is complete.
    let outcome = unsafe { store::get(window.space, place.number, place.atom, place.address, place.origin, place.len) };
    if outcome == Outcome::Hit {
        let reissues = pending::on_written(place.origin, place.len);
        if !reissues.is_empty() {
            reissue(reissues, window);
        }
    }
    outcome
}

/// Notes a joined get.
fn join(place: &Place<'_>) {
    let reissues = pending::note_joined(&place.noted(), place.displacement);
    place.window.on_issued(place.number, Effect::Read);
    reissue(reissues, place.window);
}

/// Whether the cache may be asked: in modes checked and told, no stale entry is left.
#[inline]
fn is_ready(place: &Place<'_>) -> bool {
    match place.window.mode() {
        Mode::Checked | Mode::Told => words::look(place.window, place.number),
        _ => true,
    }
}

/// Whether a get is left to MPI: the cache does not make the window's gets faster, or not those of the target.
#[inline]
fn is_left(window: &Window, call: &Get) -> bool {
    window.trial.leaves(window.space, window.mode())
        || window.target(call.target).is_some_and(|target| target.nearness.is_near())
}

/// `MPI_Get`.
///
/// # Safety
///
/// As for `MPI_Get`.
#[inline]
pub unsafe fn get(call: &Get, next: impl Fn() -> c_int) -> c_int {
    let Some(window) = windows::find_cached(call.win) else { return next() };
    if window.mode() == Mode::Off {
        return pass(window, call.target, next);
    }
    let is_left = is_left(window, call);
    meter::get(window.space, || {
        // SAFETY: as the caller says.
        if is_left { leave(window, call, &next) } else { unsafe { get_by_cache(window, call, &next) } }
    })
}

/// A get that may be cached.
///
/// # Safety
///
/// As for `MPI_Get`.
#[inline]
unsafe fn get_by_cache(window: &Window, call: &Get, next: impl Fn() -> c_int) -> c_int {
    let Some(place) = place(window, call).filter(is_ready) else { return pass(window, call.target, next) };
    // SAFETY: as the caller says.
    match unsafe { look_up(&place) } {
        Outcome::Hit => SUCCESS,
        Outcome::Joined => {
            join(&place);
            SUCCESS
        }
        Outcome::Miss { from, fill } => fetch_tail(&place, from, fill, next),
    }
}

/// `MPI_Rget`. `complete` stores a completed request for the program; `handle` reads the C handle of the stored
/// request.
///
/// # Safety
///
/// As for `MPI_Rget`.
pub unsafe fn rget(
    call: &Get,
    next: impl Fn() -> c_int,
    complete: impl Fn() -> c_int,
    handle: impl Fn() -> u64,
) -> c_int {
    let Some(window) = windows::find_cached(call.win) else { return next() };
    if window.mode() == Mode::Off {
        return pass(window, call.target, next);
    }
    let is_left = is_left(window, call);
    meter::get(window.space, || {
        if is_left {
            return leave(window, call, &next);
        }
        // SAFETY: as the caller says.
        unsafe { rget_by_cache(window, call, &next, &complete, &handle) }
    })
}

/// A get by request that may be cached.
///
/// # Safety
///
/// As for `MPI_Rget`.
unsafe fn rget_by_cache(
    window: &Window,
    call: &Get,
    next: impl Fn() -> c_int,
    complete: impl Fn() -> c_int,
    handle: impl Fn() -> u64,
) -> c_int {
    let Some(place) = place(window, call).filter(is_ready) else { return pass(window, call.target, next) };
    // SAFETY: as the caller says.
    match unsafe { look_up(&place) } {
        Outcome::Hit => complete(),
        Outcome::Joined => {
            // Its bytes come with another get, unknown to its request.
            join(&place);
            let error = completion::flush_for_request(window, place.number);
            if error == SUCCESS { complete() } else { error }
        }
        Outcome::Miss { fill, .. } => {
            let (error, ticket) = fetch(&place, fill, next);
            let Some(ticket) = ticket else { return error };
            if !ffi::is_complete_request(handle()) {
                requests::note(handle(), ticket);
                return error;
            }
            completion::on_request(ticket);
            error
        }
    }
}

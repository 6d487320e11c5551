//! `MPI_Get` and `MPI_Rget`.

use crate::atoms::Atom;
use crate::buffers::GetBuffer;
use crate::ffi::{self, SUCCESS};
use crate::pending::{self, Noted, Ticket};
use crate::reissue::{Buffer, reissue};
use crate::report::{COUNTS, count, count_alone};
use crate::settings::Mode;
use crate::store::{self, Fill, GET_BYTES_MAX, Outcome};
use crate::window::{Effect, Target, Window};
use crate::{completion, meter, requests, windows, words};
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use vgasnet_mpi_front::Handle;
use vgasnet_mpi_front::kind::{Datatype, Request, Win};

/// A get of the program in progress, by its arguments. Its origin is the get's until it is complete.
#[derive(Debug)]
pub struct Get {
    origin: Buffer,
    pub target: i32,
    pub displacement: i64,
    pub target_count: i64,
    pub target_type: Handle<Datatype>,
    pub win: Handle<Win>,
    /// By an accumulate without a change: its elements are read atomically.
    is_atomic: bool,
}

impl Get {
    /// A get into `origin` of `count` elements of a type.
    ///
    /// # Safety
    ///
    /// MPI's caller has called a get with these arguments, and the call has not returned. By MPI's rules the elements
    /// of `origin` are writable, and nobody else accesses them, until the get is complete.
    #[inline]
    pub unsafe fn new(
        origin: Buffer,
        target: i32,
        displacement: i64,
        (target_count, target_type): (i64, Handle<Datatype>),
        win: Handle<Win>,
    ) -> Get {
        Get { origin, target, displacement, target_count, target_type, win, is_atomic: false }
    }

    /// The same get, by an accumulate without a change.
    pub fn atomic(self) -> Get {
        Get { is_atomic: true, ..self }
    }

    /// Its buffer.
    pub fn origin(&self) -> &Buffer {
        &self.origin
    }
}

/// A get that the cache may serve, in its terms.
struct CacheableGet<'a> {
    window: &'a Window,
    target: &'a Target,
    number: u32,
    atom: Atom,
    displacement: i64,
    /// In the target's memory.
    address: u64,
    buffer: GetBuffer,
}

impl CacheableGet<'_> {
    fn noted(&self) -> Noted {
        let (dest, len) = (self.buffer.address(), self.buffer.len());
        Noted { space: self.window.space, target: self.number, atom: self.atom, dest, len }
    }
}

/// MPI's own types in use, with their element sizes. They are never freed, so a slot keeps its type.
static NAMED: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];
static NAMED_BYTES: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

#[inline]
fn slot_of(datatype: Handle<Datatype>) -> usize {
    (datatype.bits().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58) as usize
}

/// Bytes of contiguous elements, or 0.
#[inline]
fn contiguous(datatype: Handle<Datatype>, elements: i64) -> usize {
    let slot = slot_of(datatype);
    // The size is written once, before the type. A slot with a type keeps it.
    let element = match NAMED[slot].load(Ordering::Acquire) == datatype.bits() && datatype.bits() != 0 {
        true => NAMED_BYTES[slot].load(Ordering::Relaxed) as u32,
        false => look_at(datatype, slot),
    };
    let bytes = i64::from(element).checked_mul(elements).unwrap_or(0);
    usize::try_from(bytes).unwrap_or(0)
}

#[cold]
fn look_at(datatype: Handle<Datatype>, slot: usize) -> u32 {
    let (bytes, is_named) = ffi::element(datatype);
    let size = u64::from(bytes);
    // The first thread to set the size owns the slot.
    if is_named && size > 0 && NAMED_BYTES[slot].compare_exchange(0, size, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    {
        NAMED[slot].store(datatype.bits(), Ordering::Release);
    }
    bytes
}

/// The atomic unit of an atomic operation on one of MPI's own types.
fn atom(call: &Get) -> Option<Atom> {
    let slot = slot_of(call.target_type);
    let is_same = call.origin.datatype == call.target_type;
    let is_named = is_same && NAMED[slot].load(Ordering::Acquire) == call.target_type.bits();
    Atom::of_bytes(NAMED_BYTES[slot].load(Ordering::Relaxed) as u32).filter(|_| is_named)
}

/// A get of a cached window in the cache's terms, if it may be cached.
#[inline]
fn cacheable<'a>(window: &'a Window, call: &Get) -> Option<CacheableGet<'a>> {
    let target = window.target(call.target)?;
    if call.target as u32 == window.rank || !window.is_accessible(target) {
        return None;
    }
    let len = contiguous(call.target_type, call.target_count);
    let origin = &call.origin;
    let is_same = origin.datatype == call.target_type && origin.count == call.target_count;
    if len == 0 || len > GET_BYTES_MAX || (!is_same && len != contiguous(origin.datatype, origin.count)) {
        return None;
    }
    let address = target.address(call.displacement)?;
    address.checked_add(len as u64)?;
    let atom = if call.is_atomic { atom(call)? } else { Atom::NONE };
    // SAFETY: the elements of the origin are these bytes, without gaps. They are the get's until it is complete, by the
    // promise to `Get::new`.
    let buffer = unsafe { GetBuffer::new(origin.address, len) };
    let (displacement, number) = (call.displacement, call.target as u32);
    Some(CacheableGet { window, target, number, atom, displacement, address, buffer })
}

/// Passes a get on to MPI.
fn pass(window: &Window, call: &Get, next: impl Fn() -> c_int) -> (c_int, Option<Ticket>) {
    count(&COUNTS.gets_passed);
    let error = next();
    if error != SUCCESS || window.target(call.target).is_none() {
        return (error, None);
    }
    (SUCCESS, on_passed(window, call.target as u32, &call.origin))
}

/// MPI was asked for bytes of a target. The ticket is for their request, if there is one.
pub fn on_passed(window: &Window, number: u32, buffer: &Buffer) -> Option<Ticket> {
    let ticket = if window.mode() == Mode::Off { None } else { note_passed(window, number, buffer) };
    window.on_issued(number, Effect::Read);
    if ticket.is_none() && pending::has_any() {
        buffer.overwrite(window);
    }
    ticket
}

/// Notes the buffer, unless it is empty.
fn note_passed(window: &Window, target: u32, buffer: &Buffer) -> Option<Ticket> {
    let Some((dest, len)) = buffer.span() else {
        let ticket = pending::note_anywhere(window.space, target);
        reissue(pending::on_written_anywhere(), window);
        return Some(ticket);
    };
    if len == 0 {
        return None;
    }
    let (ticket, reissues) = pending::note(&Noted { space: window.space, target, atom: Atom::NONE, dest, len }, None);
    reissue(reissues, window);
    Some(ticket)
}

/// Leaves a get to MPI, which is faster. Nothing is counted but that there was such a get.
#[inline]
fn leave(window: &Window, call: &Get, next: impl Fn() -> c_int) -> c_int {
    count_alone(&COUNTS.gets_passed);
    let error = next();
    if let Some(target) = window.target(call.target) {
        window.left.on_get(&target.left, call.target as u32);
    }
    if pending::has_any() {
        call.origin.overwrite(window);
    }
    error
}

/// A get that certainly goes to MPI, before its other arguments are looked at. If it may not, returns nothing.
#[inline(always)]
pub fn leave_at_once(win: Handle<Win>, number: i32, next: impl Fn() -> c_int) -> Option<c_int> {
    let window = windows::find_at_once(win)?;
    let target = window.target(number)?;
    if pending::has_any() || !window.trial.leaves_at_once() {
        return None;
    }
    count_alone(&COUNTS.gets_passed);
    let error = next();
    window.left.on_get(&target.left, number as u32);
    Some(error)
}

/// Asks MPI for the missing bytes, and notes the get in flight.
fn fetch(get: &CacheableGet<'_>, fill: Option<Fill>, next: impl Fn() -> c_int) -> (c_int, Option<Ticket>) {
    let window = get.window;
    let error = get.target.nearness.get(get.buffer.len(), next);
    if error != SUCCESS {
        if let Some(fill) = fill {
            reissue(pending::abandon(window.space, get.number, fill), window);
        }
        return (error, None);
    }
    let kept = keep(get, fill, window).map(|fill| (fill, get.buffer));
    let (ticket, reissues) = pending::note(&get.noted(), kept);
    window.on_issued(get.number, Effect::Read);
    reissue(reissues, window);
    (SUCCESS, Some(ticket))
}

/// While this rank's writes to a target are in flight, a get may or may not see them. While results of fetching
/// operations are under way, they may come to the get's buffer. Its bytes are not kept.
fn keep(get: &CacheableGet<'_>, fill: Option<Fill>, window: &Window) -> Option<Fill> {
    let target = get.target;
    let has_writes = target.writes.load(Ordering::Relaxed) != target.writes_done.load(Ordering::Relaxed);
    if !has_writes && !window.has_fetches() {
        return fill;
    }
    if let Some(fill) = fill {
        reissue(pending::abandon(window.space, get.number, fill), window);
    }
    None
}

/// Fetches the tail of a get if its first bytes are cached, or all of it if displacements cannot express the tail.
fn fetch_tail(get: &CacheableGet<'_>, from: usize, fill: Option<Fill>, next: impl Fn() -> c_int) -> c_int {
    let unit = get.target.unit;
    let (skip, remainder) = (from as i64 / unit.max(1), from as i64 % unit.max(1));
    if from == 0 || unit == 0 || remainder != 0 || get.atom != Atom::NONE {
        return fetch(get, fill, next).0;
    }
    let displacement = get.displacement + skip;
    let tail = || ffi::get_bytes(get.buffer.tail(from), get.number, displacement, get.window.handle, Atom::NONE);
    fetch(get, fill, tail).0
}

/// Looks for the bytes of a get.
#[inline]
fn look_up(get: &CacheableGet<'_>) -> Outcome {
    let window = get.window;
    let outcome = store::get(window.space, get.number, get.atom, get.address, get.buffer);
    if outcome == Outcome::Hit {
        let reissues = pending::on_written(get.buffer.address(), get.buffer.len());
        if !reissues.is_empty() {
            reissue(reissues, window);
        }
    }
    outcome
}

/// Notes a joined get.
fn join(get: &CacheableGet<'_>) {
    let reissues = pending::note_joined(&get.noted(), get.buffer, get.displacement);
    get.window.on_issued(get.number, Effect::Read);
    reissue(reissues, get.window);
}

/// Whether the cache may be asked: in modes checked and told, no stale entry is left.
#[inline]
fn is_ready(get: &CacheableGet<'_>) -> bool {
    match get.window.mode() {
        Mode::Checked | Mode::Told => words::look(get.window, get.number),
        _ => true,
    }
}

/// Whether a get is left to MPI: the cache does not make the window's gets faster. If not, the cache is up to date.
#[inline]
fn is_left(window: &Window) -> bool {
    if window.trial.leaves(window.space, window.mode()) {
        return true;
    }
    if window.left.is_behind() {
        completion::catch_up(window);
    }
    false
}

/// `MPI_Get`.
#[inline]
pub fn get(call: &Get, next: impl Fn() -> c_int) -> c_int {
    let Some(window) = windows::find_cached(call.win) else { return next() };
    if window.mode() == Mode::Off {
        return pass(window, call, next).0;
    }
    let is_left = is_left(window);
    meter::get(window.space, || if is_left { leave(window, call, &next) } else { get_by_cache(window, call, &next) })
}

/// How a get that is not left to MPI is served.
enum Way<'a> {
    Cached(CacheableGet<'a>),
    /// By MPI, whose copies are as fast.
    Near(CacheableGet<'a>),
    Passed,
}

#[inline]
fn way<'a>(window: &'a Window, call: &Get) -> Way<'a> {
    match cacheable(window, call) {
        Some(get) if get.target.nearness.is_near() => Way::Near(get),
        Some(get) if is_ready(&get) => Way::Cached(get),
        _ => Way::Passed,
    }
}

/// A get from a near target. It is noted for the sake of its buffer.
fn fetch_near(get: &CacheableGet<'_>, next: impl Fn() -> c_int) -> (c_int, Option<Ticket>) {
    count(&COUNTS.gets_passed);
    fetch(get, None, next)
}

/// A get that may be cached.
#[inline]
fn get_by_cache(window: &Window, call: &Get, next: impl Fn() -> c_int) -> c_int {
    let get = match way(window, call) {
        Way::Cached(get) => get,
        Way::Near(get) => return fetch_near(&get, next).0,
        Way::Passed => return pass(window, call, next).0,
    };
    match look_up(&get) {
        Outcome::Hit => SUCCESS,
        Outcome::Joined => {
            join(&get);
            SUCCESS
        }
        Outcome::Miss { from, fill } => fetch_tail(&get, from, fill, next),
    }
}

/// `MPI_Rget`. `complete` stores a completed request for the program; `handle` reads the C handle of the request stored
/// by MPI, and is called after `next` has succeeded.
pub fn rget(
    call: &Get,
    next: impl Fn() -> c_int,
    complete: impl Fn() -> c_int,
    handle: impl Fn() -> Handle<Request>,
) -> c_int {
    let Some(window) = windows::find_cached(call.win) else { return next() };
    if window.mode() == Mode::Off {
        return pass(window, call, next).0;
    }
    let is_left = is_left(window);
    meter::get(window.space, || {
        if is_left {
            return leave(window, call, &next);
        }
        rget_by_cache(window, call, &next, &complete, &handle)
    })
}

/// A get by request that may be cached.
fn rget_by_cache(
    window: &Window,
    call: &Get,
    next: impl Fn() -> c_int,
    complete: impl Fn() -> c_int,
    handle: impl Fn() -> Handle<Request>,
) -> c_int {
    let get = match way(window, call) {
        Way::Cached(get) => get,
        Way::Near(get) => return note_request(fetch_near(&get, next), handle),
        Way::Passed => return note_request(pass(window, call, next), handle),
    };
    match look_up(&get) {
        Outcome::Hit => complete(),
        Outcome::Joined => {
            // Its bytes come with another get, unknown to its request.
            join(&get);
            let error = completion::flush_local(window, get.number);
            if error == SUCCESS { complete() } else { error }
        }
        Outcome::Miss { fill, .. } => note_request(fetch(&get, fill, next), handle),
    }
}

/// Notes the request of a get with a ticket.
fn note_request((error, ticket): (c_int, Option<Ticket>), handle: impl Fn() -> Handle<Request>) -> c_int {
    match ticket {
        Some(ticket) if ffi::is_complete_request(handle()) => completion::on_request(ticket),
        Some(ticket) => requests::note(handle(), ticket),
        None => {}
    }
    error
}

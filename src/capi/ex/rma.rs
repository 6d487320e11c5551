//! Gets and puts.

use super::Outcome;
use super::events::{DEFER, EventPointer, GROUP, NOW, pointer};
use crate::capi::access::{self, Function, done, get_any, low_order_bytes, put_any, transfer};
use crate::capi::again::leave_segment;
use crate::capi::boundary::{Refusal, attached, enter, entry_points};
use crate::capi::preconditions;
use crate::ex::{self, Event, Team};
use crate::ops::{Operation, Remote};
use std::ffi::{c_int, c_void};
use vgasnet_settings::UserError;

/// Largest put copied when its pages are not resident, in bytes. The source of a larger put stays in use until it
/// completes.
const COPIED_BYTES_MAX: usize = 64 << 10;

/// The remote side of a transfer.
///
/// # Safety
/// `team` is null, a pair, or has been the handle of an object.
#[inline]
unsafe fn remote(team: *const Team, rank: u32, address: *mut c_void, len_bytes: usize) -> Result<Remote, Refusal> {
    // SAFETY: `team` is null, a pair, or has been the handle of an object.
    Ok(Remote { rank: unsafe { ex::jobrank(team, rank) }?, address: address.addr(), len_bytes })
}

/// Starts a transfer with an event.
///
/// # Safety
/// As for `Ops::start_explicit`.
unsafe fn start(operation: Operation, remote: Remote) -> Result<Option<Event>, Refusal> {
    let root = if matches!(operation, Operation::PutNow(_)) { Event::root_with_free_source } else { Event::root };
    // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, or null, until the event is synced.
    Ok(unsafe { access::start(operation, remote) }?.map(root))
}

/// Starts an implicit transfer.
///
/// # Safety
/// As for `Ops::start_implicit`.
unsafe fn start_implicit(operation: Operation, remote: Remote) -> Result<Outcome, Refusal> {
    // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, or null, until the thread has synced its
    // implicit operations.
    unsafe { access::start_implicit(operation, remote) }?;
    Ok(Outcome::DONE)
}

/// Gets a number if its page is resident. Returns whether it did.
///
/// # Safety
/// `team` is null, a pair, or has been the handle of an object. `to` is null, or valid for `len` bytes.
#[inline(always)]
unsafe fn get_number(team: *const Team, to: *mut c_void, rank: u32, from: *mut c_void, len: usize) -> bool {
    // SAFETY: `team` is null, a pair, or has been the handle of an object. `to` is null, or valid for `len` bytes.
    unsafe { ex::jobrank_if_any(team, rank).is_some_and(|jobrank| access::get_number(to, jobrank, from, len)) }
}

/// Puts a number if its page is resident. Returns whether it did.
///
/// # Safety
/// `team` is null, a pair, or has been the handle of an object. `from` is null, or valid for `len` bytes.
#[inline(always)]
unsafe fn put_number(team: *const Team, rank: u32, to: *mut c_void, from: *const c_void, len: usize) -> bool {
    // SAFETY: `team` is null, a pair, or has been the handle of an object. `from` is null, or valid for `len` bytes.
    unsafe { ex::jobrank_if_any(team, rank).is_some_and(|jobrank| access::put_number(jobrank, to, from, len)) }
}

/// Like [`put_number`], by value.
///
/// # Safety
/// `team` is null, a pair, or has been the handle of an object.
#[inline(always)]
unsafe fn put_value(team: *const Team, rank: u32, to: *mut c_void, value: u64, len: usize) -> bool {
    // SAFETY: `team` is null, a pair, or has been the handle of an object.
    unsafe { ex::jobrank_if_any(team, rank) }.is_some_and(|jobrank| access::put_value(jobrank, to, value, len))
}

/// See the header, in `include/`.
///
/// # Safety
/// `team` is null, a pair, or has been the handle of an object. `to` is null, or valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vgasnet_ex_RMA_GetBlocking(
    team: *const Team,
    to: *mut c_void,
    rank: u32,
    from: *mut c_void,
    len: usize,
    _flags: u32,
) -> Outcome {
    struct This;
    impl Function for This {
        const NAME: &'static str = "vgasnet_ex_RMA_GetBlocking";
    }
    #[inline(never)]
    unsafe extern "C" fn of_team(
        team: *const Team,
        to: *mut c_void,
        rank: u32,
        from: *mut c_void,
        len: usize,
    ) -> c_int {
        leave_segment!(of_team, (team: *const Team, to: *mut c_void, rank: u32, from: *mut c_void, len: usize) -> c_int);
        enter(This::NAME, || {
            preconditions::check_buffer(to, len)?;
            // SAFETY: `team` is null, a pair, or has been the handle of an object. `to` is null, or valid for `len`
            // bytes.
            unsafe { get_any(to.cast(), remote(team, rank, from, len)?) }
        });
        done()
    }
    // SAFETY: `team` is null, a pair, or has been the handle of an object. `to` is null, or valid for `len` bytes.
    unsafe {
        Outcome(match ex::jobrank_quickly(team, rank) {
            Some(jobrank) => access::get::<This>(to, jobrank, from, len),
            None => of_team(team, to, rank, from, len),
        })
    }
}

/// See the header, in `include/`.
///
/// # Safety
/// `team` is null, a pair, or has been the handle of an object. `from` is null, or valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vgasnet_ex_RMA_PutBlocking(
    team: *const Team,
    rank: u32,
    to: *mut c_void,
    from: *const c_void,
    len: usize,
    _flags: u32,
) -> Outcome {
    struct This;
    impl Function for This {
        const NAME: &'static str = "vgasnet_ex_RMA_PutBlocking";
    }
    #[inline(never)]
    unsafe extern "C" fn of_team(
        team: *const Team,
        rank: u32,
        to: *mut c_void,
        from: *const c_void,
        len: usize,
    ) -> c_int {
        leave_segment!(of_team, (team: *const Team, rank: u32, to: *mut c_void, from: *const c_void, len: usize) -> c_int);
        enter(This::NAME, || {
            preconditions::check_buffer(from, len)?;
            // SAFETY: `team` is null, a pair, or has been the handle of an object. `from` is null, or valid for `len`
            // bytes.
            unsafe { put_any(from.cast(), remote(team, rank, to, len)?) }
        });
        done()
    }
    // SAFETY: `team` is null, a pair, or has been the handle of an object. `from` is null, or valid for `len` bytes.
    unsafe {
        Outcome(match ex::jobrank_quickly(team, rank) {
            Some(jobrank) => access::put::<This>(jobrank, to, from, len),
            None => of_team(team, rank, to, from, len),
        })
    }
}

/// See the header, in `include/`.
///
/// # Safety
/// `team` is null, a pair, or has been the handle of an object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vgasnet_ex_RMA_GetBlockingVal(
    team: *const Team,
    rank: u32,
    from: *mut c_void,
    len: usize,
    _flags: u32,
) -> u64 {
    struct This;
    impl Function for This {
        const NAME: &'static str = "vgasnet_ex_RMA_GetBlockingVal";
    }
    #[inline(never)]
    unsafe extern "C" fn of_team(team: *const Team, rank: u32, from: *mut c_void, len: usize) -> u64 {
        leave_segment!(of_team, (team: *const Team, rank: u32, from: *mut c_void, len: usize) -> u64);
        enter(This::NAME, || {
            let mut value = 0;
            // SAFETY: the value has `len` bytes, which is checked. The team is as the function above requires.
            unsafe { get_any(low_order_bytes(&raw mut value, len)?, remote(team, rank, from, len)?) }?;
            Ok(value)
        })
    }
    // SAFETY: `team` is null, a pair, or has been the handle of an object.
    unsafe {
        match ex::jobrank_quickly(team, rank) {
            Some(jobrank) => access::get_value::<This>(jobrank, from, len),
            None => of_team(team, rank, from, len),
        }
    }
}

/// When the source of a put is free for reuse, as requested by the place for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Free once the put has begun.
    Now,
    /// Free once the put is complete.
    Defer,
    /// The client syncs it together with other sources.
    Group,
    /// The client waits for an event of its own.
    Event(*mut EventPointer),
}

impl Source {
    fn of(place: *mut EventPointer) -> Result<Source, UserError> {
        match place.addr() {
            0 => Err(UserError::new(
                "the place for the event of local completion is a null pointer; give GEX_EVENT_NOW, or the address of an event",
            )),
            NOW => Ok(Source::Now),
            DEFER => Ok(Source::Defer),
            GROUP => Ok(Source::Group),
            _ => Ok(Source::Event(place)),
        }
    }
}

entry_points! {
    unsafe fn vgasnet_ex_RMA_GetNB(
        team: *const Team, to: *mut c_void [len], rank: u32, from: *mut c_void, len: usize, _flags: u32,
    ) -> EventPointer, hit (get_number(team, to, rank, from, len)) => pointer(None); {
        Ok(pointer(start(Operation::Get(to.cast()), remote(team, rank, from, len)?)?))
    }

    unsafe fn vgasnet_ex_RMA_GetNBI(
        team: *const Team, to: *mut c_void [len], rank: u32, from: *mut c_void, len: usize, _flags: u32,
    ) -> Outcome, hit (get_number(team, to, rank, from, len)) => Outcome::DONE; {
        start_implicit(Operation::Get(to.cast()), remote(team, rank, from, len)?)
    }

    unsafe fn vgasnet_ex_RMA_PutNB(
        team: *const Team, rank: u32, to: *mut c_void, from: *const c_void [len], len: usize,
        place: *mut EventPointer [0], _flags: u32,
    ) -> EventPointer {
        let source = Source::of(place)?;
        if source != Source::Group && put_number(team, rank, to, from, len) {
            if let Source::Event(place) = source {
                place.write(pointer(None));
            }
            return Ok(pointer(None));
        }
        let (remote, from) = (remote(team, rank, to, len)?, from.cast());
        match source {
            Source::Now => Ok(pointer(start(Operation::PutNow(from), remote)?)),
            Source::Defer => Ok(pointer(start(Operation::Put(from), remote)?)),
            Source::Group => Err(UserError::new(
                "GEX_EVENT_GROUP is for implicit operations; give GEX_EVENT_NOW, GEX_EVENT_DEFER, or the address of an event",
            ).into()),
            Source::Event(place) if len <= COPIED_BYTES_MAX => {
                let root = start(Operation::PutNow(from), remote)?;
                place.write(pointer(None));
                Ok(pointer(root))
            }
            Source::Event(place) => {
                let root = start(Operation::Put(from), remote)?;
                let leaf = |root: Event| root.leaf(ex::Category::Source, attached()?.ops().completions()).map_err(Refusal::from);
                place.write(pointer(root.map(leaf).transpose()?.flatten()));
                Ok(pointer(root))
            }
        }
    }

    unsafe fn vgasnet_ex_RMA_PutNBI(
        team: *const Team, rank: u32, to: *mut c_void, from: *const c_void [len], len: usize,
        place: *mut EventPointer [0], _flags: u32,
    ) -> Outcome {
        let source = Source::of(place)?;
        if !matches!(source, Source::Event(_)) && put_number(team, rank, to, from, len) {
            return Ok(Outcome::DONE);
        }
        let (remote, from) = (remote(team, rank, to, len)?, from.cast());
        match source {
            Source::Now => start_implicit(Operation::PutNow(from), remote),
            Source::Defer => start_implicit(Operation::Put(from), remote),
            Source::Group if len <= COPIED_BYTES_MAX => start_implicit(Operation::PutNow(from), remote),
            Source::Group => {
                attached()?.ops().start_implicit_put(from, remote)?;
                Ok(Outcome::DONE)
            }
            Source::Event(_) => Err(UserError::new(
                "an implicit put has no event of its own; give GEX_EVENT_NOW, GEX_EVENT_DEFER or GEX_EVENT_GROUP",
            ).into()),
        }
    }

    unsafe fn vgasnet_ex_RMA_PutBlockingVal(
        team: *const Team, rank: u32, to: *mut c_void, value: u64, len: usize, _flags: u32,
    ) -> Outcome, hit (put_value(team, rank, to, value, len)) => Outcome::DONE; {
        let from = low_order_bytes((&raw const value).cast_mut(), len)?;
        transfer(Operation::Put(from), remote(team, rank, to, len)?)?;
        Ok(Outcome::DONE)
    }

    unsafe fn vgasnet_ex_RMA_PutNBVal(
        team: *const Team, rank: u32, to: *mut c_void, value: u64, len: usize, _flags: u32,
    ) -> EventPointer, hit (put_value(team, rank, to, value, len)) => pointer(None); {
        let from = low_order_bytes((&raw const value).cast_mut(), len)?;
        Ok(pointer(start(Operation::PutNow(from), remote(team, rank, to, len)?)?))
    }

    unsafe fn vgasnet_ex_RMA_PutNBIVal(
        team: *const Team, rank: u32, to: *mut c_void, value: u64, len: usize, _flags: u32,
    ) -> Outcome, hit (put_value(team, rank, to, value, len)) => Outcome::DONE; {
        let from = low_order_bytes((&raw const value).cast_mut(), len)?;
        start_implicit(Operation::PutNow(from), remote(team, rank, to, len)?)
    }
}

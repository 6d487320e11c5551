//! Active Messages.

use super::Outcome;
use super::events::{EventPointer, GROUP, pointer};
use crate::am::{Description, Destination, Envelope, LONG_BYTES_MAX, PAYLOAD_BYTES_MAX, Token};
use crate::capi::am::{envelope, message};
use crate::capi::boundary::{Refusal, attached, entry_points, initialised};
use crate::ex::{self, Endpoint, Team};
use std::ffi::{c_int, c_uint, c_void};
use vgasnet_protocol::active_message::ARGS_MAX;
use vgasnet_settings::UserError;

/// `GEX_FLAG_IMMEDIATE`.
pub(super) const IMMEDIATE: u32 = 1;
/// `GEX_FLAG_AM_PREPARE_LEAST_ALLOC`.
const LEAST_ALLOC: u32 = 1 << 12;

/// `gex_Token_Info_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TokenInfo {
    rank: u32,
    endpoint: *const Endpoint,
    entry: *const Description,
    is_request: c_int,
    is_long: c_int,
}

/// `GEX_TI_ALL`.
const ALL_INFO: c_uint = 31;
/// `GEX_TI_ENTRY`.
const ENTRY: c_uint = 2;

/// Sends a request as its flags demand.
///
/// # Safety
/// `team` is null, a pair, or has been the handle of an object. The payload is valid for its length.
unsafe fn request(team: *const Team, rank: u32, envelope: &Envelope, flags: u32) -> Result<Outcome, Refusal> {
    let am = attached()?.am();
    // SAFETY: `team` is null, a pair, or has been the handle of an object. The payload is valid for its length.
    unsafe {
        let to = ex::jobrank(team, rank)?;
        if flags & IMMEDIATE != 0 {
            return Ok(if am.try_request(to, envelope)? { Outcome::DONE } else { Outcome::NOT_SENT });
        }
        am.request(to, envelope)?;
    }
    Ok(Outcome::DONE)
}

/// Refuses a place that cannot take the event of local completion.
pub(super) fn check_local_completion(place: *mut EventPointer, is_reply: bool) -> Result<(), UserError> {
    use super::events::DEFER;
    let is_none = place.is_null() || place.addr() == DEFER || (is_reply && place.addr() == GROUP);
    if is_none { Err(bad_local_completion(place, is_reply)) } else { Ok(()) }
}

/// Reports local completion at the place. The payload is free for reuse already.
///
/// # Safety
/// `place` is null, one of the constants, or valid for writes.
pub(super) unsafe fn note_local_completion(place: *mut EventPointer, is_reply: bool) -> Result<(), UserError> {
    use super::events::NOW;
    check_local_completion(place, is_reply)?;
    if !matches!(place.addr(), NOW | GROUP) {
        // SAFETY: the place is none of the constants, so it is valid for writes.
        unsafe { place.write(pointer(None)) };
    }
    Ok(())
}

#[cold]
fn bad_local_completion(place: *mut EventPointer, is_reply: bool) -> UserError {
    let allowed = if is_reply { "GEX_EVENT_NOW" } else { "GEX_EVENT_NOW, GEX_EVENT_GROUP" };
    UserError::new(format!("{place:?} for the event of local completion; give {allowed}, or the address of an event"))
}

entry_points! {
    unsafe fn vgasnet_ex_AM_RequestShort(
        team: *const Team, rank: u32, handler: u8, flags: u32, count: usize, args: *const i32 [count],
    ) -> Outcome {
        let envelope = envelope(handler, std::ptr::null_mut(), 0, Destination::Nowhere, count, args)?;
        request(team, rank, &envelope, flags)
    }

    unsafe fn vgasnet_ex_AM_RequestMedium(
        team: *const Team, rank: u32, handler: u8, source: *const c_void [len_bytes], len_bytes: usize,
        place: *mut EventPointer [0], flags: u32, count: usize, args: *const i32 [count],
    ) -> Outcome {
        let envelope = envelope(handler, source.cast_mut(), len_bytes, Destination::Buffer, count, args)?;
        note_local_completion(place, false)?;
        request(team, rank, &envelope, flags)
    }

    unsafe fn vgasnet_ex_AM_RequestLong(
        team: *const Team, rank: u32, handler: u8, source: *const c_void [len_bytes], len_bytes: usize,
        destination: *mut c_void, place: *mut EventPointer [0], flags: u32, count: usize, args: *const i32 [count],
    ) -> Outcome {
        let destination = Destination::Segment(destination.addr());
        let envelope = envelope(handler, source.cast_mut(), len_bytes, destination, count, args)?;
        note_local_completion(place, false)?;
        request(team, rank, &envelope, flags)
    }

    unsafe fn vgasnet_ex_AM_ReplyShort(
        token: *mut c_void, handler: u8, _flags: u32, count: usize, args: *const i32 [count],
    ) -> Outcome {
        let envelope = envelope(handler, std::ptr::null_mut(), 0, Destination::Nowhere, count, args)?;
        attached()?.am().reply(message(token)?, &envelope)?;
        Ok(Outcome::DONE)
    }

    unsafe fn vgasnet_ex_AM_ReplyMedium(
        token: *mut c_void, handler: u8, source: *const c_void [len_bytes], len_bytes: usize,
        place: *mut EventPointer [0], _flags: u32, count: usize, args: *const i32 [count],
    ) -> Outcome {
        let envelope = envelope(handler, source.cast_mut(), len_bytes, Destination::Buffer, count, args)?;
        note_local_completion(place, true)?;
        attached()?.am().reply(message(token)?, &envelope)?;
        Ok(Outcome::DONE)
    }

    unsafe fn vgasnet_ex_AM_ReplyLong(
        token: *mut c_void, handler: u8, source: *const c_void [len_bytes], len_bytes: usize, destination: *mut c_void,
        place: *mut EventPointer [0], _flags: u32, count: usize, args: *const i32 [count],
    ) -> Outcome {
        let destination = Destination::Segment(destination.addr());
        let envelope = envelope(handler, source.cast_mut(), len_bytes, destination, count, args)?;
        note_local_completion(place, true)?;
        attached()?.am().reply(message(token)?, &envelope)?;
        Ok(Outcome::DONE)
    }

    unsafe fn vgasnet_ex_Token_Info(token: *mut c_void, info: *mut TokenInfo, _mask: c_uint) -> c_uint {
        let token = message(token)?;
        let info = info.as_mut().ok_or_else(|| UserError::new("the place for the answer is a null pointer"))?;
        Ok(tell(token, info)?)
    }

    unsafe fn vgasnet_ex_Token_MaxReplyMedium(
        token: *mut c_void, _place: *const EventPointer [0], _flags: u32, count: c_uint,
    ) -> usize {
        message(token)?;
        check_count(count)?;
        Ok(PAYLOAD_BYTES_MAX)
    }

    unsafe fn vgasnet_ex_Token_MaxReplyLong(
        token: *mut c_void, _place: *const EventPointer [0], flags: u32, count: c_uint,
    ) -> usize {
        message(token)?;
        check_count(count)?;
        Ok(long_bytes_max(flags))
    }

    unsafe fn vgasnet_ex_AM_MaxRequestMedium | vgasnet_ex_AM_MaxReplyMedium(
        team: *const Team, rank: u32, _place: *const EventPointer [0], _flags: u32, count: c_uint,
    ) -> usize {
        check_peer(team, rank)?;
        check_count(count)?;
        Ok(PAYLOAD_BYTES_MAX)
    }

    unsafe fn vgasnet_ex_AM_MaxRequestLong | vgasnet_ex_AM_MaxReplyLong(
        team: *const Team, rank: u32, _place: *const EventPointer [0], flags: u32, count: c_uint,
    ) -> usize {
        check_peer(team, rank)?;
        check_count(count)?;
        Ok(long_bytes_max(flags))
    }
}

entry_points! {
    fn vgasnet_ex_AM_LUBRequestMedium | vgasnet_ex_AM_LUBReplyMedium() -> usize {
        Ok(PAYLOAD_BYTES_MAX)
    }

    fn vgasnet_ex_AM_LUBRequestLong | vgasnet_ex_AM_LUBReplyLong() -> usize {
        Ok(LONG_BYTES_MAX)
    }
}

/// Answers a handler's query about its message. All fields are always known, so the mask is ignored.
fn tell(token: &Token, info: &mut TokenInfo) -> Result<c_uint, UserError> {
    let objects = ex::primordial().expect("handlers run in jobs");
    let entry = attached_handlers(token.handler());
    *info = TokenInfo {
        rank: token.from().0,
        endpoint: &raw const objects.endpoint,
        entry: entry.map_or(std::ptr::null(), std::ptr::from_ref),
        is_request: c_int::from(!token.is_reply()),
        is_long: c_int::from(token.is_long()),
    };
    Ok(if entry.is_some() { ALL_INFO } else { ALL_INFO & !ENTRY })
}

fn attached_handlers(index: u8) -> Option<&'static Description> {
    crate::job::job()?.handlers().description(index)
}

/// The longest payload of a Long, in bytes. In a buffer of the library it is no longer than a Medium's.
fn long_bytes_max(flags: u32) -> usize {
    if flags & LEAST_ALLOC != 0 { PAYLOAD_BYTES_MAX } else { LONG_BYTES_MAX }
}

fn check_count(count: c_uint) -> Result<(), UserError> {
    if count as usize > ARGS_MAX {
        return Err(UserError::new(format!("{count} arguments; a message has at most {ARGS_MAX}")));
    }
    Ok(())
}

/// Refuses a rank outside the team. `GEX_RANK_INVALID` stands for all ranks.
///
/// # Safety
/// `team` is null, a pair, or has been the handle of an object.
unsafe fn check_peer(team: *const Team, rank: u32) -> Result<(), Refusal> {
    let ranks = initialised()?.conduit().ranks();
    let asked = if rank == u32::MAX { 0 } else { rank };
    // SAFETY: `team` is null, a pair, or has been the handle of an object.
    let jobrank = unsafe { ex::jobrank(team, asked) }?;
    if jobrank >= ranks {
        return Err(UserError::new(format!("there is no rank {jobrank}; ranks are 0 to {}", ranks - 1)).into());
    }
    Ok(())
}

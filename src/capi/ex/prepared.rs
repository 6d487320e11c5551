//! Active Messages with negotiated payload.

use super::Outcome;
use super::am::{IMMEDIATE, check_local_completion, note_local_completion};
use super::events::EventPointer;
use crate::capi::am::message;
use crate::capi::boundary::{Refusal, attached, entry_points};
use crate::ex::prepared::{self, Final, Kind, PrepareArguments, Prepared, Target};
use crate::ex::{self, Team};
use std::ffi::{c_uint, c_void};
use vgasnet_protocol::active_message::{ARGS_MAX, Args};
use vgasnet_settings::UserError;

const REQUEST_MEDIUM: Kind = Kind { is_reply: false, is_long: false };
const REQUEST_LONG: Kind = Kind { is_reply: false, is_long: true };
const REPLY_MEDIUM: Kind = Kind { is_reply: true, is_long: false };
const REPLY_LONG: Kind = Kind { is_reply: true, is_long: true };

/// The arguments common to all functions preparing a message.
struct Asked {
    buffer: *const c_void,
    least_bytes: usize,
    most_bytes: usize,
    place: *mut EventPointer,
    flags: u32,
    count: c_uint,
}

/// Prepares a message. Returns null if it is immediate and no credit is available. The message keeps the place for the
/// event of local completion as its tag.
fn prepare(target: Target<'_>, is_long: bool, address: usize, asked: &Asked) -> Result<*mut Prepared, Refusal> {
    let Asked { buffer, least_bytes, most_bytes, place, flags, count } = *asked;
    if buffer.is_null() && !place.is_null() {
        let line =
            "there is a place for the event of local completion, but no buffer of the client's; give a null pointer";
        return Err(UserError::new(line).into());
    }
    if !place.is_null() {
        // Checked before the message exists, so that no message with a refused place is sent.
        check_local_completion(place, matches!(target, Target::Reply(_)))?;
    }
    if count as usize > ARGS_MAX {
        return Err(UserError::new(format!("{count} arguments; a message has at most {ARGS_MAX}")).into());
    }
    let arguments = PrepareArguments {
        target,
        is_long,
        buffer: buffer.cast(),
        least_bytes,
        most_bytes,
        address,
        args: count as usize,
        is_immediate: flags & IMMEDIATE != 0,
        tag: place.expose_provenance(),
    };
    Ok(prepared::prepare(&arguments, attached()?.am())?.unwrap_or(std::ptr::null_mut()))
}

/// The client's arguments at the commit.
struct Committed {
    handler: u8,
    payload_bytes: usize,
    address: usize,
    flags: u32,
    count: usize,
    args: *const i32,
}

/// Sends a prepared message, and answers whether it was sent.
///
/// # Safety
/// `args` has `count` entries. The payload is valid for its length.
unsafe fn commit(handle: *mut Prepared, kind: Kind, committed: &Committed) -> Result<Outcome, Refusal> {
    let Committed { handler, payload_bytes, address, flags, count, args } = *committed;
    // SAFETY: `args` has `count` entries.
    let args = unsafe { std::slice::from_raw_parts(args, count.min(ARGS_MAX)) };
    let args = Args::new(args).expect("not too many");
    let last = Final { handler, payload_bytes, address, args, is_immediate: flags & IMMEDIATE != 0 };
    // SAFETY: the payload is valid for its length.
    let place = unsafe { prepared::commit(handle, kind, &last, attached()?.am()) }?;
    let Some(place) = place else { return Ok(Outcome::NOT_SENT) };
    if place != 0 {
        // SAFETY: the client gave the place for this message.
        unsafe { note_local_completion(std::ptr::with_exposed_provenance_mut(place), kind.is_reply) }?;
    }
    Ok(Outcome::DONE)
}

entry_points! {
    unsafe fn vgasnet_ex_AM_PrepareRequestMedium(
        team: *const Team, rank: u32, buffer: *const c_void, least_bytes: usize, most_bytes: usize,
        place: *mut EventPointer [0], flags: u32, count: c_uint,
    ) -> *mut Prepared {
        let asked = Asked { buffer, least_bytes, most_bytes, place, flags, count };
        prepare(Target::Request(ex::jobrank(team, rank)?), false, 0, &asked)
    }

    unsafe fn vgasnet_ex_AM_PrepareRequestLong(
        team: *const Team, rank: u32, buffer: *const c_void, least_bytes: usize, most_bytes: usize,
        destination: *mut c_void, place: *mut EventPointer [0], flags: u32, count: c_uint,
    ) -> *mut Prepared {
        let asked = Asked { buffer, least_bytes, most_bytes, place, flags, count };
        prepare(Target::Request(ex::jobrank(team, rank)?), true, destination.addr(), &asked)
    }

    unsafe fn vgasnet_ex_AM_PrepareReplyMedium(
        token: *mut c_void, buffer: *const c_void, least_bytes: usize, most_bytes: usize, place: *mut EventPointer [0],
        flags: u32, count: c_uint,
    ) -> *mut Prepared {
        let asked = Asked { buffer, least_bytes, most_bytes, place, flags, count };
        prepare(Target::Reply(message(token)?), false, 0, &asked)
    }

    unsafe fn vgasnet_ex_AM_PrepareReplyLong(
        token: *mut c_void, buffer: *const c_void, least_bytes: usize, most_bytes: usize, destination: *mut c_void,
        place: *mut EventPointer [0], flags: u32, count: c_uint,
    ) -> *mut Prepared {
        let asked = Asked { buffer, least_bytes, most_bytes, place, flags, count };
        prepare(Target::Reply(message(token)?), true, destination.addr(), &asked)
    }

    unsafe fn vgasnet_ex_AM_CommitRequestMedium(
        handle: *mut Prepared, handler: u8, payload_bytes: usize, flags: u32, count: usize, args: *const i32 [count],
    ) -> Outcome {
        commit(handle, REQUEST_MEDIUM, &Committed { handler, payload_bytes, address: 0, flags, count, args })
    }

    unsafe fn vgasnet_ex_AM_CommitReplyMedium(
        handle: *mut Prepared, handler: u8, payload_bytes: usize, flags: u32, count: usize, args: *const i32 [count],
    ) -> Outcome {
        commit(handle, REPLY_MEDIUM, &Committed { handler, payload_bytes, address: 0, flags, count, args })
    }

    unsafe fn vgasnet_ex_AM_CommitRequestLong(
        handle: *mut Prepared, handler: u8, payload_bytes: usize, destination: *mut c_void, flags: u32, count: usize,
        args: *const i32 [count],
    ) -> Outcome {
        let address = destination.addr();
        commit(handle, REQUEST_LONG, &Committed { handler, payload_bytes, address, flags, count, args })
    }

    unsafe fn vgasnet_ex_AM_CommitReplyLong(
        handle: *mut Prepared, handler: u8, payload_bytes: usize, destination: *mut c_void, flags: u32, count: usize,
        args: *const i32 [count],
    ) -> Outcome {
        let address = destination.addr();
        commit(handle, REPLY_LONG, &Committed { handler, payload_bytes, address, flags, count, args })
    }
}

/// Drops a prepared message.
fn cancel(handle: *mut Prepared, kind: Kind) -> Result<Outcome, Refusal> {
    prepared::cancel(handle, kind, attached()?.am())?;
    Ok(Outcome::DONE)
}

entry_points! {
    fn vgasnet_ex_AM_CancelRequestMedium(handle: *mut Prepared, _flags: u32) -> Outcome {
        cancel(handle, REQUEST_MEDIUM)
    }

    fn vgasnet_ex_AM_CancelRequestLong(handle: *mut Prepared, _flags: u32) -> Outcome {
        cancel(handle, REQUEST_LONG)
    }

    fn vgasnet_ex_AM_CancelReplyMedium(handle: *mut Prepared, _flags: u32) -> Outcome {
        cancel(handle, REPLY_MEDIUM)
    }

    fn vgasnet_ex_AM_CancelReplyLong(handle: *mut Prepared, _flags: u32) -> Outcome {
        cancel(handle, REPLY_LONG)
    }

    fn vgasnet_ex_AM_SrcDescAddr(handle: *mut Prepared) -> *mut c_void {
        Ok(prepared::source(handle)?.0.cast())
    }

    fn vgasnet_ex_AM_SrcDescSize(handle: *mut Prepared) -> usize {
        Ok(prepared::source(handle)?.1)
    }
}

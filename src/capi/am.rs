//! Active Messages and handler-safe locks.

use super::boundary::{Refusal, attached, entry_points, initialised};
use super::{ERR_NOT_READY, OK};
use crate::am::{CLIENT_FIRST, Destination, Envelope, HandlerSafeLock, LONG_BYTES_MAX, PAYLOAD_BYTES_MAX, Token};
use crate::job;
use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicBool;
use vgasnet_protocol::active_message::{ARGS_MAX, Args};
use vgasnet_settings::UserError;

/// The envelope of a message, from the arguments of C.
///
/// # Safety
/// `args` is null, or points to `count` arguments.
pub(super) unsafe fn envelope(
    handler: u8,
    payload: *mut c_void,
    payload_bytes: usize,
    destination: Destination,
    count: usize,
    args: *const i32,
) -> Result<Envelope, Refusal> {
    if handler < CLIENT_FIRST {
        return Err(Refusal::bad_argument(format!("handler {handler}; handlers of clients are {CLIENT_FIRST} to 255")));
    }
    let none_given = args.is_null() || count == 0;
    // SAFETY: `args` is not null, so it points to `count` arguments. No more than `count` are read.
    let args = if none_given { &[] } else { unsafe { std::slice::from_raw_parts(args, count.min(ARGS_MAX + 1)) } };
    if args.len() != count || count > ARGS_MAX {
        return Err(Refusal::bad_argument(format!(
            "{count} arguments; a message has at most {ARGS_MAX}, see AMMaxArgs"
        )));
    }
    let args = Args::new(args).expect("it was just seen that there are not too many");
    Ok(Envelope { handler, payload: payload.cast(), payload_bytes, destination, args })
}

/// The token passed back by a handler.
///
/// # Safety
/// `token` is null or, in a handler, the handler's first argument.
pub(super) unsafe fn message<'a>(token: *mut c_void) -> Result<&'a Token, Refusal> {
    let missing = || Refusal::bad_argument("the token is null or used outside of a handler; give what the handler got");
    if !crate::am::is_in_handler() {
        return Err(missing());
    }
    // SAFETY: this thread is in a handler, and `token` is null or the handler's first argument.
    unsafe { Token::of_handler(token) }.ok_or_else(missing)
}

entry_points! {
    unsafe fn vgasnet_wait_handler(seen: u64, since: *mut u64) {
        let since = since.as_mut().ok_or_else(|| UserError::new("since is a null pointer"))?;
        attached()?.am().wait_for_handler(seen, since);
        Ok(())
    }

    unsafe fn vgasnet_AMRequestShortArgs(to: u32, handler: u8, count: usize, args: *const i32 [count]) -> c_int {
        let envelope = envelope(handler, std::ptr::null_mut(), 0, Destination::Nowhere, count, args)?;
        attached()?.am().request(to, &envelope).map(|()| OK).map_err(Refusal::bad_argument)
    }

    unsafe fn vgasnet_AMRequestMediumArgs(
        to: u32, handler: u8, source: *mut c_void [len_bytes], len_bytes: usize, count: usize, args: *const i32 [count],
    ) -> c_int {
        let envelope = envelope(handler, source, len_bytes, Destination::Buffer, count, args)?;
        attached()?.am().request(to, &envelope).map(|()| OK).map_err(Refusal::bad_argument)
    }

    unsafe fn vgasnet_AMRequestLongArgs(
        to: u32, handler: u8, source: *mut c_void [len_bytes], len_bytes: usize, destination: *mut c_void, count: usize,
        args: *const i32 [count],
    ) -> c_int {
        let destination = Destination::Segment(destination.addr());
        let envelope = envelope(handler, source, len_bytes, destination, count, args)?;
        attached()?.am().request(to, &envelope).map(|()| OK).map_err(Refusal::bad_argument)
    }

    unsafe fn vgasnet_AMReplyShortArgs(token: *mut c_void, handler: u8, count: usize, args: *const i32 [count]) -> c_int {
        let envelope = envelope(handler, std::ptr::null_mut(), 0, Destination::Nowhere, count, args)?;
        attached()?.am().reply(message(token)?, &envelope).map(|()| OK).map_err(Refusal::bad_argument)
    }

    unsafe fn vgasnet_AMReplyMediumArgs(
        token: *mut c_void, handler: u8, source: *mut c_void [len_bytes], len_bytes: usize, count: usize,
        args: *const i32 [count],
    ) -> c_int {
        let envelope = envelope(handler, source, len_bytes, Destination::Buffer, count, args)?;
        attached()?.am().reply(message(token)?, &envelope).map(|()| OK).map_err(Refusal::bad_argument)
    }

    unsafe fn vgasnet_AMReplyLongArgs(
        token: *mut c_void, handler: u8, source: *mut c_void [len_bytes], len_bytes: usize, destination: *mut c_void,
        count: usize, args: *const i32 [count],
    ) -> c_int {
        let destination = Destination::Segment(destination.addr());
        let envelope = envelope(handler, source, len_bytes, destination, count, args)?;
        attached()?.am().reply(message(token)?, &envelope).map(|()| OK).map_err(Refusal::bad_argument)
    }

    unsafe fn vgasnet_AMGetMsgSource(token: *mut c_void, source: *mut u32) -> c_int {
        let from = message(token)?.from();
        if source.is_null() {
            return Err(Refusal::bad_argument("the place for the source is a null pointer"));
        }
        source.write(from.0);
        Ok(OK)
    }

    unsafe fn vgasnet_hsl_init(lock: *mut HandlerSafeLock) {
        lock_at(lock)?;
        lock.write(HandlerSafeLock::default());
        Ok(())
    }

    unsafe fn vgasnet_hsl_destroy(lock: *mut HandlerSafeLock) {
        if !lock_at(lock)?.is_free() {
            return Err(UserError::new("the lock is destroyed while a thread has it; unlock it first").into());
        }
        Ok(())
    }

    unsafe fn vgasnet_hsl_lock(lock: *mut HandlerSafeLock) {
        lock_at(lock)?.lock();
        Ok(())
    }

    unsafe fn vgasnet_hsl_trylock(lock: *mut HandlerSafeLock) -> c_int {
        Ok(if lock_at(lock)?.try_lock() { OK } else { ERR_NOT_READY })
    }

    unsafe fn vgasnet_hsl_unlock(lock: *mut HandlerSafeLock) {
        static WARNED: AtomicBool = AtomicBool::new(false);
        if lock_at(lock)?.unlock() {
            return Ok(());
        }
        let refusal = Refusal::from(UserError::new("a free lock is unlocked; lock it first"));
        refusal.tolerate("vgasnet_hsl_unlock", &WARNED)
    }
}

/// The client's lock.
///
/// # Safety
/// `lock` is null, or points to a lock. All fields of a lock are atomic.
unsafe fn lock_at<'a>(lock: *mut HandlerSafeLock) -> Result<&'a HandlerSafeLock, Refusal> {
    // SAFETY: the pointer is null, or points to the client's lock, which stays valid during the call.
    unsafe { lock.as_ref() }.ok_or_else(|| UserError::new("the lock is a null pointer").into())
}

entry_points! {
    fn vgasnet_AMPoll() -> c_int {
        attached()?.driver().poll();
        Ok(OK)
    }

    fn vgasnet_handler_runs() -> u64 {
        Ok(attached()?.am().messages().runs())
    }

    fn vgasnet_AMMaxArgs() -> usize {
        Ok(ARGS_MAX)
    }

    fn vgasnet_AMMaxMedium() -> usize {
        Ok(PAYLOAD_BYTES_MAX)
    }

    fn vgasnet_AMMaxLongRequest | vgasnet_AMMaxLongReply() -> usize {
        Ok(LONG_BYTES_MAX)
    }

    fn vgasnet_end_handlers() {
        if let Some(runtime) = job::runtime() {
            runtime.am().messages().end_handlers();
        }
        Ok(())
    }

    fn vgasnet_hold_interrupts | vgasnet_resume_interrupts() {
        initialised()?;
        Ok(())
    }
}

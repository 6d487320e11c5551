//! Messages with negotiated payload. The client fills in a prepared message, then the same thread commits or cancels
//! it.
//!
//! A thread has at most one prepared message, in a place of its own that lives as long as the thread. Preparing a
//! request takes its credit, so that the commit need not wait for credit. If the client has no buffer, it gets the
//! thread's.
//!
//! Source: GASNet-EX (specification 0.19), "Negotiated-payload AM APIs".

use crate::am::{self, Am, Destination, Envelope, HeldCredit, LONG_BYTES_MAX, PAYLOAD_BYTES_MAX, Token};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use vgasnet_protocol::active_message::Args;
use vgasnet_settings::UserError;
use vgasnet_sys::at_thread_end;

/// The receiver of a message.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// A request to this rank of the job.
    Request(u32),
    /// The reply to the message named by this token.
    Reply(&'a Token),
}

/// The function that prepared a message. Only the matching function may commit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// A reply, not a request.
    pub is_reply: bool,
    /// A Long, not a Medium.
    pub is_long: bool,
}

/// The client's arguments for preparing a message.
#[derive(Clone, Copy, Debug)]
pub struct PrepareArguments<'a> {
    /// The receiver of the message.
    pub target: Target<'a>,
    /// Whether it is a Long.
    pub is_long: bool,
    /// The client's buffer, or null for one of the library's.
    pub buffer: *const u8,
    /// The smallest useful payload, in bytes.
    pub least_bytes: usize,
    /// The largest payload to expect, in bytes.
    pub most_bytes: usize,
    /// The address of the payload at its target, or 0 if the client does not know it yet.
    pub address: usize,
    /// The number of arguments to expect.
    pub args: usize,
    /// Do not wait for credit.
    pub is_immediate: bool,
    /// Any number, returned to the caller at the commit.
    pub tag: usize,
}

/// The client's arguments for committing a message.
#[derive(Clone, Copy, Debug)]
pub struct Final {
    /// The index of the handler.
    pub handler: u8,
    /// The payload's length in bytes.
    pub payload_bytes: usize,
    /// The address of a Long's payload at its target.
    pub address: usize,
    /// The handler's arguments.
    pub args: Args,
    /// Do not wait for pages.
    pub is_immediate: bool,
}

/// `gex_AM_SrcDesc_t`: a thread's place for its message.
#[derive(Debug, Default)]
pub struct Prepared {
    open: Option<Open>,
    /// The library's buffer.
    buffer: Vec<u128>,
}

/// The receiver of a prepared message.
#[derive(Debug)]
enum Whom {
    /// A request's target, with its credit.
    Held(HeldCredit),
    /// The request to reply to, and the run of its handler.
    Token(*const Token, u64),
}

/// A prepared message.
#[derive(Debug)]
struct Open {
    kind: Kind,
    whom: Whom,
    start: *const u8,
    size_bytes: usize,
    address: usize,
    args: usize,
    tag: usize,
}

thread_local! {
    static PREPARED: RefCell<ManuallyDrop<Option<Box<Prepared>>>> = const { RefCell::new(ManuallyDrop::new(None)) };
}

/// Runs a function on this thread's place.
fn with_own<R>(what: impl FnOnce(&mut Box<Prepared>) -> R) -> R {
    PREPARED.with_borrow_mut(|prepared| {
        what(prepared.get_or_insert_with(|| {
            at_thread_end(|| drop(PREPARED.with_borrow_mut(|prepared| prepared.take())));
            Box::default()
        }))
    })
}

/// The largest payload of a prepared message, in bytes. A Long's may be larger in the client's buffer.
pub fn payload_bytes_max(is_long: bool, is_in_own_buffer: bool) -> usize {
    if is_long && is_in_own_buffer { LONG_BYTES_MAX } else { PAYLOAD_BYTES_MAX }
}

/// Prepares a message. `None` if it is immediate and no credit is available.
///
/// # Errors
/// The thread has another prepared message, it may not send this one, or even the smallest payload is too long.
pub fn prepare(arguments: &PrepareArguments<'_>, am: &Am) -> Result<Option<*mut Prepared>, UserError> {
    let most_bytes = payload_bytes_max(arguments.is_long, !arguments.buffer.is_null());
    check(arguments, most_bytes)?;
    let size_bytes = arguments.most_bytes.min(most_bytes);
    let whom = match arguments.target {
        Target::Reply(token) => {
            token.check_reply()?;
            Whom::Token(token, am::running_handler())
        }
        Target::Request(to) => {
            let destination = if arguments.is_long { Destination::Segment(0) } else { Destination::Buffer };
            let args = Args::new(&[]).expect("none");
            let nothing = Envelope { handler: 0, payload: std::ptr::null(), payload_bytes: 0, destination, args };
            am.check_request(to, &nothing)?;
            let held = if arguments.is_immediate { am.try_hold(to, size_bytes) } else { Some(am.hold(to, size_bytes)) };
            let Some(held) = held else { return Ok(None) };
            Whom::Held(held)
        }
    };
    let kind = Kind { is_reply: matches!(arguments.target, Target::Reply(_)), is_long: arguments.is_long };
    with_own(|prepared| {
        let start = if arguments.buffer.is_null() { prepared.buffer_of(size_bytes) } else { arguments.buffer };
        let PrepareArguments { address, args, tag, .. } = *arguments;
        prepared.open = Some(Open { kind, whom, start, size_bytes, address, args, tag });
        Ok(Some(&raw mut **prepared))
    })
}

fn check(arguments: &PrepareArguments<'_>, most_bytes: usize) -> Result<(), UserError> {
    if with_own(|prepared| prepared.open.is_some()) {
        return Err(UserError::new("this thread has prepared a message already; commit or cancel that first"));
    }
    if arguments.least_bytes > arguments.most_bytes {
        return Err(UserError::new(format!(
            "the least payload, {} bytes, is more than the most, {} bytes",
            arguments.least_bytes, arguments.most_bytes
        )));
    }
    if arguments.least_bytes > most_bytes {
        return Err(UserError::new(format!(
            "a payload of at least {} bytes; at most {most_bytes} are allowed, see gex_AM_Max with \
             GEX_FLAG_AM_PREPARE_LEAST_CLIENT or _ALLOC",
            arguments.least_bytes
        )));
    }
    Ok(())
}

/// The buffer for a message's payload, and its size.
///
/// # Errors
/// The thread has not prepared the message.
pub fn source(handle: *mut Prepared) -> Result<(*mut u8, usize), UserError> {
    with(handle, |open| (open.start.cast_mut(), open.size_bytes))
}

/// Sends a prepared message. Returns its tag, or `None` if it is immediate and was not sent. It then stays prepared.
///
/// # Errors
/// The thread has not prepared the message, has prepared it with another function, or cannot send it. It then stays
/// prepared.
///
/// # Safety
/// The payload is valid for its length.
pub unsafe fn commit(handle: *mut Prepared, kind: Kind, last: &Final, am: &Am) -> Result<Option<usize>, UserError> {
    let open = take(handle, kind)?;
    // SAFETY: the payload is valid for its length.
    let sent = unsafe { open.send(last, am) };
    let tag = open.tag;
    if !matches!(sent, Ok(true)) {
        with_own(|prepared| prepared.open = Some(open));
    }
    sent.map(|sent| sent.then_some(tag))
}

/// Drops a prepared message.
///
/// # Errors
/// The thread has not prepared the message, or has prepared it with another function.
pub fn cancel(handle: *mut Prepared, kind: Kind, am: &Am) -> Result<(), UserError> {
    if let Whom::Held(held) = take(handle, kind)?.whom {
        am.release(held);
    }
    Ok(())
}

impl Open {
    /// Sends the message. Returns whether it did.
    ///
    /// # Safety
    /// The payload is valid for its length.
    unsafe fn send(&self, last: &Final, am: &Am) -> Result<bool, UserError> {
        self.check(last)?;
        let destination = if self.kind.is_long { Destination::Segment(last.address) } else { Destination::Buffer };
        let Final { handler, payload_bytes, args, .. } = *last;
        let envelope = Envelope { handler, payload: self.start, payload_bytes, destination, args };
        match self.whom {
            // SAFETY: the payload is valid for its length.
            Whom::Held(ref held) => unsafe { am.send_held(held, &envelope, last.is_immediate) },
            Whom::Token(token, handler) if handler == am::running_handler() => {
                // SAFETY: the request's handler is running, and its token stays valid as long. The payload is valid for
                // its length.
                unsafe { am.reply(&*token, &envelope) }.map(|()| true)
            }
            Whom::Token(..) => {
                Err(UserError::new("the handler that has prepared this reply has returned; commit it there"))
            }
        }
    }

    fn check(&self, last: &Final) -> Result<(), UserError> {
        if last.payload_bytes > self.size_bytes {
            return Err(UserError::new(format!(
                "a payload of {} bytes in a message that is prepared for {}; see gex_AM_SrcDescSize",
                last.payload_bytes, self.size_bytes
            )));
        }
        if last.args.as_slice().len() != self.args {
            return Err(UserError::new(format!(
                "{} arguments for a message that is prepared for {}; give as many as you have told",
                last.args.as_slice().len(),
                self.args
            )));
        }
        if self.address != 0 && last.address != self.address {
            return Err(UserError::new(format!(
                "a payload for {:#x} in a message that is prepared for {:#x}; give the same, or prepare it with a null pointer",
                last.address, self.address
            )));
        }
        Ok(())
    }
}

impl Prepared {
    /// The library's buffer, with at least `size_bytes`.
    fn buffer_of(&mut self, size_bytes: usize) -> *const u8 {
        let words = size_bytes.div_ceil(size_of::<u128>()).max(1);
        if self.buffer.len() < words {
            self.buffer.resize(words, 0);
        }
        self.buffer.as_mut_ptr().cast::<u8>().cast_const()
    }
}

fn with<R>(handle: *mut Prepared, read: impl FnOnce(&Open) -> R) -> Result<R, UserError> {
    with_own(|prepared| {
        let open = prepared.open.as_ref().filter(|_| std::ptr::eq(&raw const **prepared, handle));
        open.map(read).ok_or_else(|| none(handle))
    })
}

fn take(handle: *mut Prepared, kind: Kind) -> Result<Open, UserError> {
    let prepared_as = with(handle, |open| open.kind)?;
    if prepared_as != kind {
        let name = |kind: Kind| match kind {
            Kind { is_reply: false, is_long: false } => "RequestMedium",
            Kind { is_reply: false, is_long: true } => "RequestLong",
            Kind { is_reply: true, is_long: false } => "ReplyMedium",
            Kind { is_reply: true, is_long: true } => "ReplyLong",
        };
        return Err(UserError::new(format!("the message was prepared by gex_AM_Prepare{}", name(prepared_as))));
    }
    Ok(with_own(|prepared| prepared.open.take()).expect("it was just seen"))
}

#[cold]
fn none(handle: *mut Prepared) -> UserError {
    UserError::new(format!(
        "{handle:?} is no message that this thread has prepared: it was committed or cancelled, or is another thread's"
    ))
}

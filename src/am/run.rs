//! Runs handlers, in threads in calls.

use super::flow::Amount;
use super::handler_queue::{Incoming, Payload};
use super::handlers::{self, Frame, LIBRARY};
use super::peer_completion::Target;
use super::send::{Destination, Envelope};
use super::{Am, caller, pauses};
use crate::ops::{Operation, Remote};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use vgasnet_protocol::active_message::{Args, Category};
use vgasnet_protocol::{Rank, Violation};
use vgasnet_settings::UserError;
use vgasnet_stats::{self as stats, Row};
use vgasnet_sys::{CancellationGuard, call_client};

/// The call named in errors that no call can return.
const CALL: &str = "active message";

/// Names the message of a running handler. It lies on the stack of the thread that runs the handler.
#[derive(Debug)]
pub struct Token {
    from: Rank,
    is_reply: bool,
    is_long: bool,
    handler: u8,
    cost: u32,
    replied: Cell<bool>,
}

impl Token {
    fn new(from: Rank, is_reply: bool, category: Category, handler: u8, cost: u32) -> Token {
        let is_long = category == Category::Long;
        Token { from, is_reply, is_long, handler, cost, replied: Cell::new(false) }
    }

    /// The token of a handler.
    ///
    /// # Safety
    /// `pointer` is null, or the first argument of the handler that this thread runs.
    pub unsafe fn of_handler<'a>(pointer: *mut c_void) -> Option<&'a Token> {
        // SAFETY: the pointer is null, or to the token on this thread's stack, which stays until the handler returns.
        unsafe { pointer.cast::<Token>().as_ref() }
    }

    /// The sender of the message.
    pub fn from(&self) -> Rank {
        self.from
    }

    /// Whether the message is a reply.
    pub fn is_reply(&self) -> bool {
        self.is_reply
    }

    /// Whether the message is a Long.
    pub fn is_long(&self) -> bool {
        self.is_long
    }

    /// The index of the handler.
    pub fn handler(&self) -> u8 {
        self.handler
    }

    /// Refuses a reply to a message that may not have one.
    ///
    /// # Errors
    /// The message is a reply itself, or was replied to.
    pub fn check_reply(&self) -> Result<(), UserError> {
        if self.is_reply {
            return Err(UserError::new("the handler of a reply replies; only handlers of requests may"));
        }
        if self.replied.get() {
            return Err(UserError::new("a request is replied to twice; it may be once"));
        }
        Ok(())
    }

    /// Uses up the message's only reply. Returns the message's cost.
    pub(super) fn take_reply(&self) -> Result<u32, UserError> {
        self.check_reply()?;
        self.replied.set(true);
        Ok(self.cost)
    }
}

impl Am {
    /// Waits until [`Messages::runs`](super::Messages::runs) differs from `seen`, or a short time. `since` is the start
    /// of the client's wait; 0, which is replaced, means now.
    pub fn wait_for_handler(&self, seen: u64, since: &mut u64) {
        // This rank's messages to itself may change it each time, and other ranks' arrive by polling only.
        let has_run = || self.messages().runs() != seen;
        // Reading the clock takes longer than a number of checks for arrivals.
        if has_run() || self.driver().spin_briefly(&has_run) {
            return self.driver().poll();
        }
        let now = pauses::clock_ns();
        if *since == 0 {
            *since = now;
        }
        let waited = Duration::from_nanos(now.saturating_sub(*since));
        let sleep = pauses::sleep_after(waited, self.driver().spin_limit());
        if sleep.is_zero() {
            return self.driver().poll();
        }
        let _waiting = stats::wait(Row::WaitMessage);
        self.driver().wait_until_or(&|| self.messages().runs() != seen, Some(Instant::now() + sleep));
    }

    /// Runs the handler of a message to this rank itself, at once.
    ///
    /// # Safety
    /// The payload is valid for its length, and the envelope has passed `check`.
    pub(super) unsafe fn run_here(&self, envelope: &Envelope, is_reply: bool) {
        let Envelope { handler, payload, payload_bytes, destination, args } = *envelope;
        let rank = self.space().rank;
        let token = Token::new(rank, is_reply, envelope.category(), handler, 0);
        let mut copy = Payload::default();
        let (category, place) = match destination {
            Destination::Nowhere => (Category::Short, std::ptr::null_mut()),
            Destination::Buffer => {
                if payload_bytes > 0 {
                    // SAFETY: the payload is valid for its length.
                    copy = Payload::from_bytes(unsafe { std::slice::from_raw_parts(payload, payload_bytes) });
                }
                (Category::Medium, copy.as_mut_ptr())
            }
            Destination::Segment(address) => {
                let remote = Remote { rank: rank.0, address, len_bytes: payload_bytes };
                // SAFETY: the payload is valid for its length, which is the transfer's.
                self.driver().must(CALL, unsafe { self.ops.transfer(Operation::Put(payload), remote) });
                (Category::Long, std::ptr::with_exposed_provenance_mut(address))
            }
        };
        let frame = Frame { token: as_pointer(&token), payload: place.cast(), payload_bytes };
        self.call(handler, category, frame, &args, &token);
    }

    /// Runs the handler of the first complete message. Returns whether there was one.
    pub fn run_one(&self) -> bool {
        let messages = self.messages();
        if !messages.has_pending() {
            return false;
        }
        let Some(mut incoming) = messages.take() else { return false };
        let Incoming { from, head, .. } = incoming;
        let target = Target::of(&head, &incoming.args);
        let token = Token::new(from, target.is_reply, head.category, target.handler, cost_of(&incoming));
        let place = self.payload_place(&mut incoming).unwrap_or_else(|line| self.driver().fail(CALL, &line));
        let frame =
            Frame { token: as_pointer(&token), payload: place.cast(), payload_bytes: head.payload_bytes as usize };
        self.call(target.handler, head.category, frame, &target.args, &token);
        if from == self.space().rank {
            // No message returns this credit, replied to or not.
            let amount = Amount { requests: 1, cost: token.cost };
            assert!(messages.flow.give_back(from, amount), "a message in the own queue has credit");
            self.driver().notify();
        } else if !head.is_reply && !token.replied.get() {
            if let Some(amount) = messages.flow.on_handled(from, token.cost) {
                self.give_credit(from, amount);
            }
        }
        if incoming.payload.len_bytes() > 0 {
            messages.queue().recycle(incoming.payload);
        }
        if !messages.has_pending() {
            while let Some((to, amount)) = messages.flow.pay_one() {
                self.give_credit(to, amount);
            }
        }
        true
    }

    /// The place of the payload for the handler. A Long's payload is put there first.
    ///
    /// # Errors
    /// The sender names a place outside of the segment.
    fn payload_place(&self, incoming: &mut Incoming) -> Result<*mut u8, UserError> {
        let Incoming { from, head, payload, .. } = incoming;
        Ok(match head.category {
            Category::Short => std::ptr::null_mut(),
            Category::Medium => payload.as_mut_ptr(),
            Category::Long => {
                let (address, len_bytes) = (head.address as usize, head.payload_bytes as usize);
                if self.space().pieces(self.space().rank.0, address, len_bytes).is_err() {
                    let what = "a Long message with a payload outside of this rank's segment";
                    return Err(UserError::new(Violation::new(*from, what).to_string()));
                }
                if !head.is_placed {
                    let remote = Remote { rank: self.space().rank.0, address, len_bytes: payload.len_bytes() };
                    // SAFETY: the payload has `len_bytes` bytes, and lives until the message has been handled.
                    self.driver()
                        .must(CALL, unsafe { self.ops.transfer(Operation::Put(payload.as_mut_ptr()), remote) });
                }
                std::ptr::with_exposed_provenance_mut(address)
            }
        })
    }

    fn call(&self, index: u8, category: Category, frame: Frame, args: &Args, token: &Token) {
        let from = token.from;
        if let Some(handler) = self.messages.library_handler().filter(|_| index == LIBRARY) {
            caller::in_handler(|| handler(from, args, frame.payload, frame.payload_bytes));
            return self.driver().notify();
        }
        if self.messages().have_ended() {
            return;
        }
        let Some(function) = self.messages().handlers().get(index) else {
            let line = format!(
                "rank {from} sent a message for handler {index}, which is not registered here; register it on all ranks"
            );
            self.driver().fail(CALL, &UserError::new(line));
        };
        if self.ops.is_strict() {
            self.check_description(category, args, token);
        }
        let _uncancelled = CancellationGuard::new();
        // SAFETY: the client registered the function for messages of this category and as many arguments (GASNet-1,
        // E.0). The payload has the frame's length.
        let call = || unsafe { handlers::call(function, category, frame, args) };
        caller::in_handler(|| call_client(call));
        self.messages().runs.fetch_add(1, Ordering::SeqCst);
        // Another thread may wait for an effect of the handler: it checks the count.
        self.driver().notify_of_count();
    }
}

impl Am {
    /// Ends the job if a message does not match its handler's description.
    fn check_description(&self, category: Category, args: &Args, token: &Token) {
        let count = args.as_slice().len();
        let described = self.messages().handlers().description(token.handler);
        if described.is_none_or(|handler| handler.takes(category, token.is_reply, count)) {
            return;
        }
        let (from, index) = (token.from, token.handler);
        let kind = if token.is_reply { "reply" } else { "request" };
        let line = format!(
            "rank {from} sent a {category:?} {kind} of {count} arguments for handler {index}, which is registered for other messages; see \
             gex_nargs and gex_flags in the table of gex_EP_RegisterHandlers"
        );
        self.driver().fail(CALL, &UserError::new(line));
    }
}

fn cost_of(incoming: &Incoming) -> u32 {
    if incoming.head.is_placed { 0 } else { incoming.head.payload_bytes }
}

fn as_pointer(token: &Token) -> *mut c_void {
    std::ptr::from_ref(token).cast_mut().cast()
}

//! Running handlers, in threads that called in.

use super::handlers::{self, Frame};
use super::inbox::Incoming;
use super::send::{Destination, Outgoing};
use super::wire::Category;
use super::{Messages, Payload, caller};
use crate::coll;
use crate::error::UserError;
use crate::job;
use crate::ops::{Client, Remote};
use crate::runtime::Runtime;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use vgasnet_conduit::Rank;

/// Handlers that one poll runs at most, so that a flood does not keep its caller from other work.
const POLL_RUNS_MAX: usize = 64;

/// After so long, a condition that only handlers should change is looked at again even if none has run: clients wait for
/// other threads and for puts like this too.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Names the message that a handler handles. It lies on the stack of the thread that runs the handler.
#[derive(Debug)]
pub struct Token {
    from: Rank,
    is_reply: bool,
    cost: u32,
    replied: Cell<bool>,
}

impl Token {
    fn new(from: Rank, is_reply: bool, cost: u32) -> Token {
        Token { from, is_reply, cost, replied: Cell::new(false) }
    }

    /// Who sent the message.
    pub fn from(&self) -> Rank {
        self.from
    }

    /// The one reply that the message may have is being sent: what the message had cost.
    pub(super) fn take_reply(&self) -> Result<u32, UserError> {
        if self.is_reply {
            return Err(UserError::new("the handler of a reply replies; only handlers of requests may"));
        }
        if self.replied.replace(true) {
            return Err(UserError::new("a request is replied to twice; it may be once"));
        }
        Ok(self.cost)
    }
}

impl Runtime {
    /// Works a little: drives the engine once, runs what handlers are pending, and does what collectives have to do after
    /// them, if this thread may.
    pub fn poll(&self) {
        self.progress().poll();
        if caller::is_in_handler() {
            return;
        }
        for _ in 0..POLL_RUNS_MAX {
            if !self.run_one() {
                break;
            }
        }
        self.advance_collectives();
    }

    /// Waits until `done`, driving the engine and, if this thread may, running handlers and carrying out collectives.
    pub fn wait_until(&self, done: &dyn Fn() -> bool) {
        self.wait_until_or(done, None);
    }

    /// As [`Runtime::wait_until`], but not much longer than `end`.
    fn wait_until_or(&self, done: &dyn Fn() -> bool, end: Option<Instant>) {
        let messages = self.messages();
        let may_run = !caller::is_in_handler();
        let has_work = || messages.has_pending() || self.collectives().has_work(messages.credit_returns());
        let mut rounds = 0_u32;
        while !done() {
            if may_run && (self.run_one() || self.advance_collectives()) {
                continue;
            }
            let is_over = || done() || (may_run && has_work());
            if !self.progress().watch(&is_over) {
                self.progress().wait_until(&is_over, end);
            }
            // A look at the clock takes as long as a tenth of a round trip.
            rounds += 1;
            if rounds % 8 == 0 && end.is_some_and(|end| Instant::now() >= end) {
                return;
            }
        }
    }

    /// Waits until another handler has run than had been when [`Messages::runs`] was `seen`, or a short time.
    pub fn wait_for_handler(&self, seen: u64) {
        self.wait_until_or(&|| self.messages().runs() != seen, Some(Instant::now() + LOOK_AGAIN));
    }

    /// Runs the handler of a message to this rank itself, at once.
    ///
    /// # Safety
    /// The payload is valid for its length, and what `check` looks at is right.
    pub(super) unsafe fn run_here(&self, outgoing: &Outgoing, is_reply: bool) {
        let Outgoing { handler, payload, payload_bytes, destination, args } = *outgoing;
        let rank = self.space().rank;
        let token = Token::new(rank, is_reply, 0);
        let mut copy = Payload::default();
        let (category, place) = match destination {
            Destination::Nowhere => (Category::Short, std::ptr::null_mut()),
            Destination::Buffer => {
                if payload_bytes > 0 {
                    // SAFETY: the caller's promise.
                    copy = Payload::from_bytes(unsafe { std::slice::from_raw_parts(payload, payload_bytes) });
                }
                (Category::Medium, copy.as_mut_ptr())
            }
            Destination::Segment(address) => {
                let remote = Remote { rank: rank.0, address, len_bytes: payload_bytes };
                // SAFETY: the caller's promise.
                self.must(unsafe { self.transfer(Client::Put(payload), remote) });
                (Category::Long, std::ptr::with_exposed_provenance_mut(address))
            }
        };
        let frame = Frame { token: as_pointer(&token), payload: place.cast(), payload_bytes };
        self.call(handler, category, frame, &args, rank);
    }

    /// Runs the handler of the oldest message that is pending. Returns whether there was one.
    fn run_one(&self) -> bool {
        let messages = self.messages();
        if !messages.has_pending() {
            return false;
        }
        let Some(mut incoming) = messages.take() else { return false };
        let Incoming { from, head, .. } = incoming;
        let token = Token::new(from, head.is_reply, cost_of(&incoming));
        let place = self.payload_place(&mut incoming);
        let frame =
            Frame { token: as_pointer(&token), payload: place.cast(), payload_bytes: head.payload_bytes as usize };
        self.call(head.handler, head.category, frame, &head.args, from);
        if !head.is_reply && !token.replied.get() {
            if let Some(amount) = messages.flow.on_handled(from, token.cost) {
                self.give_credit(from, amount);
            }
        }
        messages.inbox().recycle(incoming.payload);
        if !messages.has_pending() {
            messages.flow.settle_all().into_iter().for_each(|(to, amount)| self.give_credit(to, amount));
        }
        true
    }

    /// Where the handler finds its payload; a Long's is put there first.
    fn payload_place(&self, incoming: &mut Incoming) -> *mut u8 {
        let Incoming { head, payload, .. } = incoming;
        match head.category {
            Category::Short => std::ptr::null_mut(),
            Category::Medium => payload.as_mut_ptr(),
            Category::Long => {
                let address = head.address as usize;
                if !head.is_placed {
                    let remote = Remote { rank: self.space().rank.0, address, len_bytes: payload.len_bytes() };
                    // SAFETY: the payload is as long as that.
                    self.must(unsafe { self.transfer(Client::Put(payload.as_mut_ptr()), remote) });
                }
                std::ptr::with_exposed_provenance_mut(address)
            }
        }
    }

    fn call(&self, index: u8, category: Category, frame: Frame, args: &super::Args, from: Rank) {
        if index == coll::HANDLER {
            // SAFETY: the frame's payload is as long as it says.
            caller::in_handler(|| unsafe {
                self.on_collective_message(args, frame.payload, frame.payload_bytes);
            });
            self.progress().announce();
            return;
        }
        let Some(function) = self.messages().handlers.get(index) else {
            let line =
                format!("rank {from} sent a message for handler {index}, which is not registered here; see attach");
            job::fail("active message", &UserError::new(line));
        };
        self.messages().runs.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the client registered the function for messages like this (GASNet-1, E.0); the frame is as it says.
        caller::in_handler(|| unsafe { handlers::call(function, category, frame, args) });
        self.messages().runs.fetch_add(1, Ordering::SeqCst);
        // What another thread waits for may be what the handler did.
        self.progress().announce();
    }

    /// What cannot fail for a message that was checked by its sender.
    fn must(&self, done: Result<(), UserError>) {
        if let Err(line) = done {
            job::fail("active message", &line);
        }
    }
}

fn cost_of(incoming: &Incoming) -> u32 {
    if incoming.head.is_placed { 0 } else { incoming.head.payload_bytes }
}

fn as_pointer(token: &Token) -> *mut c_void {
    std::ptr::from_ref(token).cast_mut().cast()
}

impl Messages {
    /// The token that a handler was given.
    ///
    /// # Safety
    /// The pointer is the first argument of the handler that this thread runs, or null.
    pub unsafe fn token<'a>(pointer: *mut c_void) -> Option<&'a Token> {
        // SAFETY: the caller's promise.
        unsafe { pointer.cast::<Token>().as_ref() }
    }
}

//! Sending requests and replies.

use super::flow::Amount;
use super::inbox::PAYLOAD_BYTES_MAX;
use super::wire::{self, Args, Category, Head};
use super::{Token, caller};
use crate::error::UserError;
use crate::ops::{Client, Remote};
use crate::runtime::Runtime;
use vgasnet_conduit::Rank;

/// The largest payload of a [`Category::Long`], in bytes.
pub const LONG_BYTES_MAX: usize = i32::MAX as usize;

/// A request or reply to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// Which handler.
    pub handler: u8,
    /// Where its payload is, and how long it is; nothing for a [`Category::Short`].
    pub payload: *const u8,
    /// Its length.
    pub payload_bytes: usize,
    /// What the handler is given.
    pub destination: Destination,
    /// The arguments.
    pub args: Args,
}

/// Where a payload goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// There is none.
    Nowhere,
    /// Into a buffer of the handler's.
    Buffer,
    /// To an address in the target's segment.
    Segment(usize),
}

impl Outgoing {
    fn category(&self) -> Category {
        match self.destination {
            Destination::Nowhere => Category::Short,
            Destination::Buffer => Category::Medium,
            Destination::Segment(_) => Category::Long,
        }
    }
}

impl Runtime {
    /// Sends a request; waits for credit first, running handlers meanwhile. The payload is free for reuse on return.
    ///
    /// # Errors
    /// There is no such rank, the payload is too long or belongs outside the rank's segment, or the thread is in a handler;
    /// nothing is sent.
    ///
    /// # Safety
    /// The payload is valid for its length.
    pub unsafe fn request(&self, to: u32, outgoing: &Outgoing) -> Result<(), UserError> {
        if caller::is_in_handler() {
            return Err(UserError::new("a handler sends a request; it may only reply, to the message it handles"));
        }
        self.check(to, outgoing)?;
        if to == self.space().rank.0 {
            // SAFETY: the caller's promise.
            unsafe { self.run_here(outgoing, false) };
            return Ok(());
        }
        let to = Rank(to);
        // SAFETY: the caller's promise.
        let is_placed = unsafe { self.place(to, outgoing)? };
        let cost = if is_placed { 0 } else { outgoing.payload_bytes as u32 };
        let flow = &self.messages().flow;
        if !flow.take(to, cost) {
            let taken = std::cell::Cell::new(false);
            self.wait_until(&|| {
                taken.set(taken.get() || flow.take(to, cost));
                taken.get()
            });
        }
        // SAFETY: the caller's promise.
        unsafe { self.post(to, outgoing, is_placed, None) };
        self.poll();
        Ok(())
    }

    /// Sends the reply to the message that a token names. The payload is free for reuse on return.
    ///
    /// # Errors
    /// The token's message is a reply itself, or was replied to, or as for [`Runtime::request`]; nothing is sent.
    ///
    /// # Safety
    /// The payload is valid for its length.
    pub unsafe fn reply(&self, token: &Token, outgoing: &Outgoing) -> Result<(), UserError> {
        self.check(token.from().0, outgoing)?;
        let cost = token.take_reply()?;
        let to = token.from();
        if to == self.space().rank {
            // SAFETY: the caller's promise.
            unsafe { self.run_here(outgoing, true) };
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe {
            let is_placed = self.place(to, outgoing)?;
            self.post(to, outgoing, is_placed, Some(cost));
        }
        Ok(())
    }

    /// Takes credit for a request of the library's own to another rank, if there is some. Its payload, of `cost` bytes, is to
    /// follow by [`Runtime::post_with_credit`].
    pub(crate) fn try_credit(&self, to: Rank, cost: u32) -> bool {
        self.messages().flow.take(to, cost)
    }

    /// Sends a request that has credit. The payload is free for reuse on return.
    ///
    /// # Safety
    /// The payload is valid for its length.
    pub(crate) unsafe fn post_with_credit(&self, to: Rank, outgoing: &Outgoing) {
        // SAFETY: the caller's promise.
        unsafe { self.post(to, outgoing, false, None) };
    }

    /// Gives credit back for requests that were handled and not replied to.
    pub(super) fn give_credit(&self, to: Rank, amount: Amount) {
        self.progress().post(to, &wire::encode_credit(amount.requests, amount.cost), &[]);
    }

    fn check(&self, to: u32, outgoing: &Outgoing) -> Result<(), UserError> {
        let (address, most_bytes, kind) = match outgoing.destination {
            Destination::Segment(address) => (address, LONG_BYTES_MAX, "Long"),
            Destination::Nowhere | Destination::Buffer => (0, PAYLOAD_BYTES_MAX, "Medium"),
        };
        let payload_bytes = outgoing.payload_bytes;
        if payload_bytes > most_bytes {
            return Err(UserError::new(format!(
                "a payload of {payload_bytes} bytes in a {kind} message; at most {most_bytes} are allowed, see AMMax{kind}"
            )));
        }
        if outgoing.payload.is_null() && payload_bytes > 0 {
            return Err(UserError::new(format!("the payload of {payload_bytes} bytes is a null pointer")));
        }
        let in_segment = if outgoing.category() == Category::Long { payload_bytes } else { 0 };
        self.space().pieces(to, address, in_segment).map(drop)
    }

    /// Puts a payload that is too long for messages into the target's segment. Returns whether it did.
    unsafe fn place(&self, to: Rank, outgoing: &Outgoing) -> Result<bool, UserError> {
        let Destination::Segment(address) = outgoing.destination else { return Ok(false) };
        let len_bytes = outgoing.payload_bytes;
        if len_bytes <= PAYLOAD_BYTES_MAX {
            return Ok(false);
        }
        // SAFETY: the caller's promise.
        unsafe { self.transfer(Client::Put(outgoing.payload), Remote { rank: to.0, address, len_bytes })? };
        Ok(true)
    }

    /// Hands a message to the conduit, in as many parts as it takes.
    unsafe fn post(&self, to: Rank, outgoing: &Outgoing, is_placed: bool, reply_to: Option<u32>) {
        let address = if let Destination::Segment(address) = outgoing.destination { address as u64 } else { 0 };
        let head = Head {
            is_reply: reply_to.is_some(),
            category: outgoing.category(),
            is_placed,
            handler: outgoing.handler,
            id: self.messages().next_id(),
            payload_bytes: outgoing.payload_bytes as u32,
            cost: reply_to.unwrap_or(0),
            address,
            args: outgoing.args,
        };
        let payload = if is_placed || outgoing.payload_bytes == 0 {
            &[]
        } else {
            // SAFETY: the caller's promise; the length is not 0, so the pointer is no null pointer (`check`).
            unsafe { std::slice::from_raw_parts(outgoing.payload, outgoing.payload_bytes) }
        };
        // A payload in the own segment may fault, which is not to be in the conduit's hands.
        let copied = self.is_in_own_segment(outgoing).then(|| payload.to_vec());
        let payload = copied.as_deref().unwrap_or(payload);
        let most_bytes = self.conduit().message_bytes_max();
        let mut buffer = [0; wire::HEAD_BYTES];
        let head_bytes = head.encode(&mut buffer);
        let (first, rest) = payload.split_at(payload.len().min(most_bytes - head_bytes));
        self.progress().post(to, &buffer[..head_bytes], first);
        let mut offset_bytes = first.len() as u32;
        for part in rest.chunks(most_bytes - wire::FRAGMENT_HEAD_BYTES) {
            self.progress().post(to, &wire::encode_fragment(head.id, offset_bytes), part);
            offset_bytes += part.len() as u32;
        }
    }

    fn is_in_own_segment(&self, outgoing: &Outgoing) -> bool {
        let own = self.space().segments[self.space().rank.index()];
        own.overlaps(outgoing.payload.addr(), outgoing.payload_bytes)
    }
}

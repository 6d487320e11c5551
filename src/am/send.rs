//! Sends requests and replies.

use super::flow::Amount;
use super::handler_queue::PAYLOAD_BYTES_MAX;
use super::{Am, Token, caller, messages};
use crate::ops::{Operation, Remote};
use vgasnet_protocol::Rank;
use vgasnet_protocol::active_message::{
    Args, Category, Credit, FragmentHead, HEAD_BYTES_MAX, Head, TAG_CREDIT, TAG_FRAGMENT, TAG_MESSAGE,
};
use vgasnet_settings::UserError;
use vgasnet_stats::{self as stats, Row};
use zerocopy::IntoBytes;

/// The largest payload of a [`Category::Long`], in bytes.
pub const LONG_BYTES_MAX: usize = i32::MAX as usize;

/// A request or reply to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Envelope {
    /// The index of the handler.
    pub handler: u8,
    /// The first byte of the payload.
    pub payload: *const u8,
    /// The payload's length; 0 for a [`Category::Short`].
    pub payload_bytes: usize,
    /// Destination of the payload.
    pub destination: Destination,
    /// The handler's arguments.
    pub args: Args,
}

/// Destination of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// There is no payload.
    Nowhere,
    /// Into a buffer for the handler.
    Buffer,
    /// To an address in the target's segment.
    Segment(usize),
}

/// Behaviour of a sender when the conduit has no room for a message, which is kept until there is some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Haste {
    /// It drives the engine.
    Now,
    /// It leaves the message to another thread.
    Idle,
}

impl Envelope {
    pub(super) fn category(&self) -> Category {
        match self.destination {
            Destination::Nowhere => Category::Short,
            Destination::Buffer => Category::Medium,
            Destination::Segment(_) => Category::Long,
        }
    }

    /// The bytes that travel in the message: none if the payload is placed otherwise.
    ///
    /// # Safety
    /// The payload is valid for its length; it is not null, unless the length is 0.
    pub(super) unsafe fn bytes(&self, is_placed: bool) -> &[u8] {
        if is_placed || self.payload_bytes == 0 {
            return &[];
        }
        // SAFETY: the caller guarantees the length, which is not 0, so the pointer is not null.
        unsafe { std::slice::from_raw_parts(self.payload, self.payload_bytes) }
    }
}

impl Am {
    /// Sends a request; waits for credit first, running handlers meanwhile. The payload is free for reuse on return.
    ///
    /// # Errors
    /// There is no such rank, the payload is too long or belongs outside the rank's segment, or the thread is in a
    /// handler; nothing is sent.
    ///
    /// # Safety
    /// The payload is valid for its length.
    pub unsafe fn request(&self, to: u32, envelope: &Envelope) -> Result<(), UserError> {
        if caller::is_in_handler() {
            return Err(UserError::new("a handler sends a request; it may only reply, to the message it handles"));
        }
        self.check(to, envelope)?;
        if to == self.space().rank.0 {
            // SAFETY: the payload is valid for its length, and the envelope has passed `check`.
            unsafe { self.run_here(envelope, false) };
            return Ok(());
        }
        let to = Rank(to);
        // SAFETY: the payload is valid for its length.
        let is_placed = unsafe { self.place(to, envelope)? };
        let cost = if is_placed { 0 } else { envelope.payload_bytes as u32 };
        let flow = &self.messages().flow;
        if !flow.take(to, cost) {
            let _waiting = stats::wait(Row::WaitCredit);
            let taken = std::cell::Cell::new(false);
            self.driver().wait_until(&|| {
                taken.set(taken.get() || flow.take(to, cost));
                taken.get()
            });
        }
        // SAFETY: the payload is valid for its length, and the envelope has passed `check`.
        unsafe { self.post(to, envelope, is_placed, None, Haste::Now) };
        self.driver().poll();
        Ok(())
    }

    /// Sends the reply to a token's message. The payload is free for reuse on return.
    ///
    /// # Errors
    /// The message is a reply itself or was replied to, or the payload is too long or belongs outside the sender's
    /// segment; nothing is sent.
    ///
    /// # Safety
    /// The payload is valid for its length.
    pub unsafe fn reply(&self, token: &Token, envelope: &Envelope) -> Result<(), UserError> {
        self.check(token.from().0, envelope)?;
        let cost = token.take_reply()?;
        let to = token.from();
        if to == self.space().rank {
            // SAFETY: the payload is valid for its length, and the envelope has passed `check`.
            unsafe { self.run_here(envelope, true) };
            return Ok(());
        }
        // SAFETY: the payload is valid for its length, and the envelope has passed `check`.
        unsafe {
            let is_placed = self.place(to, envelope)?;
            self.post(to, envelope, is_placed, Some(cost), Haste::Now);
        }
        Ok(())
    }

    /// Takes credit for a request of the library itself to another rank, if there is some. The request, with a payload
    /// of `cost` bytes, is then sent by [`Am::post_with_credit`].
    pub fn try_credit(&self, to: Rank, cost: u32) -> bool {
        self.messages().flow.take(to, cost)
    }

    /// Sends a request that has credit. The payload is free for reuse on return.
    ///
    /// # Safety
    /// The payload is valid for its length; it is not null, unless the length is 0.
    pub unsafe fn post_with_credit(&self, to: Rank, envelope: &Envelope) {
        // SAFETY: the payload is valid for its length, and not null unless its length is 0.
        unsafe { self.post(to, envelope, false, None, Haste::Now) };
    }

    /// Gives credit back for requests handled without a reply.
    pub(super) fn give_credit(&self, to: Rank, amount: Amount) {
        let credit = Credit { tag: TAG_CREDIT, requests: amount.requests, cost: amount.cost };
        self.driver().post(to, credit.as_bytes(), &[]);
    }

    pub(super) fn check(&self, to: u32, envelope: &Envelope) -> Result<(), UserError> {
        let (address, most_bytes, kind) = match envelope.destination {
            Destination::Segment(address) => (address, LONG_BYTES_MAX, "Long"),
            Destination::Nowhere | Destination::Buffer => (0, PAYLOAD_BYTES_MAX, "Medium"),
        };
        let payload_bytes = envelope.payload_bytes;
        if payload_bytes > most_bytes {
            return Err(UserError::new(format!(
                "a payload of {payload_bytes} bytes in a {kind} message; at most {most_bytes} are allowed"
            )));
        }
        if envelope.payload.is_null() && payload_bytes > 0 {
            return Err(UserError::new(format!("the payload of {payload_bytes} bytes is a null pointer")));
        }
        let in_segment = if envelope.category() == Category::Long { payload_bytes } else { 0 };
        self.space().pieces(to, address, in_segment).map(drop)
    }

    /// Puts a payload too long for messages into the target's segment. Returns whether it did.
    ///
    /// # Safety
    /// The payload is valid for its length.
    pub(super) unsafe fn place(&self, to: Rank, envelope: &Envelope) -> Result<bool, UserError> {
        let Destination::Segment(address) = envelope.destination else { return Ok(false) };
        let len_bytes = envelope.payload_bytes;
        if len_bytes <= PAYLOAD_BYTES_MAX {
            return Ok(false);
        }
        // SAFETY: the payload is valid for its length, which is the transfer's.
        unsafe { self.ops.transfer(Operation::Put(envelope.payload), Remote { rank: to.0, address, len_bytes })? };
        Ok(true)
    }

    /// Hands a message to the conduit, in as many fragments as needed.
    ///
    /// # Safety
    /// The payload is valid for its length; it is not null, unless the length is 0.
    pub(super) unsafe fn post(
        &self,
        to: Rank,
        envelope: &Envelope,
        is_placed: bool,
        reply_to: Option<u32>,
        haste: Haste,
    ) {
        messages::count_sent(envelope.handler, envelope.payload_bytes);
        let head = self.head(envelope, is_placed, reply_to);
        // SAFETY: the payload is valid for its length; it is not null, unless the length is 0.
        let payload = unsafe { envelope.bytes(is_placed) };
        // A payload in the own segment is copied first: it may fault, which must not happen inside the conduit.
        let copied = self.is_in_own_segment(envelope).then(|| payload.to_vec());
        let payload = copied.as_deref().unwrap_or(payload);
        let most_bytes = self.driver().conduit().message_bytes_max();
        let mut buffer = [0; HEAD_BYTES_MAX];
        let head_bytes = head.encode(&envelope.args, &mut buffer);
        let (first, remaining) = payload.split_at(payload.len().min(most_bytes - head_bytes));
        let post = |head: &[u8], body: &[u8]| match haste {
            Haste::Now => self.driver().post(to, head, body),
            Haste::Idle => self.driver().post_idly(to, head, body),
        };
        post(&buffer[..head_bytes], first);
        let mut offset_bytes = first.len() as u32;
        for part in remaining.chunks(most_bytes - size_of::<FragmentHead>()) {
            let fragment = FragmentHead { tag: TAG_FRAGMENT, id: head.id, offset_bytes };
            post(fragment.as_bytes(), part);
            offset_bytes += part.len() as u32;
        }
    }

    /// The head of a message. Its id identifies its fragments; a message without payload needs none.
    pub(super) fn head(&self, envelope: &Envelope, is_placed: bool, reply_to: Option<u32>) -> Head {
        Head {
            tag: TAG_MESSAGE,
            is_reply: reply_to.is_some(),
            category: envelope.category(),
            is_placed,
            handler: envelope.handler,
            id: if envelope.payload_bytes > 0 { self.messages().next_id() } else { 0 },
            payload_bytes: envelope.payload_bytes as u32,
            cost: reply_to.unwrap_or(0),
            address: if let Destination::Segment(address) = envelope.destination { address as u64 } else { 0 },
            args: 0,
        }
    }

    pub(super) fn is_in_own_segment(&self, envelope: &Envelope) -> bool {
        self.space().own_segment().overlaps(envelope.payload.addr(), envelope.payload_bytes)
    }
}

//! Requests that neither wait, poll nor run handlers: they are sent if there is credit for them, and otherwise not.
//!
//! Source: GASNet-EX (specification 0.19), `GEX_FLAG_IMMEDIATE`.

use super::flow::Amount;
use super::handler_queue::PAYLOAD_BYTES_MAX;
use super::send::{Destination, Envelope, Haste};
use super::{Am, caller, messages};
use crate::ops::{Remote, Started, Then};
use std::sync::Arc;
use vgasnet_protocol::Rank;
use vgasnet_protocol::active_message::HEAD_BYTES_MAX;
use vgasnet_settings::UserError;
use vgasnet_stats::{self as stats, Row};

/// Credit for one request to another rank, or to this one.
#[derive(Debug)]
pub struct HeldCredit {
    to: Rank,
    cost: u32,
}

impl Envelope {
    /// Cost of its payload in a window: nothing if it does not travel in the message.
    fn cost(&self) -> u32 {
        if self.payload_bytes > PAYLOAD_BYTES_MAX { 0 } else { self.payload_bytes as u32 }
    }
}

impl Am {
    /// Sends a request if there is credit for it, also to this rank itself, which runs the handler later. Returns
    /// whether it did; if so, the payload is free for reuse. It waits for nothing except pages of the own segment, if
    /// the payload lies there.
    ///
    /// # Errors
    /// As [`Am::request`].
    ///
    /// # Safety
    /// As [`Am::request`].
    pub unsafe fn try_request(&self, to: u32, envelope: &Envelope) -> Result<bool, UserError> {
        self.check_request(to, envelope)?;
        let Some(held) = self.try_hold(to, envelope.payload_bytes) else { return Ok(false) };
        // SAFETY: as the caller says; the envelope has passed its check.
        let sent = unsafe { self.post_held(&held, envelope)? };
        if !sent {
            self.release(held);
        }
        Ok(sent)
    }

    /// Refuses a request that cannot be sent to this rank or by this thread.
    ///
    /// # Errors
    /// As [`Am::request`].
    pub fn check_request(&self, to: u32, envelope: &Envelope) -> Result<(), UserError> {
        if caller::is_in_handler() {
            return Err(UserError::new("a handler sends a request; it may only reply, to the message it handles"));
        }
        self.check(to, envelope)
    }

    /// Takes credit for a request with a payload of at most `payload_bytes`; `None` if there is none.
    pub fn try_hold(&self, to: u32, payload_bytes: usize) -> Option<HeldCredit> {
        let (to, cost) = (Rank(to), payload_bytes.min(PAYLOAD_BYTES_MAX) as u32);
        self.messages().flow.take(to, cost).then_some(HeldCredit { to, cost })
    }

    /// As [`Am::try_hold`], but waits for credit, running handlers.
    pub fn hold(&self, to: u32, payload_bytes: usize) -> HeldCredit {
        if let Some(held) = self.try_hold(to, payload_bytes) {
            return held;
        }
        let _waiting = stats::wait(Row::WaitCredit);
        let taken = std::cell::Cell::new(None);
        self.driver().wait_until(&|| {
            let held = taken.take().or_else(|| self.try_hold(to, payload_bytes));
            let is_there = held.is_some();
            taken.set(held);
            is_there
        });
        taken.take().expect("the wait has ended with it")
    }

    /// Gives unused credit back.
    pub fn release(&self, held: HeldCredit) {
        let HeldCredit { to, cost } = held;
        assert!(self.messages().flow.give_back(to, Amount { requests: 1, cost }), "it was taken");
        self.driver().notify();
    }

    /// Sends a request that has credit. Returns whether it did; if so, the credit is used up. A payload too long for a
    /// message is put first; the message follows it, possibly from another thread. Without room for the payload nothing
    /// is sent.
    ///
    /// # Errors
    /// A payload too long for messages cannot be put.
    ///
    /// # Safety
    /// As [`Am::request`]; the envelope has passed `check`.
    unsafe fn post_held(&self, held: &HeldCredit, envelope: &Envelope) -> Result<bool, UserError> {
        let (to, cost) = (held.to, envelope.cost());
        let is_placed = envelope.payload_bytes > PAYLOAD_BYTES_MAX;
        let started = match envelope.destination {
            Destination::Segment(address) if is_placed => {
                let remote = Remote { rank: to.0, address, len_bytes: envelope.payload_bytes };
                // SAFETY: the payload is valid for its length, which is the transfer's.
                unsafe { self.ops.put_unwaiting(envelope.payload, remote, || self.follow(to, envelope))? }
            }
            _ => Started::Done,
        };
        if started == Started::NoRoom {
            return Ok(false);
        }
        self.give_back_surplus(held, cost);
        if started == Started::Done {
            // SAFETY: the payload is valid for its length, and the envelope has passed `check`.
            unsafe { self.post_placed(to, envelope, is_placed, Haste::Idle) };
        }
        Ok(true)
    }

    /// The message of a payload, sent once the payload has been put.
    fn follow(&self, to: Rank, envelope: &Envelope) -> Then {
        let am = Am::new(Arc::clone(&self.ops), Arc::clone(&self.messages));
        let (head, args) = (self.head(envelope, true, None), envelope.args);
        messages::count_sent(envelope.handler, envelope.payload_bytes);
        Box::new(move || {
            if to == am.space().rank {
                am.messages().add_own(to, head, args, &[]);
                am.driver().notify();
            } else {
                let mut buffer = [0; HEAD_BYTES_MAX];
                let head_bytes = head.encode(&args, &mut buffer);
                am.driver().post_idly(to, &buffer[..head_bytes], &[]);
            }
        })
    }

    /// Sends a request with sufficient credit, and waits for the pages of a payload too long for messages, unless it is
    /// immediate. Returns whether it did; if so, the credit is used up.
    ///
    /// # Errors
    /// As [`Am::request`].
    ///
    /// # Safety
    /// As [`Am::request`].
    pub unsafe fn send_held(
        &self,
        held: &HeldCredit,
        envelope: &Envelope,
        is_immediate: bool,
    ) -> Result<bool, UserError> {
        self.check(held.to.0, envelope)?;
        if is_immediate {
            // SAFETY: the payload is valid for its length, and the envelope has passed `check`.
            return unsafe { self.post_held(held, envelope) };
        }
        // SAFETY: the payload is valid for its length.
        let is_placed = unsafe { self.place(held.to, envelope)? };
        self.give_back_surplus(held, envelope.cost());
        // SAFETY: the payload is valid for its length, and the envelope has passed `check`.
        unsafe { self.post_placed(held.to, envelope, is_placed, Haste::Now) };
        Ok(true)
    }

    /// Gives the credit back that a request does not need.
    fn give_back_surplus(&self, held: &HeldCredit, cost: u32) {
        let surplus = held.cost.checked_sub(cost).expect("the credit is for a payload that is as long at least");
        if surplus > 0 {
            assert!(self.messages().flow.give_back(held.to, Amount { requests: 0, cost: surplus }), "it was taken");
        }
    }

    /// # Safety
    /// As [`Am::post`]; the envelope has passed `check`.
    unsafe fn post_placed(&self, to: Rank, envelope: &Envelope, is_placed: bool, haste: Haste) {
        if to != self.space().rank {
            // SAFETY: the payload is valid for its length, and the envelope has passed `check`.
            return unsafe { self.post(to, envelope, is_placed, None, haste) };
        }
        // SAFETY: the payload is valid for its length.
        let payload = unsafe { envelope.bytes(is_placed) };
        // Read before any lock is taken: a payload in the own segment may fault.
        let copied = self.is_in_own_segment(envelope).then(|| payload.to_vec());
        let head = self.head(envelope, is_placed, None);
        self.messages().add_own(to, head, envelope.args, copied.as_deref().unwrap_or(payload));
        self.driver().notify();
    }
}

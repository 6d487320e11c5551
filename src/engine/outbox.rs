//! Messages that wait until the conduit has room for them.

use super::TAG_ABOVE;
use crate::stats::{self, Row};
use std::collections::VecDeque;
use std::sync::Arc;
use vgasnet_conduit::{Busy, Conduit, Urgency};
use vgasnet_protocol::Rank;
use vgasnet_protocol::barrier::BarrierMessage;

/// The messages of one engine on their way to the conduit, in order.
pub(super) struct Outbox {
    conduit: Arc<dyn Conduit>,
    waiting: VecDeque<(Rank, Vec<u8>)>,
}

impl Outbox {
    /// No messages yet, for this conduit.
    pub(super) fn new(conduit: Arc<dyn Conduit>) -> Outbox {
        Outbox { conduit, waiting: VecDeque::new() }
    }

    /// Sends a message, now or when the conduit has room.
    pub(super) fn send(&mut self, to: Rank, bytes: &[u8]) {
        count_sent(bytes);
        if !self.waiting.is_empty() || self.conduit.send(to, bytes, &[], Urgency::Now) == Err(Busy) {
            self.waiting.push_back((to, bytes.to_vec()));
        }
    }

    /// Sends waiting messages, as far as there is room. Returns whether any was sent.
    pub(super) fn flush(&mut self) -> bool {
        let before = self.waiting.len();
        while let Some((to, bytes)) = self.waiting.front() {
            if self.conduit.send(*to, bytes, &[], Urgency::Now) == Err(Busy) {
                break;
            }
            self.waiting.pop_front();
        }
        self.waiting.len() < before
    }

    /// Takes a barrier's messages, which begin with `tag`.
    pub(super) fn for_barrier(&mut self, tag: u8) -> impl FnMut(Rank, BarrierMessage) + '_ {
        move |to, message| self.send(to, &message.encode(tag))
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many messages wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

/// Counts a message of the engine's own. Those of the rooms above are counted there.
fn count_sent(bytes: &[u8]) {
    if bytes.first().is_some_and(|tag| *tag < TAG_ABOVE) {
        stats::count(Row::ProtocolSent);
        stats::add(Row::ProtocolSentBytes, bytes.len() as u64);
    }
}

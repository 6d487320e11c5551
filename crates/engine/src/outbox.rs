//! Messages waiting for room in the conduit.

use super::TAG_ABOVE;
use super::bundle::{TAG_BUNDLE, unbundle};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use vgasnet_conduit::{Busy, Conduit, MESSAGE_BYTES_MIN, Urgency};
use vgasnet_protocol::Rank;
use vgasnet_stats::{self as stats, Row};

/// The messages of one engine on their way to the conduit.
///
/// A busy peer delays no messages to others, and the library's own messages never wait behind a client's. The queues
/// are bounded by this rank's frames and operations, and by the clients' windows at their targets.
pub(super) struct Outbox {
    conduit: Arc<dyn Conduit>,
    /// Peers with waiting messages; none of the queues is empty.
    waiting: BTreeMap<Rank, Queues>,
    /// The first peer of the last flush. The next flush begins behind it, so that peers share the room fairly.
    tried_first: Rank,
    together: Together,
}

/// A bundle of messages to one peer: a tag, then each message preceded by its length.
struct Together {
    to: Rank,
    bytes: Vec<u8>,
    messages: usize,
    /// Further events with messages for the same bundle follow.
    is_held: bool,
    /// Maximum size of the bundle, in bytes.
    bytes_max: usize,
}

/// Messages waiting for one peer, in order.
#[derive(Default)]
struct Queues {
    own: VecDeque<Box<[u8]>>,
    of_clients: VecDeque<Box<[u8]>>,
}

impl Queues {
    fn len(&self) -> usize {
        self.own.len() + self.of_clients.len()
    }

    /// Sends as many as there is room for. Returns whether any was sent.
    fn flush(&mut self, conduit: &dyn Conduit, to: Rank) -> bool {
        let mut worked = false;
        for (queue, urgency) in [(&mut self.own, Urgency::Now), (&mut self.of_clients, Urgency::WhenCalled)] {
            while let Some(bytes) = queue.front() {
                if conduit.send(to, bytes, &[], urgency) == Err(Busy) {
                    return worked;
                }
                queue.pop_front();
                worked = true;
            }
        }
        worked
    }
}

impl Together {
    fn new(bytes_max: usize) -> Together {
        Together { to: Rank(0), bytes: Vec::new(), messages: 0, is_held: false, bytes_max }
    }

    fn has_room(&self, to: Rank, len_bytes: usize) -> bool {
        self.messages == 0 || self.to == to && self.bytes.len() + 1 + len_bytes <= self.bytes_max
    }
}

impl Outbox {
    /// An empty outbox for this conduit. Unless it `bundles`, each message is sent alone.
    pub(super) fn new(conduit: Arc<dyn Conduit>, bundles: bool) -> Outbox {
        let together = Together::new(if bundles { MESSAGE_BYTES_MIN } else { 0 });
        Outbox { conduit, waiting: BTreeMap::new(), tried_first: Rank(0), together }
    }

    /// Sends a message of the library's own, now or when the conduit has room.
    pub(super) fn send(&mut self, to: Rank, bytes: &[u8]) {
        if self.together.messages > 0 {
            // The bundle may concern the same page, so it goes first.
            self.send_bundle();
        }
        debug_assert_eq!(self.together.messages, 0, "no message overtakes the bundle before it");
        count_sent(bytes);
        self.send_uncounted(to, bytes);
    }

    fn send_uncounted(&mut self, to: Rank, bytes: &[u8]) {
        debug_assert!(!bytes.is_empty(), "a message begins with its tag");
        debug_assert!(
            bytes.len() <= self.conduit.message_bytes_max(),
            "the conduit takes {} bytes at a time",
            bytes.len()
        );
        let is_next = self.waiting.get(&to).is_none_or(|queues| queues.own.is_empty());
        if !is_next || self.conduit.send(to, bytes, &[], Urgency::Now) == Err(Busy) {
            self.waiting.entry(to).or_default().own.push_back(bytes.into());
        }
    }

    /// Sends a protocol message, possibly bundled with others to the same peer. [`Outbox::end_together`] must follow
    /// soon.
    pub(super) fn send_together(&mut self, to: Rank, bytes: &[u8]) {
        debug_assert!(!bytes.is_empty(), "a message begins with its tag");
        if !self.together.has_room(to, bytes.len()) {
            self.send_bundle();
        }
        let together = &mut self.together;
        if together.messages == 0 {
            together.to = to;
            together.bytes.push(TAG_BUNDLE);
        }
        together.bytes.push(u8::try_from(bytes.len()).expect("messages of the protocol are short"));
        together.bytes.extend(bytes);
        together.messages += 1;
        assert_eq!(self.together.to, to, "a bundle goes to one rank");
    }

    /// Bundles the messages of several events until [`Outbox::end_together`].
    pub(super) fn begin_together(&mut self) {
        debug_assert!(!self.together.is_held, "one operation at a time bundles its messages");
        self.together.is_held = true;
    }

    /// All messages of an event have been given.
    pub(super) fn end_event(&mut self) {
        if !self.together.is_held {
            self.end_together();
        }
    }

    /// Sends the bundle.
    pub(super) fn end_together(&mut self) {
        self.together.is_held = false;
        self.send_bundle();
    }

    fn send_bundle(&mut self) {
        let (to, messages) = (self.together.to, std::mem::take(&mut self.together.messages));
        let mut bytes = std::mem::take(&mut self.together.bytes);
        debug_assert_eq!(messages == 0, bytes.is_empty(), "a bundle has bytes of its messages alone");
        match messages {
            0 => {}
            1 => self.send(to, &bytes[2..]),
            _ => {
                debug_assert!(bytes.len() <= self.together.bytes_max, "a bundle fits into a message");
                debug_assert_eq!(unbundle(&bytes).count(), messages, "the messages of a bundle are counted");
                unbundle(&bytes).for_each(count_sent);
                self.send_uncounted(to, &bytes);
            }
        }
        bytes.clear();
        self.together.bytes = bytes;
    }

    /// Keeps a client's message until the conduit has room.
    pub(super) fn keep(&mut self, to: Rank, bytes: Box<[u8]>) {
        debug_assert!(
            bytes.len() <= self.conduit.message_bytes_max(),
            "{to:?} can get {} bytes at a time",
            bytes.len()
        );
        self.waiting.entry(to).or_default().of_clients.push_back(bytes);
    }

    /// Sends waiting messages, as far as there is room. Returns whether any was sent.
    pub(super) fn flush(&mut self) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        let behind = (Bound::Excluded(self.tried_first), Bound::Unbounded);
        let peers: Vec<Rank> =
            self.waiting.range(behind).chain(self.waiting.range(..=self.tried_first)).map(|(to, _)| *to).collect();
        debug_assert_eq!(peers.len(), self.waiting.len(), "each peer has its turn");
        self.tried_first = peers[0];
        let mut worked = false;
        for to in peers {
            let queues = self.waiting.get_mut(&to).expect("it was just seen");
            debug_assert!(queues.len() > 0, "a queue is kept while it has messages");
            worked |= queues.flush(&*self.conduit, to);
            if queues.len() == 0 {
                self.waiting.remove(&to);
            }
        }
        worked
    }

    /// Whether messages wait for others of their event.
    pub(super) fn has_bundle(&self) -> bool {
        self.together.messages > 0
    }

    /// Whether no message waits for room.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Number of waiting messages.
    pub(super) fn len(&self) -> usize {
        self.waiting.values().map(Queues::len).sum()
    }
}

/// Counts a message of the engine's own. The rooms above count theirs.
pub(super) fn count_sent(bytes: &[u8]) {
    if bytes.first().is_some_and(|tag| *tag < TAG_ABOVE) {
        stats::count(Row::ProtocolSent);
        stats::add(Row::ProtocolSentBytes, bytes.len() as u64);
    }
}

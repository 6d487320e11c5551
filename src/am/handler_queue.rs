//! Arrived requests and replies: assembled from their fragments, then waiting for a thread to run their handlers.

use std::collections::{HashMap, VecDeque};
use vgasnet_protocol::Rank;
use vgasnet_protocol::active_message::{Args, Head};

/// The largest payload carried in messages, in bytes. A longer one is put into the target's segment.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 10;

/// Maximum buffers kept for later messages.
const SPARE_MAX: usize = 16;

/// Bytes aligned for any type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Payload {
    /// At least as long as the bytes.
    words: Vec<u128>,
    len_bytes: usize,
}

impl Payload {
    /// A copy of `bytes`.
    pub(super) fn from_bytes(bytes: &[u8]) -> Payload {
        let mut payload = Payload::of_length(bytes.len(), Vec::new());
        payload.write(0, bytes);
        payload
    }

    /// Unspecified bytes, in reused `words`.
    fn of_length(len_bytes: usize, mut words: Vec<u128>) -> Payload {
        let needed = len_bytes.div_ceil(size_of::<u128>());
        if words.len() < needed {
            words.resize(needed, 0);
        }
        Payload { words, len_bytes }
    }

    /// The length.
    pub(super) fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// The first byte; a handler may write there.
    pub(super) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.words.as_mut_ptr().cast()
    }

    fn write(&mut self, offset_bytes: usize, bytes: &[u8]) {
        assert!(offset_bytes + bytes.len() <= self.words.len() * size_of::<u128>());
        // SAFETY: the words are long enough, which was just checked, and any bytes are valid words.
        unsafe { self.as_mut_ptr().add(offset_bytes).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

/// A complete message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Incoming {
    /// Its sender.
    pub from: Rank,
    /// Its head.
    pub head: Head,
    /// Its arguments.
    pub args: Args,
    /// Its payload, unless it is already in the segment.
    pub payload: Payload,
}

/// A message with fragments still arriving, in any order.
#[derive(Debug)]
struct Partial {
    head: Option<(Head, Args)>,
    payload: Payload,
    arrived_bytes: usize,
}

/// Messages waiting for their handlers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Number of messages.
    pub messages: usize,
    /// Bytes of their payloads, except payloads in the segment.
    pub payload_bytes: usize,
}

/// Arrived messages of a rank that have not been handled.
#[derive(Debug, Default)]
pub(super) struct HandlerQueue {
    partial: HashMap<(Rank, u32), Partial>,
    ready: VecDeque<Incoming>,
    spare: Vec<Vec<u128>>,
}

impl HandlerQueue {
    /// Adds the head of a message with the first bytes of its payload. Returns whether the message is complete now;
    /// `None` if it is malformed.
    pub(super) fn add_first(&mut self, from: Rank, head: Head, args: Args, bytes: &[u8]) -> Option<bool> {
        let total_bytes = if head.is_placed { 0 } else { head.payload_bytes as usize };
        if bytes.len() > total_bytes || total_bytes > PAYLOAD_BYTES_MAX {
            return None;
        }
        if bytes.len() < total_bytes {
            let partial = self.partial(from, head.id);
            if partial.head.replace((head, args)).is_some() {
                return None;
            }
            return self.add_bytes(from, head.id, 0, bytes);
        }
        let words = if total_bytes > 0 { self.spare.pop().unwrap_or_default() } else { Vec::new() };
        let mut payload = Payload::of_length(total_bytes, words);
        payload.write(0, bytes);
        self.ready.push_back(Incoming { from, head, args, payload });
        Some(true)
    }

    /// Adds a fragment of a payload; returns as [`HandlerQueue::add_first`].
    pub(super) fn add_fragment(&mut self, from: Rank, id: u32, offset_bytes: usize, bytes: &[u8]) -> Option<bool> {
        // An empty fragment would be kept for ever.
        if bytes.is_empty() || offset_bytes > PAYLOAD_BYTES_MAX || bytes.len() > PAYLOAD_BYTES_MAX - offset_bytes {
            return None;
        }
        self.partial(from, id);
        self.add_bytes(from, id, offset_bytes, bytes)
    }

    fn partial(&mut self, from: Rank, id: u32) -> &mut Partial {
        let spare = &mut self.spare;
        self.partial.entry((from, id)).or_insert_with(|| Partial {
            head: None,
            payload: Payload::of_length(PAYLOAD_BYTES_MAX, spare.pop().unwrap_or_default()),
            arrived_bytes: 0,
        })
    }

    fn add_bytes(&mut self, from: Rank, id: u32, offset_bytes: usize, bytes: &[u8]) -> Option<bool> {
        let partial = self.partial.get_mut(&(from, id))?;
        partial.payload.write(offset_bytes, bytes);
        partial.arrived_bytes += bytes.len();
        let Some((head, args)) = partial.head else { return Some(false) };
        let total_bytes = head.payload_bytes as usize;
        if partial.arrived_bytes < total_bytes {
            return Some(false);
        }
        let Partial { mut payload, arrived_bytes, .. } = self.partial.remove(&(from, id))?;
        if arrived_bytes > total_bytes {
            return None;
        }
        payload.len_bytes = total_bytes;
        self.ready.push_back(Incoming { from, head, args, payload });
        Some(true)
    }

    /// The first complete message.
    pub(super) fn take(&mut self) -> Option<Incoming> {
        self.ready.pop_front()
    }

    /// Number of complete messages.
    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Takes the memory of a payload back for reuse.
    pub(super) fn recycle(&mut self, payload: Payload) {
        if !payload.words.is_empty() && self.spare.len() < SPARE_MAX {
            self.spare.push(payload.words);
        }
    }

    /// The complete messages.
    pub(super) fn backlog(&self) -> Backlog {
        let payload_bytes = self.ready.iter().map(|incoming| incoming.payload.len_bytes()).sum();
        Backlog { messages: self.ready.len(), payload_bytes }
    }

    /// Whether there is no message, not even in part.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.partial.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vgasnet_protocol::active_message::{Category, TAG_MESSAGE};

    fn head(id: u32, payload_bytes: usize) -> Head {
        Head {
            tag: TAG_MESSAGE,
            is_reply: false,
            category: Category::Medium,
            is_placed: false,
            handler: 128,
            id,
            payload_bytes: payload_bytes as u32,
            cost: 0,
            address: 0,
            args: 2,
        }
    }

    fn args() -> Args {
        Args::new(&[1, 2]).expect("two")
    }

    fn bytes_of(message: &mut Incoming) -> Vec<u8> {
        let (start, len) = (message.payload.as_mut_ptr(), message.payload.len_bytes());
        // SAFETY: the payload has as many bytes, and nobody else uses it.
        unsafe { std::slice::from_raw_parts(start, len) }.to_vec()
    }

    #[test]
    fn fragments_may_come_in_any_order_and_memory_is_used_again() {
        let mut queue = HandlerQueue::default();
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        for (id, order) in orders.into_iter().enumerate() {
            let (id, bytes) = (id as u32, (0..100).map(|n| n * 2 + id as u8).collect::<Vec<u8>>());
            let done = order.map(|at| match at {
                0 => queue.add_first(Rank(3), head(id, 100), args(), &bytes[..33]),
                1 => queue.add_fragment(Rank(3), id, 33, &bytes[33..70]),
                _ => queue.add_fragment(Rank(3), id, 70, &bytes[70..]),
            });
            assert_eq!(done, [Some(false), Some(false), Some(true)]);
            let mut message = queue.take().expect("it is complete");
            assert_eq!((message.from, bytes_of(&mut message)), (Rank(3), bytes));
            queue.recycle(message.payload);
            assert!(queue.is_empty());
        }
        assert_eq!(queue.spare.len(), 1);
    }

    #[test]
    fn nonsense_is_told() {
        let mut queue = HandlerQueue::default();
        assert_eq!(queue.add_first(Rank(0), head(1, 3), args(), b"long"), None);
        assert_eq!(queue.add_first(Rank(0), head(1, PAYLOAD_BYTES_MAX + 1), args(), b""), None);
        assert_eq!(queue.add_fragment(Rank(0), 1, PAYLOAD_BYTES_MAX, b"x"), None);
        assert_eq!(queue.add_first(Rank(0), head(2, 8), args(), b"1234"), Some(false));
        assert_eq!(queue.add_fragment(Rank(0), 2, 4, b"12345"), None, "more than there is");
        assert_eq!(queue.add_fragment(Rank(0), 3, 0, b""), None, "nothing");
        assert_eq!(queue.add_first(Rank(0), head(4, 8), args(), b"1234"), Some(false));
        assert_eq!(queue.add_first(Rank(0), head(4, 5), args(), b"1234"), None, "a second beginning");
    }

    #[test]
    fn payloads_are_aligned_for_any_type() {
        for len in 0..40 {
            let mut payload = Payload::from_bytes(&vec![7; len]);
            assert_eq!((payload.as_mut_ptr().addr() % 16, payload.len_bytes()), (0, len));
        }
    }
}

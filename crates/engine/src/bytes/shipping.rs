//! The parts that this rank ships, and the requests in flight.
//!
//! A peer has at most [`WINDOW`] requests of this rank in flight, and as many direct ones. Waiting parts are sent
//! together. A direct request waits for nothing at its target, so requests never wait for each other in a cycle.
//!
//! A faulting thread drives on its own stack, which may be small. Code not needed there is kept out of line.

use crate::request::{Copy, Part};
use crate::work::{Delivery, Shipment, describe};
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;
use vgasnet_protocol::Rank;
use vgasnet_protocol::byte_message::{
    ANSWER_HEAD_BYTES, PIECE_HEAD_BYTES, REQUEST_HEAD_BYTES, RequestHead, Status, TAG_REQUEST, read_answer,
};
use vgasnet_protocol::coherence::{Cause, PageId};
use vgasnet_stats::{self as stats, Row};
use zerocopy::IntoBytes;

/// Maximum requests in flight to a peer, and as many direct ones.
const WINDOW: usize = 16;

/// From this many requests in flight on, a peer gets another one only for [`TOGETHER`] waiting parts, since a request
/// costs nearly the same for one part as for many.
const REQUESTS_EAGER: usize = 4;
const TOGETHER: usize = 8;

/// Largest shipped part in bytes. It is at most a page divided by [`PAGE_PART_MIN`].
const PART_BYTES_MAX: usize = 64 << 10;
const PAGE_PART_MIN: usize = 4;

/// The parts that this rank ships.
pub(super) struct Shipping {
    is_on: bool,
    part_bytes_max: usize,
    message_bytes_max: usize,
    peers: BTreeMap<Target, Peer>,
    /// Targets that may have another request.
    ready: BTreeSet<Target>,
    parts: Slab<Shipped>,
    /// Number of waiting chunks.
    waiting: usize,
    /// A request's id is its index.
    requests: Slab<Request>,
}

/// A receiver of requests, and whether they are direct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Target {
    rank: Rank,
    is_direct: bool,
}

impl Target {
    /// A rank as the home of pages.
    pub(super) fn home(rank: Rank) -> Target {
        Target { rank, is_direct: false }
    }

    /// A rank as a holder of pages, which gets direct requests.
    pub(super) fn holder(rank: Rank) -> Target {
        Target { rank, is_direct: true }
    }
}

#[derive(Default)]
struct Peer {
    waiting: VecDeque<Chunk>,
    /// Unanswered requests.
    in_flight: usize,
}

impl Peer {
    fn may_have_request(&self) -> bool {
        let is_worth_it = self.in_flight < REQUESTS_EAGER || self.waiting.len() >= TOGETHER;
        !self.waiting.is_empty() && self.in_flight < WINDOW && is_worth_it
    }
}

/// Bytes of a part, at most as many as fit into a message.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    part: usize,
    start_bytes: usize,
    len_bytes: usize,
}

struct Request {
    to: Target,
    chunks: Vec<Chunk>,
}

/// A part in flight or completed.
#[derive(Debug)]
pub(crate) struct Shipped {
    part: Part,
    /// The bytes read so far.
    bytes: Vec<u8>,
    left_bytes: usize,
    tries: u8,
    is_refused: bool,
    is_contended: bool,
    /// The cause of its failure, if it has failed.
    cause: Option<Cause>,
    since: Option<Instant>,
}

/// The outcome of a shipped part.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It is done.
    Done(Delivery),
    /// Other ranks have refused it, this number of them: the home has to find another way.
    Refused(Part, u8),
    /// It has failed.
    Failed(Part, Cause),
}

impl Shipped {
    /// The page of a put that its home has done, and whether another rank has written the page in between.
    pub(super) fn put_at_home(&self) -> Option<(PageId, bool)> {
        let is_done = self.cause.is_none() && !self.is_refused;
        (is_done && self.part.copy.is_put() && self.tries == 0).then_some((self.part.piece.page, self.is_contended))
    }

    /// The outcome, and its statistics.
    pub(super) fn end(self) -> Outcome {
        let Shipped { part, bytes, left_bytes, tries, is_refused, cause, since, .. } = self;
        assert_eq!(left_bytes, 0, "a part ends with its last byte");
        if let Some(cause) = cause {
            return Outcome::Failed(part, cause);
        }
        if is_refused {
            return Outcome::Refused(part, tries);
        }
        since.into_iter().for_each(|since| stats::time(Row::Shipped, since));
        stats::add(Row::FileShipped, u64::from(part.piece.page.space.segment().is_none()));
        Outcome::Done(Delivery { part, bytes })
    }
}

impl Shipping {
    /// Ships in messages of at most `message_bytes_max` if `is_on`.
    pub(super) fn new(page_bytes: usize, message_bytes_max: usize, is_on: bool) -> Shipping {
        assert!(
            message_bytes_max > (REQUEST_HEAD_BYTES + PIECE_HEAD_BYTES).max(ANSWER_HEAD_BYTES + 1),
            "a message has room for bytes of a part"
        );
        Shipping {
            is_on,
            part_bytes_max: PART_BYTES_MAX.min(page_bytes / PAGE_PART_MIN),
            message_bytes_max: message_bytes_max.min(usize::from(u16::MAX)),
            peers: BTreeMap::new(),
            ready: BTreeSet::new(),
            parts: Slab::new(),
            waiting: 0,
            requests: Slab::new(),
        }
    }

    /// Whether parts wait to be sent.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Number of parts in flight.
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Whether a part is small enough.
    pub(super) fn takes(&self, part: &Part) -> bool {
        let is_pin = matches!(part.copy, Copy::Pin(_));
        self.is_on && !is_pin && (1..=self.part_bytes_max).contains(&part.piece.len_bytes)
    }

    /// Maximum bytes of a part in one message.
    fn chunk_bytes_max(&self) -> usize {
        self.message_bytes_max - (REQUEST_HEAD_BYTES + PIECE_HEAD_BYTES).max(ANSWER_HEAD_BYTES + 1)
    }

    /// Whether one message has room for a part.
    pub(super) fn fits_one_chunk(&self, part: &Part) -> bool {
        part.piece.len_bytes <= self.chunk_bytes_max()
    }

    /// Cuts a part into chunks and queues them.
    pub(super) fn add(&mut self, to: Target, part: Part, tries: u8) {
        let len_bytes = part.piece.len_bytes;
        assert!(len_bytes > 0, "no answer would come about a part without bytes");
        let bytes = if reads(&part.copy) { vec![0; len_bytes] } else { Vec::new() };
        let since = stats::is_on().then(Instant::now);
        let shipped = Shipped {
            part,
            bytes,
            left_bytes: len_bytes,
            tries,
            is_refused: false,
            is_contended: false,
            cause: None,
            since,
        };
        let part = self.parts.insert(shipped);
        debug_assert!(self.waiting == 0 || self.parts.len() > 1, "a chunk that waits is of a part");
        let most = self.chunk_bytes_max();
        let peer = self.peers.entry(to).or_default();
        for start_bytes in (0..len_bytes).step_by(most) {
            peer.waiting.push_back(Chunk { part, start_bytes, len_bytes: most.min(len_bytes - start_bytes) });
            self.waiting += 1;
        }
        self.note_ready(to);
    }

    /// Updates whether a peer may have another request.
    fn note_ready(&mut self, to: Target) {
        if self.peers.get(&to).is_some_and(Peer::may_have_request) {
            self.ready.insert(to);
        } else {
            self.ready.remove(&to);
        }
        debug_assert_eq!(
            self.peers.values().map(|peer| peer.waiting.len()).sum::<usize>(),
            self.waiting,
            "waiting chunks are counted"
        );
        debug_assert!(
            self.ready.iter().all(|to| self.peers.contains_key(to)),
            "peers that are ready have parts waiting"
        );
    }

    /// The next request to a ready peer.
    pub(super) fn next(&mut self) -> Option<Shipment> {
        let to = *self.ready.first()?;
        let peer = self.peers.get_mut(&to).expect("a peer that is ready is known");
        let (mut heads, mut payload, mut chunks) = (Vec::new(), Vec::new(), Vec::new());
        let (mut asked, mut answered) = (REQUEST_HEAD_BYTES, ANSWER_HEAD_BYTES);
        while let Some(chunk) = peer.waiting.front().copied() {
            let (head, source) = describe(&self.parts[chunk.part].part, chunk.start_bytes, chunk.len_bytes);
            asked += PIECE_HEAD_BYTES + head.request_bytes();
            answered += 1 + head.answer_bytes();
            if asked.max(answered) > self.message_bytes_max {
                break;
            }
            heads.extend_from_slice(head.as_bytes());
            payload.extend(source);
            chunks.push(chunk);
            peer.waiting.pop_front();
            self.waiting -= 1;
        }
        assert!(!chunks.is_empty(), "a message has room for a piece");
        debug_assert!(heads.len() == chunks.len() * PIECE_HEAD_BYTES, "each piece has its head");
        debug_assert!(self.waiting > 0 || peer.waiting.is_empty(), "chunks that wait are counted");
        assert!(peer.in_flight < WINDOW, "{to:?} has at most so many requests");
        peer.in_flight += 1;
        self.note_ready(to);
        let pieces = chunks.len() as u16;
        debug_assert!(payload.len() <= chunks.len(), "a piece has one source");
        let id = self.requests.insert(Request { to, chunks }) as u32;
        let head = RequestHead { tag: TAG_REQUEST, is_direct: u8::from(to.is_direct), pieces, id };
        heads.splice(..0, head.as_bytes().iter().copied());
        Some(Shipment::new(to.rank, heads, payload))
    }

    /// Handles an answer. Returns the completed parts.
    pub(super) fn on_answer(&mut self, from: Rank, bytes: &[u8]) -> Result<Vec<Shipped>, &'static str> {
        let Some((head, statuses, mut payload)) = read_answer(bytes) else {
            return Err("an answer about bytes that is none");
        };
        let request = self.requests.get(head.id as usize);
        let is_it = |request: &&Request| request.to.rank == from && request.chunks.len() == statuses.len();
        let Some(Request { to, chunks }) = request.filter(is_it) else {
            return Err("an answer about bytes that nobody asked for");
        };
        let is_read = |chunk: &Chunk| reads(&self.parts[chunk.part].part.copy);
        let expected: usize = chunks.iter().filter(|chunk| is_read(chunk)).map(|chunk| chunk.len_bytes).sum();
        if payload.len() != expected || (!to.is_direct && statuses.contains(&Status::Refused)) {
            return Err("an answer with other bytes than it was asked for");
        }
        let Request { to, chunks } = self.requests.remove(head.id as usize);
        debug_assert_eq!(chunks.len(), statuses.len(), "each chunk has its status");
        let mut done = Vec::new();
        for (chunk, status) in chunks.iter().zip(statuses) {
            let shipped = &mut self.parts[chunk.part];
            if reads(&shipped.part.copy) {
                let (read, remaining) = payload.split_at(chunk.len_bytes);
                shipped.bytes[chunk.start_bytes..][..chunk.len_bytes].copy_from_slice(read);
                payload = remaining;
            }
            shipped.is_refused |= status == Status::Refused;
            shipped.is_contended |= status == Status::DoneContended;
            if status == Status::Failed {
                shipped.cause = Cause::of_byte(head.cause);
            }
            assert!(shipped.left_bytes >= chunk.len_bytes, "each chunk of a part is answered once");
            shipped.left_bytes -= chunk.len_bytes;
            if shipped.left_bytes == 0 {
                done.push(self.parts.remove(chunk.part));
            }
        }
        debug_assert!(payload.is_empty(), "the answer had the bytes of its chunks");
        let peer = self.peers.get_mut(&to).expect("a peer with a request is known");
        assert!(peer.in_flight > 0, "{to:?} had a request");
        debug_assert!(peer.in_flight <= WINDOW, "{to:?} has at most so many requests");
        peer.in_flight -= 1;
        if peer.in_flight == 0 && peer.waiting.is_empty() {
            self.peers.remove(&to);
        }
        self.note_ready(to);
        Ok(done)
    }
}

/// Whether the answer carries bytes for the copy.
fn reads(copy: &Copy) -> bool {
    matches!(copy, Copy::Get(_) | Copy::Atomic(_) | Copy::ReadAhead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Completion, ServedId};
    use vgasnet_memory::Piece;
    use vgasnet_protocol::byte_message::{AnswerHead, TAG_ANSWER};

    /// Each chunk has at most 40 bytes.
    const MESSAGE_BYTES_MAX: usize = 40 + REQUEST_HEAD_BYTES + PIECE_HEAD_BYTES;

    fn shipping(message_bytes_max: usize) -> Shipping {
        Shipping::new(4096, message_bytes_max, true)
    }

    fn part(len_bytes: usize, copy: Copy) -> Part {
        let page = PageId::of_segment(Rank(1), 0);
        let piece = Piece { page, offset_bytes: 8, len_bytes, start_bytes: 0 };
        Part { piece, copy, completion: Completion::Served(ServedId { request: 0, piece: 0 }) }
    }

    fn answer(id: u32, statuses: &[Status], payload: &[u8]) -> Vec<u8> {
        let head = AnswerHead { tag: TAG_ANSWER, cause: 0, pieces: statuses.len() as u16, id };
        let statuses: Vec<u8> = statuses.iter().map(|status| *status as u8).collect();
        [head.as_bytes(), &statuses, payload].concat()
    }

    fn pieces(shipment: &Shipment) -> usize {
        (shipment.heads.len() - REQUEST_HEAD_BYTES) / PIECE_HEAD_BYTES
    }

    #[test]
    fn a_peer_gets_first_requests_at_once_and_later_ones_for_several_parts() {
        let (mut shipping, home) = (shipping(1 << 16), Target::home(Rank(1)));
        for _ in 0..REQUESTS_EAGER {
            shipping.add(home, part(8, Copy::Set(1)), 0);
            assert_eq!(shipping.next().map(|shipment| pieces(&shipment)), Some(1));
        }
        for waiting in 1..TOGETHER {
            shipping.add(home, part(8, Copy::Set(1)), 0);
            assert!(shipping.next().is_none() && shipping.is_waiting(), "{waiting} parts are too few");
        }
        shipping.add(home, part(8, Copy::Set(1)), 0);
        assert_eq!(shipping.next().map(|shipment| pieces(&shipment)), Some(TOGETHER));
        assert!(!shipping.is_waiting());
    }

    #[test]
    fn a_peer_has_at_most_a_window_of_requests_and_as_many_direct_ones() {
        let mut shipping = shipping(MESSAGE_BYTES_MAX);
        for target in [Target::home(Rank(1)), Target::holder(Rank(1))] {
            // Each part fills a message.
            (0..WINDOW + TOGETHER).for_each(|_| shipping.add(target, part(40, Copy::Set(1)), 0));
            let sent = std::iter::from_fn(|| shipping.next()).count();
            assert_eq!(sent, WINDOW);
        }
        assert_eq!(shipping.on_answer(Rank(1), &answer(0, &[Status::Done], &[])).expect("an answer").len(), 1);
        assert!(shipping.next().is_some() && shipping.next().is_none(), "an answer makes room for one");
    }

    #[test]
    fn a_part_longer_than_a_message_is_put_together_from_answers_in_any_order() {
        let mut shipping = shipping(MESSAGE_BYTES_MAX);
        shipping.add(Target::home(Rank(1)), part(100, Copy::Get(std::ptr::null_mut())), 0);
        let lens: Vec<usize> = std::iter::from_fn(|| shipping.next()).map(|shipment| pieces(&shipment)).collect();
        assert_eq!(lens, [1, 1, 1]);
        for (id, len_bytes) in [(2, 20), (0, 40)] {
            let done = shipping.on_answer(Rank(1), &answer(id, &[Status::Done], &vec![id as u8; len_bytes]));
            assert!(done.expect("an answer").is_empty(), "bytes are missing");
        }
        let mut done = shipping.on_answer(Rank(1), &answer(1, &[Status::Done], &[1; 40])).expect("an answer");
        let Outcome::Done(Delivery { bytes, .. }) = done.remove(0).end() else { panic!("it is done") };
        assert_eq!(bytes, [vec![0; 40], vec![1; 40], vec![2; 20]].concat());
        assert_eq!(shipping.len(), 0);
    }

    #[test]
    fn wrong_answers_change_nothing() {
        let mut shipping = shipping(1 << 16);
        shipping.add(Target::home(Rank(1)), part(8, Copy::Get(std::ptr::null_mut())), 0);
        assert!(shipping.next().is_some());
        let right = answer(0, &[Status::Done], &[7; 8]);
        let wrong = [
            answer(1, &[Status::Done], &[7; 8]),
            answer(0, &[Status::Done], &[7; 9]),
            answer(0, &[Status::Done, Status::Done], &[7; 8]),
            // A home refuses nothing.
            answer(0, &[Status::Refused], &[7; 8]),
            right[..right.len() - 9].to_vec(),
        ];
        assert!(wrong.iter().all(|wrong| shipping.on_answer(Rank(1), wrong).is_err()));
        assert!(shipping.on_answer(Rank(2), &right).is_err(), "it was another rank's");
        assert_eq!(shipping.on_answer(Rank(1), &right).expect("an answer").len(), 1);
        assert!(shipping.on_answer(Rank(1), &right).is_err(), "it has answered");
    }

    #[test]
    fn a_holder_refuses_and_a_home_is_done() {
        let mut shipping = shipping(1 << 16);
        shipping.add(Target::holder(Rank(1)), part(8, Copy::Set(1)), 1);
        shipping.add(Target::home(Rank(1)), part(8, Copy::Set(1)), 0);
        assert_eq!(std::iter::from_fn(|| shipping.next()).count(), 2);
        let mut end = |id, status| {
            let shipped = shipping.on_answer(Rank(1), &answer(id, &[status], &[])).expect("an answer").remove(0);
            (shipped.put_at_home().map(|(_, is_contended)| is_contended), shipped.end())
        };
        // Requests to the home are sent first.
        assert!(matches!(end(0, Status::DoneContended), (Some(true), Outcome::Done(_))));
        assert!(matches!(end(1, Status::Refused), (None, Outcome::Refused(_, 1))));
    }
}

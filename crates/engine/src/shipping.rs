//! Ships small operations on absent pages to the pages' holders instead of moving the pages.
//!
//! A part is shipped to its page's home. The home performs it in the blocks of its file if no rank holds the page.
//! Otherwise it forwards the part to the page's holder in a direct request, served at once or refused. After refusals
//! the home requests the page itself. Meters choose between shipping and moving ([`vgasnet_protocol::shipping`]).
//!
//! A peer has at most [`WINDOW`] requests of this rank in flight, and as many direct ones. Waiting parts are sent
//! together. A direct request waits for nothing at its target, so requests never wait for each other in a cycle.
//!
//! A faulting thread drives on its own stack, which may be small. Code not needed there is kept out of line.

use super::{Engine, Work};
use crate::request::{Atomic, Copy, Part};
use slab::Slab;
use std::collections::VecDeque;
use std::time::Instant;
use vgasnet_memory::Piece;
use vgasnet_protocol::Rank;
use vgasnet_protocol::byte_message::{
    ANSWER_HEAD_BYTES, AtomicOp, PIECE_HEAD_BYTES, PieceHead, PieceKind, REQUEST_HEAD_BYTES, RequestHead, Status,
    TAG_REQUEST, read_answer,
};
use vgasnet_protocol::coherence::{Access, Cause, Event, PageId};
use vgasnet_protocol::ordered::{OrderedMap, OrderedSet};
use vgasnet_protocol::shipping::{Choice, Meters, SmallOperation};
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

/// Refusals by ranks that may use the page before the home asks for the page.
const TRIES_MAX: u8 = 2;

/// The parts that this rank ships.
pub(super) struct Shipping {
    pub meters: Meters,
    is_on: bool,
    is_cooperative: bool,
    part_bytes_max: usize,
    message_bytes_max: usize,
    peers: OrderedMap<Target, Peer>,
    /// Targets that may have another request.
    ready: OrderedSet<Target>,
    parts: Slab<Shipped>,
    /// Number of waiting chunks.
    waiting: usize,
    /// A request's id is its index.
    requests: Slab<Request>,
}

/// A receiver of requests, and whether they are direct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    rank: Rank,
    is_direct: bool,
}

vgasnet_protocol::ordered_like! {
    Target: (Rank, u8) = |to| (to.rank, u8::from(to.is_direct));
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

/// A part in flight.
struct Shipped {
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

/// A request to be sent once the bytes that it writes have been collected.
#[derive(Debug)]
pub struct Shipment {
    /// The receiver.
    pub to: Rank,
    /// The heads of the request and of its pieces.
    pub heads: Vec<u8>,
    payload: Vec<Source>,
}

/// The result of a shipped part.
#[derive(Debug)]
pub struct Delivery {
    /// The part.
    pub part: Part,
    /// The bytes read, for a part that reads.
    pub bytes: Vec<u8>,
}

/// Source of the bytes that a request writes.
#[derive(Debug)]
enum Source {
    Memory(*const u8, usize),
    Byte(u8, usize),
    Operands([u8; 16]),
}

// SAFETY: the pointers are to memory of parts, which belongs to them until they are done, in any thread.
unsafe impl Send for Source {}

impl Shipment {
    /// Collects the bytes that the request writes. Called without the engine's lock, since they may be the client's.
    pub fn collect(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for source in &self.payload {
            match source {
                Source::Memory(from, len_bytes) => {
                    // SAFETY: this lies in the part's memory, which does not change until the part is done.
                    bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(*from, *len_bytes) });
                }
                Source::Byte(byte, len_bytes) => bytes.resize(bytes.len() + len_bytes, *byte),
                Source::Operands(operands) => bytes.extend_from_slice(operands),
            }
        }
        bytes
    }
}

impl Shipping {
    /// Ships in messages of at most `message_bytes_max` if `is_on`. Without cooperative caching only homes perform
    /// parts.
    pub(super) fn new(
        meters: Meters,
        page_bytes: usize,
        message_bytes_max: usize,
        is_on: bool,
        cooperative: bool,
    ) -> Shipping {
        Shipping {
            meters,
            is_on,
            is_cooperative: cooperative,
            part_bytes_max: PART_BYTES_MAX.min(page_bytes / PAGE_PART_MIN),
            message_bytes_max: message_bytes_max.min(usize::from(u16::MAX)),
            peers: OrderedMap::new(),
            ready: OrderedSet::new(),
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

    fn takes(&self, part: &Part) -> bool {
        let is_pin = matches!(part.copy, Copy::Pin(_));
        self.is_on && !is_pin && (1..=self.part_bytes_max).contains(&part.piece.len_bytes)
    }

    /// Maximum bytes of a part in one message.
    fn chunk_bytes_max(&self) -> usize {
        self.message_bytes_max - (REQUEST_HEAD_BYTES + PIECE_HEAD_BYTES).max(ANSWER_HEAD_BYTES + 1)
    }

    /// Cuts a part into chunks and queues them.
    fn add(&mut self, to: Target, part: Part, tries: u8) {
        let len_bytes = part.piece.len_bytes;
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
    }

    /// The next request to a ready peer.
    fn next(&mut self) -> Option<Shipment> {
        let to = *self.ready.first()?;
        let peer = self.peers.get_mut(&to).expect("a peer that is ready is known");
        let (mut heads, mut payload, mut chunks) = (Vec::new(), Vec::new(), Vec::new());
        let (mut asked, mut answered) = (REQUEST_HEAD_BYTES, ANSWER_HEAD_BYTES);
        while let Some(chunk) = peer.waiting.front().copied() {
            let (head, source) = describe(&self.parts[chunk.part].part, &chunk);
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
        peer.in_flight += 1;
        self.note_ready(to);
        let pieces = chunks.len() as u16;
        let id = self.requests.insert(Request { to, chunks }) as u32;
        let head = RequestHead { tag: TAG_REQUEST, is_direct: u8::from(to.is_direct), pieces, id };
        heads.splice(..0, head.as_bytes().iter().copied());
        Some(Shipment { to: to.rank, heads, payload })
    }

    /// Handles an answer. Returns the completed parts.
    fn on_answer(&mut self, from: Rank, bytes: &[u8]) -> Result<Vec<Shipped>, &'static str> {
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
            shipped.left_bytes -= chunk.len_bytes;
            if shipped.left_bytes == 0 {
                done.push(self.parts.remove(chunk.part));
            }
        }
        let peer = self.peers.get_mut(&to).expect("a peer with a request is known");
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
    matches!(copy, Copy::Get(_) | Copy::Atomic(_))
}

/// The head of a chunk, and the source of the bytes that it writes.
fn describe(part: &Part, chunk: &Chunk) -> (PieceHead, Option<Source>) {
    let Chunk { start_bytes, len_bytes, .. } = *chunk;
    let (kind, op, source) = match &part.copy {
        Copy::Get(_) => (PieceKind::Get, AtomicOp::Add, None),
        Copy::Put(from) => {
            let source = Source::Memory(from.wrapping_add(start_bytes), len_bytes);
            (PieceKind::Put, AtomicOp::Add, Some(source))
        }
        Copy::PutOwned(from, _) => {
            let source = Source::Memory(from[start_bytes..].as_ptr(), len_bytes);
            (PieceKind::Put, AtomicOp::Add, Some(source))
        }
        Copy::Set(byte) => (PieceKind::Put, AtomicOp::Add, Some(Source::Byte(*byte, len_bytes))),
        Copy::Atomic(Atomic { op, operands, .. }) => {
            let operands = operands.as_bytes().try_into().expect("two numbers");
            (PieceKind::Atomic, *op, Some(Source::Operands(operands)))
        }
        Copy::MakeResident(_) | Copy::Pin(_) => unreachable!("only transfers are shipped"),
    };
    let Piece { page, offset_bytes, .. } = part.piece;
    let (offset_bytes, len_bytes) = ((offset_bytes + start_bytes) as u32, len_bytes as u16);
    (PieceHead { page, offset_bytes, len_bytes, kind, op }, source)
}

impl Engine {
    /// Whether the part may avoid fetching its page.
    #[inline]
    pub(super) fn may_ship(&self, part: &Part) -> bool {
        let is_fault = matches!(part.copy, Copy::MakeResident(_));
        let may = !is_fault || self.storage.maps_blocks();
        may && self.shipping.takes(part) && !self.protocol.cache.contains(part.piece.page)
    }

    /// Ships a part to its page's holder if that is cheaper. Otherwise returns it.
    #[inline(never)]
    pub(super) fn ship_or_keep(&mut self, mut part: Part) -> Option<Part> {
        let (page, own) = (part.piece.page, self.space.rank);
        let home = self.protocol.spaces().home(page);
        let has_room = self.has_room();
        let is_fill = part.copy.mapped_access().is_some();
        if is_fill && !self.may_map_block(page, has_room) {
            return Some(part);
        }
        let mut operation = SmallOperation {
            offset_bytes: part.piece.offset_bytes as u32,
            len_bytes: part.piece.len_bytes as u32,
            is_put: part.copy.access() == Access::Write,
            is_at_hand: home == own && self.storage.has_blocks(&part),
            is_fill,
        };
        if is_fill && !operation.is_at_hand {
            let most = self.storage.block_part_bytes_max() as u32;
            operation.len_bytes = self.shipping.meters.fill_bytes(page, &operation).min(most);
            part.piece.len_bytes = operation.len_bytes as usize;
        }
        if self.shipping.meters.choose(page, &operation, has_room) == Choice::Move {
            return Some(part);
        }
        self.page_statistics.on_part(&part);
        if home == own {
            if operation.is_put {
                self.shipping.meters.on_written(page, own);
            }
            let kept = self.do_at_home(part, 0);
            kept.into_iter().for_each(|part| self.want(part));
        } else {
            self.shipping.add(Target { rank: home, is_direct: false }, part, 0);
        }
        None
    }

    /// Whether the pool has spare frames: some are free without evictions, and none serves for blocks.
    fn has_room(&self) -> bool {
        let is_full = self.storage.frames_for_blocks() > 0 || self.paging.is_short();
        !is_full && self.protocol.cache.surplus_frames() > 0
    }

    /// Whether a load or store may use a block of a page of this home: no rank holds the page. If there is room, a page
    /// of zeros is served as a page at once.
    fn may_map_block(&self, page: PageId, has_room: bool) -> bool {
        let home = &self.protocol.home;
        let is_here = !home.has_entry(page) && !self.held.contains_key(&page);
        is_here && (home.is_written(page) || !has_room)
    }

    /// Performs a part of a page of this home at the page's holder, after `tries` ranks have refused it. Returns the
    /// part if this rank is to fetch the page for it.
    #[inline(never)]
    pub(super) fn do_at_home(&mut self, part: Part, tries: u8) -> Option<Part> {
        let page = part.piece.page;
        if self.protocol.cache.contains(page) || self.held.contains_key(&page) {
            return Some(part);
        }
        if self.protocol.home.has_entry(page) {
            if part.copy.access() == Access::Write && tries < TRIES_MAX && self.protocol.home.has_only_guests(page) {
                self.events.extend(self.paging.wait_for_dismissal(part, tries).then_some(Event::Dismiss(page)));
                return None;
            }
            let user = self.protocol.home.stable_user(page, part.copy.access());
            let may_ship = self.shipping.is_cooperative && tries < TRIES_MAX;
            // Retrying a refused part in pieces could overwrite newer bytes, so only parts of one chunk are shipped.
            let may_ship = may_ship && part.piece.len_bytes <= self.shipping.chunk_bytes_max();
            let Some(rank) = user.filter(|rank| may_ship && *rank != self.space.rank) else { return Some(part) };
            self.shipping.add(Target { rank, is_direct: true }, part, tries + 1);
            return None;
        }
        if !self.storage.takes_on_blocks(&part) || self.is_first_put(&part) {
            return Some(part);
        }
        if self.notes_writes() && self.space.is_own(page) {
            self.note_job(&part);
        }
        let is_written = self.protocol.home.is_written(page);
        if part.copy.access() == Access::Write && !is_written {
            let noted = self.protocol.handle(Event::Written(page), &mut Vec::new());
            noted.expect("no message is part of it");
        }
        stats::count(Row::InBlocks);
        stats::add(Row::FaultBlock, u64::from(part.copy.mapped_access().is_some()));
        let is_here = self.storage.has_blocks(&part);
        if !is_here && is_written {
            self.paging.on_blocks_missed(1);
        }
        stats::add(Row::BlockHits, u64::from(is_here));
        self.storage.start_on_blocks(part, is_written, &mut self.work);
        None
    }

    /// Whether a part is the first write to a page of an own segment that fits the pool: the page comes without I/O,
    /// and later accesses hit. All such pages together take no longer than clearing the pool once.
    fn is_first_put(&self, part: &Part) -> bool {
        let (page, space) = (part.piece.page, &self.space);
        let is_new = part.copy.is_put() && space.is_own(page) && !self.protocol.home.is_written(page);
        let fits = || space.own_segment().size_bytes / space.page_bytes() <= self.protocol.cache.frames() as usize;
        is_new && fits() && self.has_room()
    }

    /// The copies of a job on blocks are done.
    pub fn end_on_blocks(&mut self, job: usize) {
        let page = self.storage.end_on_blocks(job, &mut self.work);
        self.note_age_of_blocks();
        if let Some(held) = page.and_then(|page| self.held.remove(&page)) {
            self.events.extend(held);
            self.handle_events();
        }
    }

    /// Holds an event back: a message to this home about a page with jobs on its blocks.
    pub(super) fn hold_back(&mut self, page: PageId, event: Event) {
        self.held.entry(page).or_default().push(event);
    }

    /// Queues requests, as many as their receivers may have.
    #[inline(never)]
    pub(super) fn send_shipments(&mut self) {
        while let Some(shipment) = self.shipping.next() {
            self.work.push_back(Work::Ship(Box::new(shipment)));
        }
    }

    /// Handles an answer.
    #[inline(never)]
    pub(super) fn on_byte_answer(&mut self, from: Rank, bytes: &[u8]) -> Result<(), &'static str> {
        for shipped in self.shipping.on_answer(from, bytes)? {
            let Shipped { part, bytes, tries, is_refused, is_contended, cause, since, .. } = shipped;
            if let Some(cause) = cause {
                self.work.push_back(Work::Fail { parts: vec![part], cause });
                continue;
            }
            if is_refused {
                let kept = self.do_at_home(part, tries);
                kept.into_iter().for_each(|part| self.want(part));
                continue;
            }
            since.into_iter().for_each(|since| stats::time(Row::Shipped, since));
            stats::add(Row::FileShipped, u64::from(part.piece.page.space.segment().is_none()));
            if part.copy.is_put() && tries == 0 {
                self.shipping.meters.on_shipped(part.piece.page, is_contended);
            }
            self.work.push_back(Work::Deliver(Box::new(Delivery { part, bytes })));
        }
        Ok(())
    }
}

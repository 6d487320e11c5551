//! Requests of other ranks to read or write bytes of resident pages and of pages of which this rank is the home.
//!
//! A piece is a part like a client's own; its memory is the request or the answer. The answer is sent when all pieces
//! are done.

use crate::request::{Atomic, Completion, Copy, Part, ServedId};
use slab::Slab;
use vgasnet_memory::Piece;
use vgasnet_protocol::byte_message::{
    ANSWER_HEAD_BYTES, AnswerHead, Operands, PieceHead, PieceKind, Status, TAG_ANSWER, read_request,
};
use vgasnet_protocol::coherence::Cause;
use vgasnet_protocol::{Rank, Spaces};
use vgasnet_stats::{self as stats, Row};
use zerocopy::{FromBytes, IntoBytes};

/// The requests being served.
pub(super) struct Serving {
    rank: Rank,
    page_bytes: usize,
    message_bytes_max: usize,
    requests: Slab<Served>,
}

/// A request being served.
struct Served {
    from: Rank,
    /// Parts read the bytes that they write from this memory.
    _request: Vec<u8>,
    answer: Vec<u8>,
    /// Pending pieces.
    left: usize,
}

/// The parts of a request, to be performed in order.
pub(crate) struct IncomingRequest {
    number: u32,
    is_direct: bool,
    parts: Vec<Part>,
}

impl IncomingRequest {
    /// Whether it is direct: only parts of resident pages are performed.
    pub(crate) fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// The parts and their names.
    pub(crate) fn into_parts(self) -> impl Iterator<Item = (ServedId, Part)> {
        let request = self.number;
        self.parts.into_iter().enumerate().map(move |(at, part)| (ServedId { request, piece: at as u16 }, part))
    }
}

impl Serving {
    pub(super) fn new(rank: Rank, page_bytes: usize, message_bytes_max: usize) -> Serving {
        Serving { rank, page_bytes, message_bytes_max, requests: Slab::new() }
    }

    /// Takes a request.
    pub(super) fn begin(
        &mut self,
        from: Rank,
        bytes: Vec<u8>,
        spaces: &Spaces,
    ) -> Result<IncomingRequest, &'static str> {
        let Some((head, pieces)) = read_request(&bytes) else { return Err("a request for bytes that is none") };
        let is_direct = head.is_direct == 1;
        let answer_bytes: usize = pieces.iter().map(|(piece, _)| 1 + piece.answer_bytes()).sum();
        if ANSWER_HEAD_BYTES + answer_bytes > self.message_bytes_max {
            return Err("a request for more bytes than a message has room for");
        }
        for (piece, _) in &pieces {
            self.check_piece(piece, is_direct, spaces)?;
        }
        stats::add(Row::ServedPieces, pieces.len() as u64);
        let answer_head = AnswerHead { tag: TAG_ANSWER, cause: 0, pieces: head.pieces, id: head.id };
        let (number, parts) = self.insert(from, answer_head, &pieces, bytes);
        Ok(IncomingRequest { number, is_direct, parts })
    }

    fn check_piece(&self, piece: &PieceHead, is_direct: bool, spaces: &Spaces) -> Result<(), &'static str> {
        if !spaces.has(piece.page) || !piece.is_inside(self.page_bytes) {
            return Err("a request for bytes that do not exist");
        }
        if !is_direct && spaces.home(piece.page) != self.rank {
            return Err("a request for bytes of a page of another home");
        }
        Ok(())
    }

    /// Keeps a request with the memory for its answer. Returns its number and its parts.
    fn insert(
        &mut self,
        from: Rank,
        head: AnswerHead,
        pieces: &[(PieceHead, usize)],
        mut bytes: Vec<u8>,
    ) -> (u32, Vec<Part>) {
        let mut answer = head.as_bytes().to_vec();
        answer.resize(ANSWER_HEAD_BYTES + pieces.len(), Status::Done as u8);
        let mut read_at = answer.len();
        answer.resize(read_at + pieces.iter().map(|(piece, _)| piece.answer_bytes()).sum::<usize>(), 0);
        let (asked, answered) = (bytes.as_mut_ptr(), answer.as_mut_ptr());
        let operands = |at: usize| Operands::read_from_prefix(&bytes[at..]).expect("the request has them").0;
        let request = self.requests.vacant_key() as u32;
        let part = |(at, (head, written_at)): (usize, &(PieceHead, usize))| {
            let old = answered.wrapping_add(read_at);
            read_at += head.answer_bytes();
            let copy = match head.kind {
                PieceKind::Get => Copy::Get(old),
                PieceKind::Put => Copy::Put(asked.wrapping_add(*written_at)),
                PieceKind::Atomic => Copy::Atomic(Atomic { op: head.op, operands: operands(*written_at), old }),
            };
            let (page, offset_bytes) = (head.page, head.offset_bytes as usize);
            let piece = Piece { page, offset_bytes, len_bytes: usize::from(head.len_bytes), start_bytes: 0 };
            Part { piece, copy, completion: Completion::Served(ServedId { request, piece: at as u16 }) }
        };
        let parts = pieces.iter().enumerate().map(part).collect();
        debug_assert_eq!(read_at, answer.len(), "the answer has room for all bytes that are read");
        let inserted = self.requests.insert(Served { from, _request: bytes, answer, left: pieces.len() });
        debug_assert_eq!(inserted as u32, request, "the parts name their request");
        (request, parts)
    }

    /// The sender of a request.
    pub(super) fn sender(&self, id: ServedId) -> Rank {
        self.requests[id.request as usize].from
    }

    pub(super) fn set_status(&mut self, id: ServedId, status: Status) {
        let answer = &mut self.requests[id.request as usize].answer;
        let (head, statuses) = AnswerHead::mut_from_prefix(answer).expect("an answer has its head");
        assert!(id.piece < head.pieces, "{id:?} is one of {} pieces", head.pieces);
        statuses[usize::from(id.piece)] = status as u8;
    }

    /// Notes the failure of a piece. [`Serving::end_piece`] follows.
    pub(super) fn note_failed(&mut self, id: ServedId, cause: Cause) {
        let answer = &mut self.requests[id.request as usize].answer;
        let (head, _) = AnswerHead::mut_from_prefix(answer).expect("an answer has its head");
        head.cause = cause.to_byte();
        self.set_status(id, Status::Failed);
    }

    /// A piece is done. The last one returns the answer and its receiver.
    pub(super) fn end_piece(&mut self, id: ServedId) -> Option<(Rank, Vec<u8>)> {
        let served = &mut self.requests[id.request as usize];
        assert!(served.left > 0, "each piece of a request ends once");
        served.left -= 1;
        (served.left == 0).then(|| {
            let Served { from, answer, .. } = self.requests.remove(id.request as usize);
            (from, answer)
        })
    }

    /// Number of requests being served.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vgasnet_protocol::byte_message::{AtomicOp, RequestHead, TAG_REQUEST, read_answer};
    use vgasnet_protocol::coherence::PageId;

    const PAGE_BYTES: usize = 4096;

    fn serving() -> (Serving, Spaces) {
        (Serving::new(Rank(0), PAGE_BYTES, 256), Spaces::new([4, 4]))
    }

    fn request(is_direct: bool, pieces: &[(PageId, u16, PieceKind)], payload: &[u8]) -> Vec<u8> {
        let count = pieces.len() as u16;
        let head = RequestHead { tag: TAG_REQUEST, is_direct: u8::from(is_direct), pieces: count, id: 7 };
        let mut bytes = head.as_bytes().to_vec();
        for (page, len_bytes, kind) in pieces.iter().copied() {
            let piece = PieceHead { page, offset_bytes: 8, len_bytes, kind, op: AtomicOp::Add };
            bytes.extend_from_slice(piece.as_bytes());
        }
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn the_last_piece_sends_the_answer() {
        let (mut serving, spaces) = serving();
        let page = PageId::of_segment(Rank(0), 1);
        let bytes = request(false, &[(page, 4, PieceKind::Get), (page, 3, PieceKind::Put)], b"new");
        let request = serving.begin(Rank(1), bytes, &spaces).expect("a request");
        assert!(!request.is_direct());
        let mut frame = *b"old bytes";
        let ids: Vec<ServedId> = request
            .into_parts()
            .map(|(id, part)| {
                assert_eq!((part.piece.page, part.piece.offset_bytes), (page, 8));
                // SAFETY: the frame is as long as the piece, and the request is being served.
                unsafe { part.copy.run_at(frame.as_mut_ptr(), 0, part.piece.len_bytes) };
                assert_eq!(serving.sender(id), Rank(1));
                id
            })
            .collect();
        assert_eq!(&frame, b"new bytes", "the get has read before the put");
        serving.set_status(ids[1], Status::DoneContended);
        assert_eq!(serving.end_piece(ids[1]), None);
        let (to, answer) = serving.end_piece(ids[0]).expect("it was the last");
        let (head, statuses, payload) = read_answer(&answer).expect("an answer");
        assert_eq!((to, head.id, head.cause, payload), (Rank(1), 7, 0, &b"old "[..]));
        assert_eq!(statuses, [Status::Done, Status::DoneContended]);
        assert_eq!(serving.len(), 0);
    }

    #[test]
    fn a_failed_piece_fails_alone() {
        let (mut serving, spaces) = serving();
        let page = PageId::of_segment(Rank(0), 1);
        let bytes = request(true, &[(page, 4, PieceKind::Get), (page, 4, PieceKind::Get)], &[]);
        let request = serving.begin(Rank(1), bytes, &spaces).expect("a request");
        let ids: Vec<ServedId> = request.into_parts().map(|(id, _)| id).collect();
        serving.note_failed(ids[0], Cause(5));
        assert_eq!(serving.end_piece(ids[0]), None);
        let (_, answer) = serving.end_piece(ids[1]).expect("it was the last");
        let (head, statuses, _) = read_answer(&answer).expect("an answer");
        assert_eq!((Cause::of_byte(head.cause), statuses), (Some(Cause(5)), vec![Status::Failed, Status::Done]));
    }

    #[test]
    fn requests_for_bytes_out_of_reach_are_refused() {
        let (mut serving, spaces) = serving();
        let [own, other, absent] = [(0, 1), (1, 1), (0, 9)].map(|(rank, index)| PageId::of_segment(Rank(rank), index));
        let mut is_taken = |is_direct, page, len_bytes| {
            let bytes = request(is_direct, &[(page, len_bytes, PieceKind::Get)], &[]);
            serving.begin(Rank(1), bytes, &spaces).is_ok()
        };
        assert!(is_taken(false, own, 4) && is_taken(true, other, 4), "a holder serves pages of all homes");
        assert!(!is_taken(false, other, 4), "another rank is its home");
        assert!(!is_taken(true, absent, 4) && !is_taken(false, own, 0), "there are no such bytes");
        assert!(!is_taken(false, own, 256), "a message has no room for the answer");
        assert_eq!(serving.len(), 2, "a refused request leaves nothing behind");
    }
}

//! Serves other ranks' requests to read or write bytes of resident pages and of pages of which this rank is the home.
//!
//! A piece is a part like a client's own; its memory is the request or the answer. The answer is sent when all pieces
//! are done.

use super::{Engine, Work};
use crate::request::{Atomic, Completion, Copy, Part, ServedId};
use vgasnet_memory::Piece;
use vgasnet_protocol::Rank;
use vgasnet_protocol::byte_message::{
    ANSWER_HEAD_BYTES, AnswerHead, Operands, PieceHead, PieceKind, RequestHead, Status, TAG_ANSWER, read_request,
};
use vgasnet_protocol::coherence::{Cause, Event};
use vgasnet_stats::{self as stats, Row};
use zerocopy::{FromBytes, IntoBytes};

/// A request being served.
pub(super) struct Served {
    from: Rank,
    /// Parts read the bytes that they write from this memory.
    _request: Vec<u8>,
    answer: Vec<u8>,
    /// Pending pieces.
    left: usize,
}

impl Engine {
    /// Handles a request.
    #[inline(never)]
    pub(super) fn on_byte_request(&mut self, from: Rank, bytes: Vec<u8>) -> Result<(), &'static str> {
        let Some((head, pieces)) = read_request(&bytes) else { return Err("a request for bytes that is none") };
        let is_direct = head.is_direct == 1;
        let answer_bytes: usize = pieces.iter().map(|(piece, _)| 1 + piece.answer_bytes()).sum();
        if ANSWER_HEAD_BYTES + answer_bytes > self.conduit.message_bytes_max() {
            return Err("a request for more bytes than a message has room for");
        }
        for (piece, _) in &pieces {
            self.check_piece(piece, is_direct)?;
        }
        stats::add(Row::ServedPieces, pieces.len() as u64);
        self.serve(from, head, &pieces, bytes);
        Ok(())
    }

    fn check_piece(&self, piece: &PieceHead, is_direct: bool) -> Result<(), &'static str> {
        let page = piece.page;
        if !self.protocol.spaces().has(page) || !piece.is_inside(self.space.page_bytes()) {
            return Err("a request for bytes that do not exist");
        }
        if !is_direct && self.protocol.spaces().home(page) != self.space.rank {
            return Err("a request for bytes of a page of another home");
        }
        Ok(())
    }

    fn serve(&mut self, from: Rank, head: RequestHead, pieces: &[(PieceHead, usize)], mut bytes: Vec<u8>) {
        let answer_head = AnswerHead { tag: TAG_ANSWER, cause: 0, pieces: head.pieces, id: head.id };
        let mut answer = answer_head.as_bytes().to_vec();
        answer.resize(ANSWER_HEAD_BYTES + pieces.len(), Status::Done as u8);
        let mut read_at = answer.len();
        answer.resize(read_at + pieces.iter().map(|(piece, _)| piece.answer_bytes()).sum::<usize>(), 0);
        let (asked, answered) = (bytes.as_mut_ptr(), answer.as_mut_ptr());
        let operands = |at: usize| Operands::read_from_prefix(&bytes[at..]).expect("the request has them").0;
        let copies: Vec<Copy> = pieces
            .iter()
            .map(|(piece, written_at)| {
                let old = answered.wrapping_add(read_at);
                read_at += piece.answer_bytes();
                match piece.kind {
                    PieceKind::Get => Copy::Get(old),
                    PieceKind::Put => Copy::Put(asked.wrapping_add(*written_at)),
                    PieceKind::Atomic => Copy::Atomic(Atomic { op: piece.op, operands: operands(*written_at), old }),
                }
            })
            .collect();
        let id = self.served.insert(Served { from, _request: bytes, answer, left: pieces.len() });
        for (at, ((piece, _), copy)) in pieces.iter().zip(copies).enumerate() {
            let (page, offset_bytes) = (piece.page, piece.offset_bytes as usize);
            let piece = Piece { page, offset_bytes, len_bytes: usize::from(piece.len_bytes), start_bytes: 0 };
            let part =
                Part { piece, copy, completion: Completion::Served(ServedId { request: id as u32, piece: at as u16 }) };
            if head.is_direct == 1 {
                self.do_if_here(part, id, at);
            } else {
                if part.copy.is_put() && self.shipping.meters.on_written(page, from) {
                    self.set_status(id, at, Status::DoneContended);
                }
                let kept = self.do_at_home(part, 0);
                kept.into_iter().for_each(|part| self.want(part));
            }
        }
    }

    /// The sender of a request being served.
    pub(super) fn sender_of(&self, id: ServedId) -> Rank {
        self.served[id.request as usize].from
    }

    fn set_status(&mut self, id: usize, piece: usize, status: Status) {
        self.served[id].answer[ANSWER_HEAD_BYTES + piece] = status as u8;
    }

    /// Performs a part of a direct request if its page is open here, or refuses it.
    fn do_if_here(&mut self, part: Part, id: usize, at: usize) {
        let (page, own) = (part.piece.page, &self.space.own);
        if let Some(pinned) = own.table.pin(page, part.copy.access()) {
            own.pool.touch(pinned.frame);
            self.work.push_back(Work::Copies { page, frame: pinned.frame, parts: vec![part] });
            return;
        }
        self.set_status(id, at, Status::Refused);
        // The home does not know yet that the page is gone.
        self.handle(Event::Tell(page));
        self.on_served(ServedId { request: id as u32, piece: at as u16 });
    }

    /// A piece of a request has failed.
    #[inline(never)]
    pub fn on_served_failed(&mut self, id: ServedId, cause: Cause) {
        let answer = &mut self.served[id.request as usize].answer;
        let (head, _) = AnswerHead::mut_from_prefix(answer).expect("an answer has its head");
        head.cause = cause.to_byte();
        self.set_status(id.request as usize, usize::from(id.piece), Status::Failed);
        self.on_served(id);
    }

    /// A piece of a request is done. The last one sends the answer.
    #[inline(never)]
    pub fn on_served(&mut self, id: ServedId) {
        let served = &mut self.served[id.request as usize];
        served.left -= 1;
        if served.left == 0 {
            let Served { from, answer, .. } = self.served.remove(id.request as usize);
            self.outbox.send(from, &answer);
        }
    }
}

//! Requests to read or write bytes of pages in place, and their answers, as bytes.
//!
//! A request has pieces: the head of each, then the payload of each. The answer has a [`Status`] per piece, then the
//! bytes read, piece after piece.
//!
//! ```text
//! ┌─────────────┬───────────┬─────┬──────────┬─────┐   ┌────────────┬────────┬─────┬──────────┬─────┐
//! │ RequestHead │ PieceHead │  …  │ payload… │  …  │   │ AnswerHead │ Status │  …  │ payload… │  …  │
//! └─────────────┴───────────┴─────┴──────────┴─────┘   └────────────┴────────┴─────┴──────────┴─────┘
//! ```

use crate::coherence::PageId;
use crate::layout_as_in_memory;
use crate::wire::take;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// First byte of a request.
pub const TAG_REQUEST: u8 = 37;

/// First byte of an answer.
pub const TAG_ANSWER: u8 = 38;

/// Bytes of a request before its pieces.
pub const REQUEST_HEAD_BYTES: usize = size_of::<RequestHead>();

/// Bytes of a request for each piece, besides the payload.
pub const PIECE_HEAD_BYTES: usize = size_of::<PieceHead>();

/// Bytes of an answer before its pieces.
pub const ANSWER_HEAD_BYTES: usize = size_of::<AnswerHead>();

/// The result of an atomic operation on a number and its operand. Numbers have 4 or 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(u8)]
pub enum AtomicOp {
    /// Their sum, wrapping.
    Add,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// The operand.
    Swap,
    /// The operand, if the number equals the comparand.
    CompareSwap,
    /// The smaller one, unsigned.
    Min,
    /// The larger one, unsigned.
    Max,
    /// The smaller one, signed.
    MinSigned,
    /// The larger one, signed.
    MaxSigned,
    /// The number, unchanged.
    Get,
    /// Their product, wrapping.
    Multiply,
    /// Their floating-point sum.
    AddFloat,
    /// Their floating-point product.
    MultiplyFloat,
    /// The smaller one, floating-point.
    MinFloat,
    /// The larger one, floating-point.
    MaxFloat,
}

/// The operation on the bytes of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(u8)]
pub enum PieceKind {
    /// Read.
    Get,
    /// Write.
    Put,
    /// An atomic operation on a number. The payload is its [`Operands`], the answer the number's old value.
    Atomic,
}

/// The operands of an atomic operation, in the low bytes if the number is shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Operands {
    /// The operand.
    pub operand: u64,
    /// The comparand.
    pub compare: u64,
}

/// The first bytes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RequestHead {
    /// [`TAG_REQUEST`].
    pub tag: u8,
    /// 1: the receiver is not a home; it executes the pieces whose pages it has now and refuses the others.
    pub is_direct: u8,
    /// Number of pieces.
    pub pieces: u16,
    /// Identifies the request at its sender.
    pub id: u32,
}

/// A piece of a request: bytes of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct PieceHead {
    /// The page.
    pub page: PageId,
    /// Offset of the bytes in the page.
    pub offset_bytes: u32,
    /// Number of bytes.
    pub len_bytes: u16,
    /// The operation.
    pub kind: PieceKind,
    /// The atomic operation, if the kind is atomic.
    pub op: AtomicOp,
}

/// The first bytes of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AnswerHead {
    /// [`TAG_ANSWER`].
    pub tag: u8,
    /// Error number of failed pieces; 0 if none failed.
    pub cause: u8,
    /// Number of pieces of the request.
    pub pieces: u16,
    /// The request.
    pub id: u32,
}

/// The outcome of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(u8)]
pub enum Status {
    /// Not done: a direct request reached a rank without the page.
    Refused,
    /// It is done.
    Done,
    /// Done, and another rank has written the page since the sender last did.
    DoneContended,
    /// Not done: the file could not be read or written.
    Failed,
}

layout_as_in_memory!(RequestHead, AnswerHead, PieceHead, Status);

impl PieceHead {
    /// Bytes of the request's payload for this piece.
    pub fn request_bytes(&self) -> usize {
        match self.kind {
            PieceKind::Get => 0,
            PieceKind::Put => usize::from(self.len_bytes),
            PieceKind::Atomic => size_of::<Operands>(),
        }
    }

    /// Bytes of the answer's payload for this piece, if it is done.
    pub fn answer_bytes(&self) -> usize {
        match self.kind {
            PieceKind::Get | PieceKind::Atomic => usize::from(self.len_bytes),
            PieceKind::Put => 0,
        }
    }

    /// Whether the bytes lie in a page of `page_bytes`, and for an atomic operation form an aligned number.
    pub fn is_inside(&self, page_bytes: usize) -> bool {
        let (offset_bytes, len_bytes) = (self.offset_bytes as usize, usize::from(self.len_bytes));
        let is_number = matches!(len_bytes, 4 | 8) && offset_bytes % len_bytes == 0;
        len_bytes > 0 && offset_bytes + len_bytes <= page_bytes && (self.kind != PieceKind::Atomic || is_number)
    }
}

/// Parses a request: its head, and its pieces with their payloads' offsets in `bytes`. `None` if the bytes are not one.
pub fn read_request(bytes: &[u8]) -> Option<(RequestHead, alloc::vec::Vec<(PieceHead, usize)>)> {
    let mut tail = bytes;
    let head: RequestHead = take(&mut tail)?;
    let mut pieces = alloc::vec::Vec::new();
    for _ in 0..head.pieces {
        pieces.push((take::<PieceHead>(&mut tail)?, 0));
    }
    let mut at = bytes.len() - tail.len();
    for (piece, start) in &mut pieces {
        *start = at;
        at += piece.request_bytes();
    }
    let is_request = head.tag == TAG_REQUEST && head.is_direct <= 1 && head.pieces > 0 && at == bytes.len();
    is_request.then_some((head, pieces))
}

/// Parses an answer: its head, the status of each piece, and the bytes read. `None` if the bytes are not one.
pub fn read_answer(bytes: &[u8]) -> Option<(AnswerHead, alloc::vec::Vec<Status>, &[u8])> {
    let mut tail = bytes;
    let head: AnswerHead = take(&mut tail)?;
    let statuses: Option<_> = (0..head.pieces).map(|_| take::<Status>(&mut tail)).collect();
    (head.tag == TAG_ANSWER && head.pieces > 0).then_some((head, statuses?, tail))
}

impl AtomicOp {
    /// Whether the operation never changes the number.
    #[inline]
    pub fn is_read(self) -> bool {
        self == AtomicOp::Get
    }

    /// The new value for `old`, with numbers of `len_bytes`, 4 or 8; `None` if the operation leaves it unchanged.
    #[inline]
    pub fn apply(self, old: u64, Operands { operand, compare }: Operands, len_bytes: usize) -> Option<u64> {
        debug_assert!(matches!(len_bytes, 4 | 8), "numbers have 4 or 8 bytes, not {len_bytes}");
        let mask = if len_bytes == size_of::<u32>() { u64::from(u32::MAX) } else { u64::MAX };
        let (operand, compare) = (operand & mask, compare & mask);
        let signed = |number: u64| if len_bytes == size_of::<u32>() { i64::from(number as i32) } else { number as i64 };
        let new = match self {
            AtomicOp::Add => old.wrapping_add(operand) & mask,
            AtomicOp::And => old & operand,
            AtomicOp::Or => old | operand,
            AtomicOp::Xor => old ^ operand,
            AtomicOp::Swap => operand,
            AtomicOp::CompareSwap if old == compare => operand,
            AtomicOp::CompareSwap => return None,
            AtomicOp::Min => old.min(operand),
            AtomicOp::Max => old.max(operand),
            AtomicOp::MinSigned if signed(operand) < signed(old) => operand,
            AtomicOp::MaxSigned if signed(operand) > signed(old) => operand,
            AtomicOp::MinSigned | AtomicOp::MaxSigned => old,
            AtomicOp::Get => return None,
            AtomicOp::Multiply => old.wrapping_mul(operand) & mask,
            AtomicOp::AddFloat | AtomicOp::MultiplyFloat | AtomicOp::MinFloat | AtomicOp::MaxFloat => {
                if len_bytes == size_of::<u32>() {
                    let float = |bits: u64| f32::from_bits(bits as u32);
                    u64::from(self.of_floats(float(old), float(operand)).to_bits())
                } else {
                    self.of_floats(f64::from_bits(old), f64::from_bits(operand)).to_bits()
                }
            }
        };
        Some(new)
    }

    /// The result of a floating-point operation.
    #[inline]
    fn of_floats<T: PartialOrd + core::ops::Add<Output = T> + core::ops::Mul<Output = T>>(
        self,
        old: T,
        operand: T,
    ) -> T {
        match self {
            AtomicOp::AddFloat => old + operand,
            AtomicOp::MultiplyFloat => old * operand,
            AtomicOp::MinFloat if old < operand => old,
            AtomicOp::MaxFloat if old > operand => old,
            _ => operand,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rank;
    use alloc::vec::Vec;

    fn piece(kind: PieceKind, offset_bytes: u32, len_bytes: u16) -> PieceHead {
        PieceHead { page: PageId::of_segment(Rank(1), 2), offset_bytes, len_bytes, kind, op: AtomicOp::Add }
    }

    #[test]
    fn a_request_has_its_payloads_in_order() {
        let pieces = [piece(PieceKind::Put, 3, 2), piece(PieceKind::Get, 0, 9), piece(PieceKind::Put, 9, 1)];
        let head = RequestHead { tag: TAG_REQUEST, is_direct: 0, pieces: 3, id: 7 };
        let mut bytes = head.as_bytes().to_vec();
        pieces.iter().for_each(|piece| bytes.extend(piece.as_bytes()));
        let payload = bytes.len();
        bytes.extend(*b"abc");
        let (read, found) = read_request(&bytes).expect("it is one");
        assert_eq!(read, head);
        assert_eq!(found, [(pieces[0], payload), (pieces[1], payload + 2), (pieces[2], payload + 2)]);
        for end in 0..bytes.len() {
            assert!(read_request(&bytes[..end]).is_none());
        }
        bytes.push(0);
        assert!(read_request(&bytes).is_none(), "too long");
    }

    #[test]
    fn an_answer_has_a_status_for_each_piece() {
        let head = AnswerHead { tag: TAG_ANSWER, cause: 0, pieces: 2, id: 7 };
        let bytes: Vec<u8> = [head.as_bytes(), &[1, 0], b"abc"].concat();
        let (read, statuses, payload) = read_answer(&bytes).expect("it is one");
        assert_eq!((read, &statuses[..], payload), (head, &[Status::Done, Status::Refused][..], &b"abc"[..]));
        let wrong: Vec<u8> = [head.as_bytes(), &[1, 4], b"abc"].concat();
        assert!(read_answer(&wrong).is_none() && read_answer(&bytes[..9]).is_none());
    }

    #[test]
    fn bytes_outside_a_page_and_crooked_numbers_are_refused() {
        assert!(piece(PieceKind::Get, 4090, 6).is_inside(4096) && !piece(PieceKind::Get, 4090, 7).is_inside(4096));
        assert!(!piece(PieceKind::Put, 0, 0).is_inside(4096) && !piece(PieceKind::Get, u32::MAX, 9).is_inside(4096));
        let number = |offset, len| piece(PieceKind::Atomic, offset, len).is_inside(4096);
        assert!(number(8, 8) && number(4, 4) && !number(4, 8) && !number(8, 2));
    }

    #[test]
    fn atomic_operations_do_what_they_are_called() {
        let minus = |number: i32| u64::from(number as u32);
        let apply = |op: AtomicOp, old, operand, len| op.apply(old, Operands { operand, compare: 5 }, len);
        assert_eq!(apply(AtomicOp::Add, u64::from(u32::MAX), 2, 4), Some(1));
        assert_eq!(apply(AtomicOp::Add, u64::MAX, 2, 8), Some(1));
        assert_eq!(apply(AtomicOp::CompareSwap, 5, 9, 8), Some(9));
        assert_eq!(apply(AtomicOp::CompareSwap, 6, 9, 8), None);
        assert_eq!(apply(AtomicOp::Min, 3, minus(-1), 4), Some(3));
        assert_eq!(apply(AtomicOp::MinSigned, 3, minus(-1), 4), Some(minus(-1)));
        assert_eq!(apply(AtomicOp::Max, 3, minus(-1), 4), Some(minus(-1)));
        assert_eq!(apply(AtomicOp::MaxSigned, 3, minus(-1), 4), Some(3));
        assert_eq!(apply(AtomicOp::MinSigned, u64::MAX, 1, 8), Some(u64::MAX));
        let bits = [AtomicOp::And, AtomicOp::Or, AtomicOp::Xor, AtomicOp::Swap].map(|op| apply(op, 0b1100, 0b1010, 8));
        assert_eq!(bits, [Some(0b1000), Some(0b1110), Some(0b0110), Some(0b1010)]);
        assert_eq!(apply(AtomicOp::Multiply, minus(-3), minus(5), 4), Some(minus(-15)));
        assert_eq!(apply(AtomicOp::Multiply, u64::MAX, 7, 8), Some(-7_i64 as u64));
        assert_eq!(apply(AtomicOp::Get, 5, 7, 8), None);
        assert!(AtomicOp::Get.is_read() && !AtomicOp::CompareSwap.is_read());
    }

    #[test]
    fn atomic_operations_know_floating_point_numbers_of_both_lengths() {
        let results: [(AtomicOp, f64, f64, f64); 6] = [
            (AtomicOp::AddFloat, -1.25, 2.5, 1.25),
            (AtomicOp::MultiplyFloat, -1.25, 2.5, -3.125),
            (AtomicOp::MinFloat, -1.25, 2.5, -1.25),
            (AtomicOp::MinFloat, 2.5, -1.25, -1.25),
            (AtomicOp::MaxFloat, -1.25, 2.5, 2.5),
            (AtomicOp::MaxFloat, 2.5, -1.25, 2.5),
        ];
        for (op, old, operand, new) in results {
            let single = |number: f64| u64::from((number as f32).to_bits());
            let of =
                |bits: fn(f64) -> u64, len| op.apply(bits(old), Operands { operand: bits(operand), compare: 0 }, len);
            assert_eq!((of(f64::to_bits, 8), of(single, 4)), (Some(new.to_bits()), Some(single(new))), "{op:?}");
        }
    }
}

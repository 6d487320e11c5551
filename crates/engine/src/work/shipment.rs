//! Requests to other ranks for bytes of their pages, and the results of such requests.

use crate::request::{Atomic, Copy, Part};
use vgasnet_memory::Piece;
use vgasnet_protocol::Rank;
use vgasnet_protocol::byte_message::{AtomicOp, PieceHead, PieceKind};
use zerocopy::IntoBytes;

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

/// Source of bytes that a request writes: the memory of a part, or the part itself.
#[derive(Debug)]
pub(crate) struct Source(SourceBytes);

#[derive(Debug)]
enum SourceBytes {
    Memory(*const u8, usize),
    Repeated(u8, usize),
    Operands([u8; 16]),
}

// SAFETY: the pointers are to memory of parts, which belongs to them until they are done, in any thread.
unsafe impl Send for Source {}

impl Shipment {
    /// A request with these heads, which writes the bytes of `payload`.
    pub(crate) fn new(to: Rank, heads: Vec<u8>, payload: Vec<Source>) -> Shipment {
        Shipment { to, heads, payload }
    }

    /// Collects the bytes that the request writes. Called without the engine's lock, since they may be the client's.
    pub fn collect(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for source in &self.payload {
            match &source.0 {
                SourceBytes::Memory(from, len_bytes) => {
                    // SAFETY: this lies in the part's memory, which does not change until the part is done.
                    bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(*from, *len_bytes) });
                }
                SourceBytes::Repeated(byte, len_bytes) => bytes.resize(bytes.len() + len_bytes, *byte),
                SourceBytes::Operands(operands) => bytes.extend_from_slice(operands),
            }
        }
        bytes
    }
}

/// The head of a piece with some bytes of a part, and the source of the bytes that it writes.
pub(crate) fn describe(part: &Part, start_bytes: usize, len_bytes: usize) -> (PieceHead, Option<Source>) {
    debug_assert!(start_bytes + len_bytes <= part.piece.len_bytes, "the bytes are of the part");
    let (kind, op, source) = match &part.copy {
        Copy::Get(_) | Copy::ReadAhead => (PieceKind::Get, AtomicOp::Add, None),
        Copy::Put(from) => {
            let source = SourceBytes::Memory(from.wrapping_add(start_bytes), len_bytes);
            (PieceKind::Put, AtomicOp::Add, Some(source))
        }
        Copy::PutOwned(from, _) => {
            let source = SourceBytes::Memory(from[start_bytes..].as_ptr(), len_bytes);
            (PieceKind::Put, AtomicOp::Add, Some(source))
        }
        Copy::Set(byte) => (PieceKind::Put, AtomicOp::Add, Some(SourceBytes::Repeated(*byte, len_bytes))),
        Copy::Atomic(Atomic { op, operands, .. }) => {
            let operands = operands.as_bytes().try_into().expect("two numbers");
            (PieceKind::Atomic, *op, Some(SourceBytes::Operands(operands)))
        }
        Copy::MakeResident(_) | Copy::Pin(_) => unreachable!("only transfers are shipped"),
    };
    let Piece { page, offset_bytes, .. } = part.piece;
    debug_assert!(len_bytes <= usize::from(u16::MAX), "a piece has at most so many bytes");
    let (offset_bytes, len_bytes) = ((offset_bytes + start_bytes) as u32, len_bytes as u16);
    (PieceHead { page, offset_bytes, len_bytes, kind, op }, source.map(Source))
}

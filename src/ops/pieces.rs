//! Gets and puts on pages by name, for shared files, which have no addresses. They may fail.

use super::{Operation, Ops};
use std::sync::atomic::Ordering;
use vgasnet_engine::request::{Atomic, Completion, CompletionId, Copy, Part};
use vgasnet_memory::Piece;
use vgasnet_protocol::byte_message::{AtomicOp, Operands};
use vgasnet_protocol::coherence::Cause;
use vgasnet_stats::{self as stats, Row};

impl Ops {
    /// Performs a get or put, and returns when it is complete.
    ///
    /// # Errors
    /// The cause of the first failure.
    ///
    /// # Safety
    /// The client's memory is valid for all pieces, and outside the own segment.
    pub unsafe fn transfer_pieces(
        &self,
        operation: &Operation,
        pieces: impl Iterator<Item = Piece>,
    ) -> Result<(), Cause> {
        let completion = self.begin_pieces();
        // SAFETY: the client's memory is valid, and this function waits for the completion.
        let missing = unsafe { self.missing_pieces(operation, pieces, completion) };
        self.driver.submit_and_wait(missing);
        self.end_pieces(completion)
    }

    /// Begins a completion for gets and puts of pieces.
    pub fn begin_pieces(&self) -> CompletionId {
        let completion = self.completions().begin();
        self.completions().value(completion).store(0, Ordering::Relaxed);
        completion
    }

    /// Starts a get or put counted in `completion`. Returns whether any piece missed.
    ///
    /// # Safety
    /// The client's memory is valid for all pieces until nothing is pending in the completion, and outside the own
    /// segment.
    pub unsafe fn start_pieces(
        &self,
        operation: &Operation,
        pieces: impl Iterator<Item = Piece>,
        completion: CompletionId,
    ) -> bool {
        // SAFETY: the client's memory is valid for all pieces until nothing is pending in the completion, and outside
        // the own segment.
        let mut missing = unsafe { self.missing_pieces(operation, pieces, completion) };
        let has_missed = !missing.is_empty();
        self.submit_missing(&mut missing);
        has_missed
    }

    /// Waits for a completion of pieces and ends it.
    ///
    /// # Errors
    /// The cause of a failure.
    pub fn end_pieces(&self, completion: CompletionId) -> Result<(), Cause> {
        self.driver.wait(completion);
        let failure = self.completions().failure(completion);
        self.completions().end(completion);
        failure.map_or(Ok(()), |cause| Err(Cause(cause)))
    }

    /// Marks the block of a piece, an aligned number of 4 bytes, as dirty so that it is written back. Its bytes do not
    /// change, even with concurrent writers.
    ///
    /// # Errors
    /// The page could not be read, or no page may be written.
    pub fn make_dirty(&self, piece: Piece) -> Result<(), Cause> {
        let (op, operands) = (AtomicOp::Or, Operands { operand: 0, compare: 0 });
        let copy = Copy::Atomic(Atomic { op, operands, old: std::ptr::null_mut() });
        let completion = self.begin_pieces();
        // SAFETY: `old` is null.
        if !unsafe { self.hits.hit(&piece, &copy) } {
            self.submit_one(piece, copy, completion);
        }
        self.end_pieces(completion)
    }

    /// Whether a range overlaps the own segment.
    pub fn is_in_own_segment(&self, address: usize, len_bytes: usize) -> bool {
        self.space.own_segment().overlaps(address, len_bytes)
    }

    /// Performs the hits. Returns the missing parts, which count in `completion`; of very many, only the last ones.
    /// After a failure no more parts are started.
    ///
    /// # Safety
    /// As [`Ops::start_pieces`].
    unsafe fn missing_pieces(
        &self,
        operation: &Operation,
        pieces: impl Iterator<Item = Piece>,
        completion: CompletionId,
    ) -> Vec<Part> {
        let mut missing = Vec::new();
        for piece in pieces {
            let copy = operation.copy(&piece);
            // SAFETY: the client's memory is valid for this piece of it.
            let hits = unsafe { self.hits.hit(&piece, &copy) };
            stats::add(Row::FileHits, u64::from(hits));
            if !hits {
                // With very many pieces, earlier ones may have completed already.
                if self.completions().failure(completion).is_some() {
                    break;
                }
                self.add_missing(&mut missing, Part { piece, copy, completion: Completion::Counted(completion) });
            }
        }
        missing
    }
}

//! Reductions. Operands combine in rank order: the function need not be commutative, and the results do not depend on
//! the root.

use super::tree::{children, parent};
use super::{BufferOffset, LocalStep, Round, SEGMENT_BYTES, Shape, TAG_RESULT, Transfer, copy, segment};

/// Alignment for every element type.
const ALIGNMENT_BYTES: usize = 16;

/// Number of operands a large vector is divided into, within the limits below.
const OPERANDS: usize = 32;

/// Maximum bytes of an operand, unless one element is larger. Each rank buffers one for itself and one for each child.
const OPERAND_BYTES_MAX: usize = 256 << 10;

impl Shape {
    /// Bytes of an operand: the whole elements in half a segment, more for large vectors, and at least one element.
    fn operand_bytes(&self) -> usize {
        debug_assert!(self.block_bytes % self.element_bytes == 0, "a block has whole elements");
        let most_bytes = (self.block_bytes / OPERANDS).clamp(SEGMENT_BYTES / 2, OPERAND_BYTES_MAX);
        let elements = (most_bytes / self.element_bytes).max(1);
        (elements * self.element_bytes).min(self.block_bytes)
    }

    fn operands(&self) -> u32 {
        self.block_bytes.div_ceil(self.operand_bytes()) as u32
    }

    /// A scratch place for an operand: slot 0 has the results, the following slots the children's operands.
    fn slot(&self, at: usize) -> BufferOffset {
        BufferOffset::scratch(at * self.operand_bytes().next_multiple_of(ALIGNMENT_BYTES))
    }

    pub(super) fn reduce_scratch_bytes(&self) -> usize {
        if self.block_bytes == 0 {
            return 0;
        }
        self.slot(1 + children(self.me, self.ranks).count()).offset_bytes
    }

    /// Each round sends the previous round's results. Only rank 0 does not, if it is the root.
    pub(super) fn reduce_rounds(&self) -> u32 {
        let sends_on = self.me != 0 || self.root != 0;
        self.operands() + u32::from(sends_on)
    }

    pub(super) fn reduce_round(&self, at: u32) -> Round {
        debug_assert!(at < self.reduce_rounds(), "round {at} is one of the reduction's");
        let mut round = Round::default();
        let part = |at| segment(at, self.operand_bytes(), self.block_bytes);
        let result = self.slot(0);
        if let Some(before) = at.checked_sub(1) {
            let (start, len_bytes) = part(before);
            let sent = |peer, tag| Transfer { peer, tag, place: result, len_bytes };
            match parent(self.me) {
                Some(above) => round.sends.push(sent(above, before)),
                None if self.root != 0 => round.sends.push(sent(self.root, TAG_RESULT | before)),
                None => {}
            }
            if self.me == self.root && self.me != 0 {
                let place = BufferOffset::destination(start);
                round.receives.push(Transfer { peer: 0, tag: TAG_RESULT | before, place, len_bytes });
            }
        }
        if at < self.operands() {
            let (start, len_bytes) = part(at);
            round.local_steps.push(copy(BufferOffset::source(start), result, len_bytes));
            for (child, peer) in children(self.me, self.ranks).enumerate() {
                let operand = self.slot(1 + child);
                round.receives.push(Transfer { peer, tag: at, place: operand, len_bytes });
                round.local_steps.push(LocalStep::Combine { into: result, with: operand, len_bytes });
            }
            if self.me == 0 && self.root == 0 {
                round.local_steps.push(copy(result, BufferOffset::destination(start), len_bytes));
            }
        }
        round
    }

    /// The same collective rooted at rank 0, the rank that reduces for all.
    fn by_rank_0(&self) -> Shape {
        Shape { root: 0, ..*self }
    }

    pub(super) fn reduce_to_all_rounds(&self) -> u32 {
        let shape = self.by_rank_0();
        shape.reduce_rounds() + shape.broadcast_rounds()
    }

    pub(super) fn reduce_to_all_round(&self, at: u32) -> Round {
        let shape = self.by_rank_0();
        match at.checked_sub(shape.reduce_rounds()) {
            None => shape.reduce_round(at),
            Some(at) => shape.broadcast_round(at),
        }
    }
}

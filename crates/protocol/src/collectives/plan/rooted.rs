//! Broadcast, scatter and gather.

use super::tree::{children, parent, subtree};
use super::{
    BufferOffset, CollectiveKind, PEERS_AT_ONCE, Round, SEGMENT_BYTES, SEGMENT_BYTES_MAX, SEGMENTS, Shape, Transfer,
    copy, segment,
};
use alloc::vec::Vec;

impl Shape {
    /// Bytes of a segment: large for large blocks, since each costs messages in both directions.
    fn segment_bytes(&self) -> usize {
        (self.block_bytes / SEGMENTS).next_multiple_of(SEGMENT_BYTES).clamp(SEGMENT_BYTES, SEGMENT_BYTES_MAX)
    }

    fn segments(&self) -> u32 {
        self.block_bytes.div_ceil(self.segment_bytes()) as u32
    }

    fn has_children(&self) -> bool {
        subtree(self.count(), self.ranks) > 1
    }

    /// A rank between the root and its own children passes a segment on while it receives the next one.
    pub(super) fn broadcast_rounds(&self) -> u32 {
        let is_between = self.me != self.root && self.has_children();
        self.segments() + u32::from(is_between)
    }

    pub(super) fn broadcast_round(&self, at: u32) -> Round {
        debug_assert!(at < self.broadcast_rounds(), "round {at} is one of the broadcast's");
        let is_root = self.me == self.root;
        let mut round = Round::default();
        // A reduction's result is in the root's destination as well.
        let has_source = is_root && self.kind == CollectiveKind::Broadcast;
        let from = if has_source { BufferOffset::source(0) } else { BufferOffset::destination(0) };
        let transfer = |peer, tag| {
            let (start, len_bytes) = segment(tag, self.segment_bytes(), self.block_bytes);
            Transfer { peer, tag, place: from.after(start), len_bytes }
        };
        let passed_on = if is_root { Some(at) } else { at.checked_sub(1) };
        if let Some(tag) = passed_on {
            let below = children(self.count(), self.ranks).rev();
            round.sends.extend(below.map(|count| transfer(self.at_count(count), tag)));
        }
        if let Some(above) = parent(self.count()).filter(|_| at < self.segments()) {
            round.receives.push(transfer(self.at_count(above), at));
        }
        // Last, since ranks below wait for the segments.
        if has_source && at + 1 == self.segments() {
            round.local_steps.push(copy(BufferOffset::source(0), BufferOffset::destination(0), self.block_bytes));
        }
        round
    }

    /// A rank with children keeps the blocks of its subtree.
    pub(super) fn rooted_scratch_bytes(&self) -> usize {
        if self.is_small() && self.has_children() { self.blocks(subtree(self.count(), self.ranks)) } else { 0 }
    }

    /// The rounds of a scatter or gather.
    pub(super) fn rooted_rounds(&self) -> u32 {
        if self.is_small() {
            1 + u32::from(self.has_children())
        } else if self.me == self.root {
            self.exchange_rounds()
        } else {
            1
        }
    }

    /// The root's transfers of a round of direct scatter or gather.
    fn straight(&self, at: u32, place: fn(usize) -> BufferOffset) -> Vec<Transfer> {
        debug_assert_eq!(self.me, self.root, "the root sends to all, or receives from them");
        let first = 1 + at * PEERS_AT_ONCE;
        let peers = (first..self.ranks.min(first + PEERS_AT_ONCE)).map(|count| self.at_count(count));
        peers.map(|peer| self.block(peer, place(self.blocks(peer)))).collect()
    }

    fn block(&self, peer: u32, place: BufferOffset) -> Transfer {
        Transfer { peer, tag: 0, place, len_bytes: self.block_bytes }
    }

    /// All blocks of a count's subtree; they are in scratch in the order of counts.
    fn blocks_below(&self, count: u32) -> Transfer {
        debug_assert!(count > self.count(), "the ranks below have higher counts");
        let place = BufferOffset::scratch(self.blocks(count - self.count()));
        let len_bytes = self.blocks(subtree(count, self.ranks));
        Transfer { peer: self.at_count(count), tag: 0, place, len_bytes }
    }

    fn with_parent(&self, place: BufferOffset) -> Option<Transfer> {
        let above = parent(self.count())?;
        let len_bytes = self.blocks(subtree(self.count(), self.ranks));
        Some(Transfer { peer: self.at_count(above), tag: 0, place, len_bytes })
    }

    pub(super) fn scatter_round(&self, at: u32) -> Round {
        let mut round = Round::default();
        let is_root = self.me == self.root;
        let own = BufferOffset::source(self.blocks(self.me));
        if !self.is_small() {
            if is_root {
                round.sends = self.straight(at, BufferOffset::source);
            } else {
                round.receives.push(self.block(self.root, BufferOffset::destination(0)));
            }
            if is_root && at == 0 {
                round.local_steps.push(copy(own, BufferOffset::destination(0), self.block_bytes));
            }
        } else if !self.has_children() {
            round.receives.extend(self.with_parent(BufferOffset::destination(0)));
            if is_root {
                round.local_steps.push(copy(own, BufferOffset::destination(0), self.block_bytes));
            }
        } else if at == 0 {
            round.receives.extend(self.with_parent(BufferOffset::scratch(0)));
            if is_root {
                let tail = self.blocks(self.ranks - self.root);
                round.local_steps.push(copy(own, BufferOffset::scratch(0), tail));
                round.local_steps.push(copy(
                    BufferOffset::source(0),
                    BufferOffset::scratch(tail),
                    self.blocks(self.root),
                ));
            }
        } else {
            round.sends.extend(children(self.count(), self.ranks).rev().map(|count| self.blocks_below(count)));
            round.local_steps.push(copy(BufferOffset::scratch(0), BufferOffset::destination(0), self.block_bytes));
        }
        round
    }

    pub(super) fn gather_round(&self, at: u32) -> Round {
        let mut round = Round::default();
        let is_root = self.me == self.root;
        let own = BufferOffset::destination(self.blocks(self.me));
        if !self.is_small() {
            if is_root {
                round.receives = self.straight(at, BufferOffset::destination);
            } else {
                round.sends.push(self.block(self.root, BufferOffset::source(0)));
            }
            if is_root && at == 0 {
                round.local_steps.push(copy(BufferOffset::source(0), own, self.block_bytes));
            }
        } else if !self.has_children() {
            round.sends.extend(self.with_parent(BufferOffset::source(0)));
            if is_root {
                round.local_steps.push(copy(BufferOffset::source(0), own, self.block_bytes));
            }
        } else if at == 0 {
            round.receives.extend(children(self.count(), self.ranks).map(|count| self.blocks_below(count)));
            round.local_steps.push(copy(BufferOffset::source(0), BufferOffset::scratch(0), self.block_bytes));
        } else {
            round.sends.extend(self.with_parent(BufferOffset::scratch(0)));
            if is_root {
                let tail = self.blocks(self.ranks - self.root);
                round.local_steps.push(copy(BufferOffset::scratch(0), own, tail));
                round.local_steps.push(copy(
                    BufferOffset::scratch(tail),
                    BufferOffset::destination(0),
                    self.blocks(self.root),
                ));
            }
        }
        round
    }
}

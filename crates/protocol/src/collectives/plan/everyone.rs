//! Gather_all and exchange.

use super::tree::ceil_log2;
use super::{BufferOffset, PEERS_AT_ONCE, Round, Shape, Transfer, copy};

impl Shape {
    pub(super) fn gather_all_scratch_bytes(&self) -> usize {
        if self.is_small() { self.blocks(self.ranks) } else { 0 }
    }

    /// The first round puts this rank's own block in place.
    pub(super) fn gather_all_rounds(&self) -> u32 {
        if self.is_small() { 1 + ceil_log2(self.ranks) } else { self.ranks }
    }

    pub(super) fn gather_all_round(&self, at: u32) -> Round {
        debug_assert!(at < self.gather_all_rounds(), "round {at} is one of {}", self.gather_all_rounds());
        if self.is_small() { self.bruck_round(at) } else { self.ring_round(at) }
    }

    /// Bruck's algorithm: scratch has the blocks of this rank and the following ones, doubling each round.
    fn bruck_round(&self, at: u32) -> Round {
        let mut round = Round::default();
        if at == 0 {
            round.local_steps.push(copy(BufferOffset::source(0), BufferOffset::scratch(0), self.block_bytes));
        } else {
            let known = 1 << (at - 1);
            debug_assert!(known < self.ranks, "the blocks of some ranks are missing");
            let len_bytes = self.blocks(known.min(self.ranks - known));
            let transfer = |peer, place| Transfer { peer, tag: at, place, len_bytes };
            round.sends.push(transfer(self.further(self.ranks - known), BufferOffset::scratch(0)));
            round.receives.push(transfer(self.further(known), BufferOffset::scratch(self.blocks(known))));
        }
        if at + 1 == self.gather_all_rounds() {
            let tail = self.blocks(self.ranks - self.me);
            round.local_steps.push(copy(
                BufferOffset::scratch(0),
                BufferOffset::destination(self.blocks(self.me)),
                tail,
            ));
            round.local_steps.push(copy(
                BufferOffset::scratch(tail),
                BufferOffset::destination(0),
                self.blocks(self.me),
            ));
        }
        round
    }

    /// Each rank passes the block received in the previous round to the next rank.
    fn ring_round(&self, at: u32) -> Round {
        debug_assert!(at < self.ranks, "a block goes around the ring once");
        let mut round = Round::default();
        let transfer = |peer, block: u32| Transfer {
            peer,
            tag: at,
            place: BufferOffset::destination(self.blocks(block)),
            len_bytes: self.block_bytes,
        };
        if at == 0 {
            round.local_steps.push(copy(
                BufferOffset::source(0),
                BufferOffset::destination(self.blocks(self.me)),
                self.block_bytes,
            ));
        } else {
            round.sends.push(transfer(self.further(1), self.further(self.ranks - (at - 1))));
            round.receives.push(transfer(self.further(self.ranks - 1), self.further(self.ranks - at)));
        }
        round
    }

    pub(super) fn exchange_rounds(&self) -> u32 {
        (self.ranks - 1).div_ceil(PEERS_AT_ONCE).max(1)
    }

    /// Each rank sends to the ranks at some distances after it, and receives from the ranks at the same distances
    /// before it.
    pub(super) fn exchange_round(&self, at: u32) -> Round {
        let mut round = Round::default();
        let block = |peer, place: fn(usize) -> BufferOffset| Transfer {
            peer,
            tag: 0,
            place: place(self.blocks(peer)),
            len_bytes: self.block_bytes,
        };
        let first = 1 + at * PEERS_AT_ONCE;
        debug_assert!(first < self.ranks.max(2), "some rank has yet to exchange its block");
        for distance in first..self.ranks.min(first + PEERS_AT_ONCE) {
            round.sends.push(block(self.further(distance), BufferOffset::source));
            round.receives.push(block(self.further(self.ranks - distance), BufferOffset::destination));
        }
        if at == 0 {
            let own = self.blocks(self.me);
            round.local_steps.push(copy(BufferOffset::source(own), BufferOffset::destination(own), self.block_bytes));
        }
        round
    }
}

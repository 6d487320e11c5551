//! Parts that wait for a page, and page transfers in flight, under the numbers by which they are reported back.

use crate::request::Part;
use slab::Slab;
use vgasnet_conduit::Token;
use vgasnet_protocol::coherence::{Outgoing, Waiter};

/// Parts waiting for a page, and page transfers in flight.
#[derive(Default)]
pub(super) struct Waiting {
    /// A [`Waiter`] is an index into it.
    parts: Slab<Part>,
    transfers: Slab<Outgoing>,
}

impl Waiting {
    /// Makes a part wait. The protocol reports it by the returned number.
    pub(super) fn add(&mut self, part: Part) -> Waiter {
        Waiter(self.parts.insert(part) as u32)
    }

    /// Takes a part that no longer waits.
    pub(super) fn take(&mut self, waiter: Waiter) -> Part {
        self.parts.remove(waiter.0 as usize)
    }

    /// Takes parts that no longer wait.
    pub(super) fn take_all(&mut self, waiters: &[Waiter]) -> Vec<Part> {
        waiters.iter().map(|waiter| self.take(*waiter)).collect()
    }

    /// Number of waiting parts.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Notes a page transfer. The conduit reports its end by the returned token.
    pub(super) fn begin_transfer(&mut self, outgoing: Outgoing) -> Token {
        // Tokens of pages are even. The storage server's are odd.
        Token(self.transfers.insert(outgoing) as u64 * 2)
    }

    /// Takes a page transfer that has ended.
    pub(super) fn end_transfer(&mut self, token: Token) -> Outgoing {
        debug_assert!(token.0 % 2 == 0, "{token:?} is the storage server's");
        self.transfers.remove(token.0 as usize / 2)
    }

    /// Number of page transfers in flight.
    pub(super) fn transfers(&self) -> usize {
        self.transfers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Completion, Copy, ServedId};
    use vgasnet_memory::Piece;
    use vgasnet_protocol::Rank;
    use vgasnet_protocol::coherence::PageId;

    fn part(index: u32) -> Part {
        Part {
            piece: Piece::of_page(PageId::of_segment(Rank(0), index)),
            copy: Copy::Set(0),
            completion: Completion::Served(ServedId { request: 0, piece: 0 }),
        }
    }

    #[test]
    fn each_waiter_names_its_own_part() {
        let mut waiting = Waiting::default();
        let waiters: Vec<Waiter> = (0..3).map(|index| waiting.add(part(index))).collect();
        assert_eq!(waiting.take(waiters[1]).piece.page.index, 1);
        let pages: Vec<u32> =
            waiting.take_all(&[waiters[2], waiters[0]]).iter().map(|part| part.piece.page.index).collect();
        assert_eq!(pages, [2, 0]);
        assert_eq!(waiting.parts(), 0);
    }
}

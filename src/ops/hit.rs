//! Hits: pages that are open in this rank's pool, or in the pool of a neighbour.
//!
//! The hit path is [`Ops::hit`]: no lock, no message, no system call.

use super::Ops;
use crate::memory::{Piece, Pinned, Slot};
use crate::request::Copy;
use crate::stats::{self, Row};
use vgasnet_protocol::coherence::{Access, PageId};

/// A page that is pinned in the memory of some rank of this host.
pub(super) struct PinnedPage {
    rank: usize,
    page: PageId,
    slot: Slot,
    /// It was fetched ahead, and this is its first use.
    first_use: bool,
    pub(super) frame: *mut u8,
}

impl Ops {
    /// Does the copy of one piece, if its page is open in this rank's pool or in a neighbour's. Returns whether it did.
    ///
    /// # Safety
    /// The client's memory in `copy` is valid for the piece's length.
    #[inline]
    pub(super) unsafe fn hit(&self, piece: &Piece, copy: &Copy) -> bool {
        let own = self.space.rank.index();
        // SAFETY: the client's memory in `copy` is valid for the piece's length.
        unsafe { self.use_page(own, piece, copy) || self.hit_at_neighbour(piece, copy) }
    }

    /// Does the copy of one piece in a neighbour's pool: the home's, then any other's.
    ///
    /// # Safety
    /// The client's memory in `copy` is valid for the piece's length.
    unsafe fn hit_at_neighbour(&self, piece: &Piece, copy: &Copy) -> bool {
        let home = self.space.spaces.home(piece.page).index();
        // SAFETY: the client's memory in `copy` is valid for the piece's length, whichever rank has the page.
        let found = |rank: usize| unsafe { self.use_page(rank, piece, copy) };
        let is_elsewhere = home != self.space.rank.index();
        is_elsewhere && found(home) || self.neighbours.iter().any(|rank| *rank != home && found(*rank))
    }

    /// Does the copy of one piece in the pool of a rank of this host, if the page is open there.
    ///
    /// # Safety
    /// The client's memory in `copy` is valid for the piece's length.
    #[inline]
    unsafe fn use_page(&self, rank: usize, piece: &Piece, copy: &Copy) -> bool {
        let space = &self.space;
        let Some(memory) = &space.memories[rank] else { return false };
        let slot = space.slots.of(piece.page);
        let Some(Pinned { frame, ahead }) = memory.table.pin(slot, copy.access()) else { return false };
        memory.pool.touch(frame);
        // SAFETY: the page is pinned for the access that the copy needs, so it stays in that frame. The client's memory
        // in `copy` is valid for the piece's length.
        unsafe { copy.run(memory.pool.frame(frame), piece) };
        if stats::is_on() {
            self.count_hit(rank, piece, copy);
        }
        let first_use = ahead && memory.table.take_ahead(slot);
        if memory.table.unpin(slot) {
            self.driver.notify_unpinned_at(rank);
        }
        if first_use {
            self.driver.prefetch_after_use(piece.page);
        }
        true
    }

    #[cold]
    fn count_hit(&self, rank: usize, piece: &Piece, copy: &Copy) {
        let (bytes, row, elsewhere) = match copy.access() {
            Access::Read => (Row::GetBytes, Row::HitGets, Row::HitGetsNeighbour),
            Access::Write => (Row::PutBytes, Row::HitPuts, Row::HitPutsNeighbour),
        };
        stats::count(if rank == self.space.rank.index() { row } else { elsewhere });
        stats::add(bytes, piece.len_bytes as u64);
    }

    /// Pins a page in this rank's pool or in a neighbour's, if it is open there.
    pub(super) fn pin_anywhere(&self, page: PageId, access: Access) -> Option<PinnedPage> {
        let space = &self.space;
        let slot = space.slots.of(page);
        let own = space.rank.index();
        let ranks = [own, space.spaces.home(page).index()].into_iter().chain(self.neighbours.iter().copied());
        ranks.filter_map(|rank| Some((rank, space.memories[rank].as_ref()?))).find_map(|(rank, memory)| {
            let Pinned { frame, ahead } = memory.table.pin(slot, access)?;
            memory.pool.touch(frame);
            stats::count(Row::HitPins);
            let first_use = ahead && memory.table.take_ahead(slot);
            Some(PinnedPage { rank, page, slot, first_use, frame: memory.pool.frame(frame) })
        })
    }

    pub(super) fn unpin_page(&self, page: PinnedPage) {
        let memory = self.space.memories[page.rank].as_ref().expect("a page is pinned in memory that is mapped");
        if memory.table.unpin(page.slot) {
            self.driver.notify_unpinned_at(page.rank);
        }
        if page.first_use {
            self.driver.prefetch_after_use(page.page);
        }
    }
}

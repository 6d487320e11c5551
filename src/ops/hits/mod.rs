//! Hits: pages open in this rank's pool or in a neighbour's.
//!
//! The hit path is [`Hits::small`], and then [`Hits::hit`] by `Ops::resolve`: no lock, no message, no system call.

mod batch;

pub(super) use batch::Batch;

use super::{Operation, Remote};
use std::sync::Arc;
use vgasnet_engine::Driver;
use vgasnet_engine::request::Copy;
use vgasnet_memory::{AddressSpace, Piece, Pinned, Put, RankMemory};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Access, FrameId, PageId};
use vgasnet_stats::{self as stats, Row};
use vgasnet_sys::CopyGuard;

/// Gets and puts below this size take the shortest path to their page. Larger gets are faster with a pin, since without
/// one they copy twice.
pub(super) const SMALL_BYTES_MAX: usize = 256;

/// A page pinned in the memory of a rank of this host.
pub(super) struct PinnedPage {
    pub(super) rank: usize,
    page: PageId,
    in_frame: FrameId,
    /// It was read ahead, and this is its first use.
    first_use: bool,
    pub(super) frame: *mut u8,
}

/// The pages that operations use in place: those in the pools of this host.
pub(super) struct Hits {
    driver: Arc<Driver>,
    space: Arc<AddressSpace>,
    /// Pages in the pools of neighbours other than their home are used, too.
    cooperative: bool,
}

impl Hits {
    /// The pages of `driver`'s host.
    pub(super) fn new(driver: Arc<Driver>, cooperative: bool) -> Hits {
        let space = Arc::clone(driver.space());
        Hits { driver, space, cooperative }
    }

    /// Performs a get or put of less than [`SMALL_BYTES_MAX`] bytes within one recently used page. Returns whether it
    /// did; false if the client's memory is null or in the own segment, and for numbers of 4 and 8 bytes: callers have
    /// looked for them at the same place by the shortcut.
    ///
    /// # Safety
    /// The client's memory is valid for as many bytes, or null.
    #[inline(always)]
    pub(super) unsafe fn small(&self, operation: Operation, remote: Remote) -> bool {
        // SAFETY: the client's memory is valid for as many bytes, or null.
        unsafe {
            match (operation, remote.len_bytes) {
                (_, 0 | SMALL_BYTES_MAX..) | (Operation::Get(_), 4 | 8) => false,
                (Operation::Get(to), _) => self.read_small(to, remote),
                // The shortcut puts only aligned numbers.
                (_, len @ (4 | 8)) if remote.address % len == 0 => false,
                (Operation::Put(from) | Operation::PutNow(from), _) => self.write_small(from, remote),
                (Operation::GetWeighted(..) | Operation::Set(_), _) => false,
            }
        }
    }

    /// Gets a number of 4 or 8 bytes from a recently used page. Returns whether it did.
    ///
    /// # Safety
    /// The client's memory is valid for as many bytes, or null.
    #[inline(always)]
    pub(super) unsafe fn get_number(&self, to: *mut u8, Remote { rank, address, len_bytes }: Remote) -> bool {
        // SAFETY: the client's memory is valid for as many bytes, or null.
        unsafe {
            match len_bytes {
                8 => self.space.translations().get_to::<u64>(to, rank, address),
                4 => self.space.translations().get_to::<u32>(to, rank, address),
                _ => false,
            }
        }
    }

    /// Gets less than [`SMALL_BYTES_MAX`] bytes from one page without a pin.
    ///
    /// # Safety
    /// The client's memory is valid for as many bytes, or null.
    #[inline(never)]
    unsafe fn read_small(&self, to: *mut u8, Remote { rank, address, len_bytes }: Remote) -> bool {
        if to.is_null() || self.space.own_segment().overlaps(to.addr(), len_bytes) {
            return false;
        }
        // SAFETY: the client's memory is valid for as many bytes, not null and not in the own segment, as checked.
        unsafe { self.space.translations().read_range(rank, address, to, len_bytes) }
    }

    /// Puts less than [`SMALL_BYTES_MAX`] bytes into one page, and marks only their dirty blocks.
    ///
    /// # Safety
    /// The client's memory is valid for as many bytes, or null.
    #[inline(never)]
    unsafe fn write_small(&self, from: *const u8, Remote { rank, address, len_bytes }: Remote) -> bool {
        if from.is_null() || self.space.own_segment().overlaps(from.addr(), len_bytes) {
            return false;
        }
        // SAFETY: the client's memory is valid for as many bytes, not null and not in the own segment, as checked.
        let put = unsafe { self.space.translations().write_range(from, rank, address, len_bytes) };
        if put == Put::DoneLast {
            self.notify_unpinned();
        }
        put != Put::Missed
    }

    /// Performs the copy of one piece, if its page is open in this rank's pool or in a neighbour's. Returns whether it
    /// did.
    ///
    /// # Safety
    /// The client's memory in `copy` is valid for the piece's length.
    #[inline]
    pub(super) unsafe fn hit(&self, piece: &Piece, copy: &Copy) -> bool {
        let _copying = CopyGuard::begin();
        // Borrowed, not moved: a move would read in 16-byte words what was just written in words of other sizes, a
        // store-forwarding stall of nanoseconds.
        let pinned = self.pin(piece.page, copy.access());
        let Some(page) = &pinned else { return false };
        // SAFETY: the page is pinned for the access that the copy needs, so it stays in its frame. The client's memory in
        // `copy` is valid for the piece's length.
        unsafe { copy.run(self.memory_of(page), page.in_frame, piece) };
        self.end(page, piece, copy);
        true
    }

    /// As [`Hits::hit`] of several pieces: performs all or none. Returns the piece that missed.
    ///
    /// # Safety
    /// The client's memory in each copy is valid for its piece's length.
    pub(super) unsafe fn all(
        &self,
        pieces: impl Iterator<Item = Piece>,
        copy: impl Fn(&Piece) -> Copy,
    ) -> Option<Piece> {
        let _copying = CopyGuard::begin();
        let mut pinned: Vec<(PinnedPage, Piece, Copy)> = Vec::new();
        for piece in pieces {
            let copy = copy(&piece);
            let Some(page) = self.pin(piece.page, copy.access()) else {
                pinned.iter().for_each(|(page, ..)| self.unpin(page));
                return Some(piece);
            };
            pinned.push((page, piece, copy));
        }
        for (page, piece, copy) in pinned {
            // SAFETY: the page is pinned for the access that the copy needs, and the client's memory is valid for the
            // piece's length.
            unsafe { copy.run(self.memory_of(&page), page.in_frame, &piece) };
            self.end(&page, &piece, &copy);
        }
        None
    }

    /// Counts a hit, or marks its page, and unpins the page.
    #[inline]
    fn end(&self, page: &PinnedPage, piece: &Piece, copy: &Copy) {
        if stats::is_on() {
            self.count(page.rank, copy.access(), piece.len_bytes);
        } else if matches!(copy, Copy::Get(_) | Copy::Put(_)) && piece.len_bytes < SMALL_BYTES_MAX {
            self.mark_quick(page);
        }
        self.unpin(page);
    }

    /// Lets the next small access to the page skip the pin, or another mark. It is not counted.
    #[inline]
    pub(super) fn mark_quick(&self, page: &PinnedPage) {
        self.space.memories.get(page.rank).inspect(|memory| memory.table.mark_quick(page.in_frame));
    }

    /// Makes the engines of this host check whether awaited pages are still pinned.
    #[cold]
    pub(super) fn notify_unpinned(&self) {
        self.space.memories.iter().for_each(|(rank, _)| self.driver.notify_unpinned_at(rank));
    }

    #[cold]
    pub(super) fn count(&self, rank: usize, access: Access, len_bytes: usize) {
        let (bytes, row, elsewhere) = match access {
            Access::Read => (Row::GetBytes, Row::HitGets, Row::HitGetsNeighbour),
            Access::Write => (Row::PutBytes, Row::HitPuts, Row::HitPutsNeighbour),
        };
        stats::count(if rank == self.space.rank.index() { row } else { elsewhere });
        stats::add(bytes, len_bytes as u64);
    }

    /// Pins a page in this rank's pool or in a neighbour's, if it is open there.
    #[inline]
    pub(super) fn pin(&self, page: PageId, access: Access) -> Option<PinnedPage> {
        let (pool, frame) = self.space.translations().last(page);
        if let Some(pinned) = self.pin_in(pool, frame, page, access) {
            return Some(pinned);
        }
        let own = self.space.own_pool();
        let found = self.space.own.table.find(page).and_then(|frame| self.pin_in(own, frame, page, access));
        found.or_else(|| self.pin_elsewhere(page, access))
    }

    /// Pins a page in a neighbour's pool: the home's, or any one with cooperative caching.
    fn pin_elsewhere(&self, page: PageId, access: Access) -> Option<PinnedPage> {
        self.space.elsewhere(page).find_map(|(pool, frame)| self.pin_in(pool, frame, page, access))
    }

    /// Pins a page in a frame of a pool of this host, if it is open there, and remembers its place.
    #[inline]
    fn pin_in(&self, pool: usize, frame: FrameId, page: PageId, access: Access) -> Option<PinnedPage> {
        let (rank, RankMemory { table, pool: frames, .. }) = self.space.pool(pool);
        // Pages of files are always cached cooperatively.
        let is_elsewhere = |home: Rank| rank != home.index();
        if pool != self.space.own_pool() && !self.cooperative && page.space.segment().is_some_and(is_elsewhere) {
            return None;
        }
        let Pinned { frame, ahead } = self.space.pin_in(pool, frame, page, access)?;
        frames.touch(frame);
        let first_use = ahead && table.take_ahead(frame);
        Some(PinnedPage { rank, page, in_frame: frame, first_use, frame: frames.frame(frame) })
    }

    /// Marks bytes of a page pinned for writing as dirty.
    #[inline]
    pub(super) fn mark_dirty(&self, page: &PinnedPage, offset_bytes: usize, len_bytes: usize) {
        self.memory_of(page).blocks.mark(page.in_frame, offset_bytes, len_bytes);
    }

    #[inline]
    fn memory_of(&self, page: &PinnedPage) -> &RankMemory {
        self.space.memories.get(page.rank).expect("a page is pinned in memory that is mapped")
    }

    #[inline]
    pub(super) fn unpin(&self, page: &PinnedPage) {
        if self.memory_of(page).table.unpin(page.in_frame) {
            self.driver.notify_unpinned_at(page.rank);
        }
        if page.first_use {
            self.driver.prefetch_after_use(page.page);
        }
    }
}

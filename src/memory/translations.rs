//! Where pages were found last, and reads of a few bytes there that write nothing which others share; writes of a few bytes pin.
//!
//! A place is a pool of this host and an entry of its page table, in one word, so that threads fill and read places without
//! a lock. A place may be old: the entry tells whether the page is there. `shortcut.rs` has the same by value, for the
//! smallest gets and puts.

use super::page_table::{Bytes, Entry};
use super::scalar::Scalar;
use super::{DirtyBlocks, RankMemory, Segment, Segments};
use crate::sys::{CopyGuard, copy_bytes};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use vgasnet_protocol::coherence::{FrameId, PageId};

/// How many places are remembered, in bits. Of so many pages that follow each other hardly any share one, and no two that are
/// as many, or a multiple of that, apart: programs go through several arrays together, whose sizes are powers of two.
const PLACES_BITS: u32 = 14;

const PLACES: usize = 1 << PLACES_BITS;

// All bits of a page's address that [`at`] makes use of, so that a rank needs few bytes for each other one.
const _: () = assert!(2 * PLACES_BITS <= u32::BITS);

/// Bits of a place that name the pool, by its offset in the list of pools.
const POOL_BITS: u32 = u16::BITS;

/// The places of pages, by a part of the page's name.
#[derive(Debug)]
pub struct Translations {
    places: Box<[AtomicU64]>,
    pools: Box<[PoolPlace]>,
    /// By rank, the address of the segment's first page, counted in pages: the bits of it that [`at`] makes use of.
    segments: Box<[u32]>,
    refuses_puts: Box<AtomicBool>,
    reach: Reach,
}

/// A pool of this host. Its entries are numbered by their addresses.
#[derive(Clone, Copy, Debug)]
struct PoolPlace {
    /// Where its frames would begin if its entries were numbered from 0.
    frames: usize,
    first_entry: usize,
    blocks: DirtyBlocks,
}

/// What finds a number of 8 bytes or less: values that do not change, so that they can be kept where they are found soonest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    places: *const AtomicU64,
    refuses_puts: *const AtomicBool,
    pools: *const PoolPlace,
    /// Where a number of 8 bytes must not begin that lies outside the own segment, and how many such places there are.
    own: (usize, usize),
    /// The last offset in a page at which a number of 8 bytes ends there.
    number_max: usize,
    page_shift: u32,
}

/// Where bytes of a page were found last.
struct Found {
    entry: &'static Entry,
    frame: *mut u8,
    pool: &'static PoolPlace,
}

/// What became of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is not done.
    Missed,
    /// It is done.
    Done,
    /// It is done, and the engine of the pool that has the page waits to be notified of it.
    DoneLast,
}

impl Put {
    /// Unpins the page of a put that is done.
    #[inline(always)]
    pub(super) fn ended(entry: &Entry) -> Put {
        if entry.unpin() { Put::DoneLast } else { Put::Done }
    }
}

/// A number whose page is pinned for writing.
pub(super) struct PinnedNumber {
    pub(super) entry: &'static Entry,
    pub(super) at: *mut u8,
}

// SAFETY: the pointers are to what threads may read together: atomics, and what does not change.
unsafe impl Send for Translations {}
// SAFETY: as above.
unsafe impl Sync for Translations {}

impl PoolPlace {
    #[inline(always)]
    fn frame_of(&self, entry: &Entry) -> FrameId {
        FrameId((std::ptr::from_ref(entry).addr() / size_of::<Entry>() - self.first_entry) as u32)
    }
}

impl Translations {
    /// No places yet, of pages of these segments in these pools of the host.
    pub(super) fn new<'a>(
        pools: impl Iterator<Item = &'a RankMemory>,
        segments: &Segments,
        own: Segment,
        page_shift: u32,
    ) -> Translations {
        let pool_place = |RankMemory { table, pool, blocks, .. }: &RankMemory| {
            let first_entry = table.entries().as_ptr().expose_provenance() / size_of::<Entry>();
            let first_frame = pool.frame(FrameId(0)).expose_provenance();
            PoolPlace { frames: first_frame.wrapping_sub(first_entry << page_shift), first_entry, blocks: *blocks }
        };
        let pools: Box<[_]> = pools.map(pool_place).collect();
        // At first some pool and frame.
        let places: Box<[_]> =
            (0..PLACES).map(|_| AtomicU64::new((pools[0].first_entry as u64) << POOL_BITS)).collect();
        let before = size_of::<u64>() - 1;
        let own = (own.base.wrapping_sub(before), own.size_bytes + if own.size_bytes > 0 { before } else { 0 });
        let segments: Box<[_]> = segments.all().map(|segment| (segment.base >> page_shift) as u32).collect();
        let refuses_puts = Box::new(AtomicBool::new(false));
        let reach = Reach {
            places: places.as_ptr(),
            refuses_puts: &raw const *refuses_puts,
            pools: pools.as_ptr(),
            own,
            number_max: (1 << page_shift) - 1 - before,
            page_shift,
        };
        Translations { places, pools, segments, refuses_puts, reach }
    }

    /// Remembers that a page was found in a frame of the pool with this number on the host. Those of the first 2048 pools
    /// are remembered.
    ///
    /// # Safety
    /// The pool has the frame.
    #[inline]
    pub(super) unsafe fn note(&self, page: PageId, pool: usize, frame: FrameId) {
        let entry = (self.pools[pool].first_entry + frame.0 as usize) as u64;
        let Ok(pool) = u16::try_from(pool * size_of::<PoolPlace>()) else { return };
        let place = entry << POOL_BITS | u64::from(pool);
        let known = self.place(page);
        if known.load(Ordering::Relaxed) != place {
            known.store(place, Ordering::Relaxed);
        }
    }

    /// Where the page was found last, or another one that shares its place; at first some pool and frame.
    #[inline]
    pub fn last(&self, page: PageId) -> (usize, FrameId) {
        let place = self.place(page).load(Ordering::Relaxed);
        let pool = place as u16 as usize / size_of::<PoolPlace>();
        (pool, FrameId(((place >> POOL_BITS) as usize - self.pools[pool].first_entry) as u32))
    }

    /// Gets a number from `rank`'s segment to the client's memory at `to`, if its page is where it was found last, open for all
    /// of the read, and marked as one that is read so. Returns whether it did: not for null, nor for memory in the own segment.
    ///
    /// # Safety
    /// The client's memory is valid for the number, or null.
    #[inline(always)]
    pub unsafe fn get_to<T: Scalar>(&self, to: *mut u8, rank: u32, address: usize) -> bool {
        if rank >= self.ranks() || !self.reach.is_elsewhere(to) {
            return false;
        }
        // SAFETY: `self` has what its reach points to.
        let Some(value) = (unsafe { self.reach.get::<T>(rank, address) }) else { return false };
        // SAFETY: the client's memory is valid for the number, and was checked not to be null.
        unsafe { to.cast::<T>().write_unaligned(value) };
        true
    }

    /// Gets at most as many bytes as a page has, as [`Translations::get_to`] does a number. Where it returns `false`, the bytes at
    /// `to` mean nothing.
    ///
    /// # Safety
    /// `to` is valid for as many bytes, which are in no segment.
    #[inline]
    pub unsafe fn read_few(&self, rank: u32, address: usize, to: *mut u8, len_bytes: usize) -> bool {
        if rank >= self.ranks() {
            return false;
        }
        let bytes = Bytes { rank, address, offset_max: (1 << self.reach.page_shift) - len_bytes };
        // SAFETY: `self` has what its reach points to.
        let Found { entry, frame, .. } = unsafe { self.reach.find(rank, address) };
        let Some((begun, offset_bytes)) = entry.begin_read(&bytes) else { return false };
        let from = frame.wrapping_add(offset_bytes);
        let words_bytes = len_bytes & !(size_of::<u64>() - 1);
        // SAFETY: the bytes are inside the frame, which stays mapped, and `to` has room for them. The library accesses frames by
        // raw pointers only.
        unsafe {
            for at in (0..words_bytes).step_by(size_of::<u64>()) {
                to.add(at).cast::<u64>().write_unaligned(u64::read(from.add(at)));
            }
            for at in words_bytes..len_bytes {
                to.add(at).write(u8::read(from.add(at)));
            }
        }
        entry.was_open(begun)
    }

    /// Puts at most as many bytes as a page has, if their page is where it was found last, open for writing and marked as used, and
    /// puts need not go another way.
    ///
    /// # Safety
    /// `from` is valid for as many bytes, which are in no segment.
    #[inline]
    pub unsafe fn write_few(&self, from: *const u8, rank: u32, address: usize, len_bytes: usize) -> Put {
        if rank >= self.ranks() || self.refuses_puts.load(Ordering::Relaxed) {
            return Put::Missed;
        }
        let bytes = Bytes { rank, address, offset_max: (1 << self.reach.page_shift) - len_bytes };
        // SAFETY: `self` has what its reach points to.
        let Found { entry, frame, pool } = unsafe { self.reach.find(rank, address) };
        let _copying = CopyGuard::new();
        let Some(offset_bytes) = entry.pin_quickly(&bytes) else { return Put::Missed };
        pool.blocks.mark(pool.frame_of(entry), offset_bytes, len_bytes);
        // SAFETY: the bytes are inside the frame, which the pin leaves to their page, and outside the client's memory.
        unsafe { copy_bytes(from, frame.wrapping_add(offset_bytes), len_bytes) };
        Put::ended(entry)
    }

    /// Whether puts are to go another way from now on, where somebody looks at where they write.
    pub fn refuse_puts(&self, refused: bool) {
        self.refuses_puts.store(refused, Ordering::Relaxed);
    }

    /// What finds numbers.
    pub(super) fn reach(&self) -> Reach {
        self.reach
    }

    /// How many ranks there are.
    pub(super) fn ranks(&self) -> u32 {
        self.segments.len() as u32
    }

    #[inline(always)]
    fn place(&self, page: PageId) -> &AtomicU64 {
        // Other spaces than segments have no addresses, and use no places.
        let rank = page.space.number();
        let first = self.segments.get(rank as usize).copied().unwrap_or_default();
        &self.places[at(rank, first.wrapping_add(page.index) as usize)]
    }
}

impl Reach {
    /// Whether a number of up to 8 bytes may be here: not at null, nor in the own segment.
    #[inline(always)]
    pub(super) fn is_elsewhere(&self, client: *const u8) -> bool {
        !client.is_null() && client.addr().wrapping_sub(self.own.0) >= self.own.1
    }

    /// Reads a number as [`Translations::get_to`] does.
    ///
    /// # Safety
    /// There is what this points to.
    #[inline(always)]
    pub(super) unsafe fn get<T: Scalar>(&self, rank: u32, address: usize) -> Option<T> {
        // SAFETY: as the caller says.
        let Found { entry, frame, .. } = unsafe { self.find(rank, address) };
        let (begun, offset_bytes) = entry.begin_read(&self.bytes::<T>(rank, address))?;
        // SAFETY: the number is inside the frame, which stays mapped. The library accesses frames by raw pointers only.
        let value = unsafe { T::read(frame.wrapping_add(offset_bytes)) };
        entry.was_open(begun).then_some(value)
    }

    /// Pins the page of a number at a multiple of its size for writing, and marks its block as one that the backing file may lack, if the
    /// page is where it was found last, open for that and marked as used, and puts need not go another way.
    ///
    /// # Safety
    /// There is what this points to.
    #[inline(always)]
    pub(super) unsafe fn pin<T: Scalar>(&self, rank: u32, address: usize) -> Option<PinnedNumber> {
        // SAFETY: as the caller says.
        let are_refused = unsafe { &*self.refuses_puts }.load(Ordering::Relaxed);
        // A number that is not aligned might be in two blocks.
        if are_refused || address % size_of::<T>() != 0 {
            return None;
        }
        // SAFETY: as the caller says.
        let Found { entry, frame, pool } = unsafe { self.find(rank, address) };
        let offset_bytes = entry.pin_quickly(&self.bytes::<T>(rank, address))?;
        pool.blocks.mark_one(pool.frame_of(entry), offset_bytes);
        Some(PinnedNumber { entry, at: frame.wrapping_add(offset_bytes) })
    }

    /// The bytes of a number.
    #[inline(always)]
    fn bytes<T: Scalar>(&self, rank: u32, address: usize) -> Bytes {
        Bytes { rank, address, offset_max: self.number_max + size_of::<u64>() - size_of::<T>() }
    }

    /// Where the page of an address was found last, or another one that shares its place. The entry tells which.
    ///
    /// # Safety
    /// There is what this points to.
    #[inline(always)]
    unsafe fn find(&self, rank: u32, address: usize) -> Found {
        // SAFETY: there are `PLACES` places, a power of two.
        let place = unsafe { &*self.places.add(at(rank, address >> self.page_shift)) }.load(Ordering::Relaxed);
        let entry = (place >> POOL_BITS) as usize;
        // SAFETY: places have only pools and entries that there are.
        let pool = unsafe { &*self.pools.byte_add(place as u16 as usize) };
        let frame = std::ptr::with_exposed_provenance_mut(pool.frames.wrapping_add(entry << self.page_shift));
        let entry = std::ptr::with_exposed_provenance::<Entry>(entry * size_of::<Entry>());
        // SAFETY: the pool has the entry, which stays mapped until the process ends, and is only used as such. So it is not null,
        // which the compiler would look at otherwise.
        let entry = unsafe {
            std::hint::assert_unchecked(!entry.is_null());
            &*entry
        };
        Found { entry, frame, pool }
    }
}

/// Where the place of a page is remembered, by its address in pages, of which the lowest `2 * PLACES_BITS` bits count.
#[inline(always)]
fn at(rank: u32, page: usize) -> usize {
    (page ^ page >> PLACES_BITS).wrapping_add((rank as usize).wrapping_mul(0x9e37_79b1)) & (PLACES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_a_power_of_two_do_not_share_their_places() {
        let first = (1 << 46) / (64 << 10);
        for distance in (1..12).map(|power| PLACES << power >> 1) {
            assert!((0..PLACES).all(|page| at(3, first + page) != at(3, first + page + distance)), "{distance}");
        }
        assert!((0..PLACES).all(|page| at(3, (first + page) as u32 as usize) == at(3, first + page)));
        let next: std::collections::HashSet<_> = (0..PLACES).map(|page| at(1, first + page)).collect();
        assert_eq!(next.len(), PLACES);
    }
}

//! The last place of each page, and small reads there that write nothing shared; small writes pin.
//!
//! A place is a pool of this host and an entry of its page table, in one word, so that threads fill and read places
//! without a lock. A place may be stale: the entry tells whether the page is there. `shortcut.rs` has the same by
//! value, for the smallest gets and puts.

use super::page_table::{Bytes, Entry};
use super::scalar::Scalar;
use super::{DirtyBlocks, RankMemory, Segment, Segments};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use vgasnet_protocol::coherence::{FrameId, PageId};
use vgasnet_sys::{CopyGuard, copy_bytes};

/// Number of remembered places, in bits. Among this many consecutive pages hardly any share one, and pages at distances
/// of this number or its multiples never do: programs traverse several arrays together, with sizes that are powers of
/// two.
const PLACES_BITS: u32 = 14;

const PLACES: usize = 1 << PLACES_BITS;

// All bits of a page's address used by [`at`] fit here, so a rank needs only 4 bytes for each other one.
const _: () = assert!(2 * PLACES_BITS <= u32::BITS);

/// Bits of a place that name the pool, by its offset in the list of pools.
const POOL_BITS: u32 = u16::BITS;

/// The places of pages, by a hash of the page's name.
#[derive(Debug)]
pub struct Translations {
    places: Box<[AtomicU64]>,
    pools: Box<[PoolPlace]>,
    /// By rank, the page number of the segment's first address, truncated to the bits used by [`at`].
    segments: Box<[u32]>,
    refuses_puts: Box<AtomicBool>,
    reach: Reach,
}

/// A pool of this host. Its entries are numbered by their addresses.
#[derive(Clone, Copy, Debug)]
struct PoolPlace {
    /// Address of its frames if its entries were numbered from 0.
    frames: usize,
    first_entry: usize,
    blocks: DirtyBlocks,
}

/// The path to a number of up to 8 bytes: constant values, so that they can be copied close to their use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    places: *const AtomicU64,
    refuses_puts: *const AtomicBool,
    pools: *const PoolPlace,
    /// Start and length of the range in which a number of 8 bytes overlapping the own segment can begin.
    own: (usize, usize),
    /// The last offset in a page at which a number of 8 bytes ends there.
    number_max: usize,
    page_shift: u32,
}

/// The last place of a page's bytes.
struct Translation {
    entry: &'static Entry,
    frame: *mut u8,
    pool: &'static PoolPlace,
}

/// The outcome of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is not done.
    Missed,
    /// It is done.
    Done,
    /// It is done, and the engine of the page's pool waits to be notified.
    DoneLast,
}

impl Put {
    /// Unpins the page of a completed put.
    #[inline(always)]
    pub(super) fn ended(entry: &Entry) -> Put {
        if entry.unpin() { Put::DoneLast } else { Put::Done }
    }
}

/// A number with its page pinned for writing.
pub(super) struct PinnedNumber {
    pub(super) entry: &'static Entry,
    pub(super) at: *mut u8,
}

// SAFETY: the pointers are to objects that threads may read together: atomics and constants.
unsafe impl Send for Translations {}
// SAFETY: the pointers are to objects that threads may read together: atomics and constants.
unsafe impl Sync for Translations {}

impl PoolPlace {
    #[inline(always)]
    fn frame_of(&self, entry: &Entry) -> FrameId {
        FrameId((std::ptr::from_ref(entry).addr() / size_of::<Entry>() - self.first_entry) as u32)
    }
}

impl Translations {
    /// No places yet, for pages of these segments in these pools of the host.
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
        // Initially an arbitrary pool and frame.
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

    /// Notes the place of a page: a frame of the pool with this index on the host. Only the first 2048 pools are
    /// remembered.
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

    /// The last place of the page, or of another one with the same slot; initially an arbitrary pool and frame.
    #[inline]
    pub fn last(&self, page: PageId) -> (usize, FrameId) {
        let place = self.place(page).load(Ordering::Relaxed);
        let pool = place as u16 as usize / size_of::<PoolPlace>();
        (pool, FrameId(((place >> POOL_BITS) as usize - self.pools[pool].first_entry) as u32))
    }

    /// Gets a number from `rank`'s segment to the client's memory at `to`, if its page is still at its last place, open
    /// throughout the read, and marked for reads without a pin. Returns whether it did; false for null, and for memory
    /// in the own segment.
    ///
    /// # Safety
    /// The client's memory is valid for the number, or null.
    #[inline(always)]
    pub unsafe fn get_to<T: Scalar>(&self, to: *mut u8, rank: u32, address: usize) -> bool {
        if rank >= self.ranks() || !self.reach.is_elsewhere(to) {
            return false;
        }
        // SAFETY: `self` owns the objects that its reach points to.
        let Some(value) = (unsafe { self.reach.get::<T>(rank, address) }) else { return false };
        // SAFETY: the client's memory is valid for the number, and not null, as checked.
        unsafe { to.cast::<T>().write_unaligned(value) };
        true
    }

    /// Gets at most a page's length of bytes as [`Translations::get_to`] does a number. On `false` the bytes at `to`
    /// are undefined.
    ///
    /// # Safety
    /// `to` is valid for as many bytes, which are in no segment.
    #[inline]
    pub unsafe fn read_range(&self, rank: u32, address: usize, to: *mut u8, len_bytes: usize) -> bool {
        if rank >= self.ranks() {
            return false;
        }
        let bytes = Bytes { rank, address, offset_max: (1 << self.reach.page_shift) - len_bytes };
        // SAFETY: `self` owns the objects that its reach points to.
        let Translation { entry, frame, .. } = unsafe { self.reach.find(rank, address) };
        let Some((begun, offset_bytes)) = entry.begin_read(&bytes) else { return false };
        let from = frame.wrapping_add(offset_bytes);
        let words_bytes = len_bytes & !(size_of::<u64>() - 1);
        // SAFETY: the bytes are inside the frame, which stays mapped, and `to` has room for them. The library accesses
        // frames by raw pointers only.
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

    /// Puts at most a page's length of bytes, if their page is still at its last place, open for writing and marked as
    /// used, and puts are not refused.
    ///
    /// # Safety
    /// `from` is valid for as many bytes, which are in no segment.
    #[inline]
    pub unsafe fn write_range(&self, from: *const u8, rank: u32, address: usize, len_bytes: usize) -> Put {
        if rank >= self.ranks() || self.refuses_puts.load(Ordering::Relaxed) {
            return Put::Missed;
        }
        let bytes = Bytes { rank, address, offset_max: (1 << self.reach.page_shift) - len_bytes };
        // SAFETY: `self` owns the objects that its reach points to.
        let Translation { entry, frame, pool } = unsafe { self.reach.find(rank, address) };
        let _copying = CopyGuard::begin();
        let Some(offset_bytes) = entry.pin_quickly(&bytes) else { return Put::Missed };
        pool.blocks.mark(pool.frame_of(entry), offset_bytes, len_bytes);
        // SAFETY: the bytes are inside the frame, which the pin keeps for their page, and outside the client's memory.
        unsafe { copy_bytes(from, frame.wrapping_add(offset_bytes), len_bytes) };
        Put::ended(entry)
    }

    /// Sets whether puts are refused here and take a path that checks their addresses.
    pub fn refuse_puts(&self, refused: bool) {
        self.refuses_puts.store(refused, Ordering::Relaxed);
    }

    /// The path to numbers.
    pub(super) fn reach(&self) -> Reach {
        self.reach
    }

    /// Number of ranks.
    pub(super) fn ranks(&self) -> u32 {
        self.segments.len() as u32
    }

    #[inline(always)]
    fn place(&self, page: PageId) -> &AtomicU64 {
        // Spaces other than segments have no addresses, and use no places.
        let rank = page.space.number();
        let first = self.segments.get(rank as usize).copied().unwrap_or_default();
        &self.places[at(rank, first.wrapping_add(page.index) as usize)]
    }
}

impl Reach {
    /// Whether client memory of up to 8 bytes is neither null nor in the own segment.
    #[inline(always)]
    pub(super) fn is_elsewhere(&self, client: *const u8) -> bool {
        !client.is_null() && client.addr().wrapping_sub(self.own.0) >= self.own.1
    }

    /// Reads a number as [`Translations::get_to`] does.
    ///
    /// # Safety
    /// The objects that this points to exist.
    #[inline(always)]
    pub(super) unsafe fn get<T: Scalar>(&self, rank: u32, address: usize) -> Option<T> {
        // SAFETY: the objects that this points to exist.
        let Translation { entry, frame, .. } = unsafe { self.find(rank, address) };
        let (begun, offset_bytes) = entry.begin_read(&self.bytes::<T>(rank, address))?;
        // SAFETY: the number is inside the frame, which stays mapped. The library accesses frames by raw pointers only.
        let value = unsafe { T::read(frame.wrapping_add(offset_bytes)) };
        entry.was_open(begun).then_some(value)
    }

    /// Pins the page of a number at a multiple of its size for writing, and marks its block dirty, if the page is still
    /// at its last place, open for writing and marked as used, and puts are not refused.
    ///
    /// # Safety
    /// The objects that this points to exist.
    #[inline(always)]
    pub(super) unsafe fn pin<T: Scalar>(&self, rank: u32, address: usize) -> Option<PinnedNumber> {
        // SAFETY: the flag exists, as do all objects that this points to.
        let are_refused = unsafe { &*self.refuses_puts }.load(Ordering::Relaxed);
        // An unaligned number might be in two blocks.
        if are_refused || address % size_of::<T>() != 0 {
            return None;
        }
        // SAFETY: the objects that this points to exist.
        let Translation { entry, frame, pool } = unsafe { self.find(rank, address) };
        let offset_bytes = entry.pin_quickly(&self.bytes::<T>(rank, address))?;
        pool.blocks.mark_one(pool.frame_of(entry), offset_bytes);
        Some(PinnedNumber { entry, at: frame.wrapping_add(offset_bytes) })
    }

    /// The bytes of a number.
    #[inline(always)]
    fn bytes<T: Scalar>(&self, rank: u32, address: usize) -> Bytes {
        Bytes { rank, address, offset_max: self.number_max + size_of::<u64>() - size_of::<T>() }
    }

    /// The last place of an address's page, or of another page with the same slot; the entry tells.
    ///
    /// # Safety
    /// The objects that this points to exist.
    #[inline(always)]
    unsafe fn find(&self, rank: u32, address: usize) -> Translation {
        // SAFETY: there are `PLACES` places, a power of two.
        let place = unsafe { &*self.places.add(at(rank, address >> self.page_shift)) }.load(Ordering::Relaxed);
        let entry = (place >> POOL_BITS) as usize;
        // SAFETY: places contain only existing pools and entries.
        let pool = unsafe { &*self.pools.byte_add(place as u16 as usize) };
        let frame = std::ptr::with_exposed_provenance_mut(pool.frames.wrapping_add(entry << self.page_shift));
        let entry = std::ptr::with_exposed_provenance::<Entry>(entry * size_of::<Entry>());
        // SAFETY: the pool has the entry, which stays mapped until the process ends, and is only used as such. So it is
        // not null, which the compiler would check otherwise.
        let entry = unsafe {
            std::hint::assert_unchecked(!entry.is_null());
            &*entry
        };
        Translation { entry, frame, pool }
    }
}

/// The slot of a page, by its address in pages. Only the lowest `2 * PLACES_BITS` bits count.
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

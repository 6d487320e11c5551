//! Where pages were found last, and reads of a few bytes there that write nothing which others share.
//!
//! A place is a pool of this host and a frame of it, in one word, so that threads fill and read places without a lock. A
//! place may be old: the entry of the frame tells whether the page is there.

use super::page_table::{Entry, Key};
use super::{PageTable, Pool, Segment};
use std::sync::atomic::{AtomicU64, Ordering};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{FrameId, PageId};

/// How many places are remembered. Pages that follow each other in a segment never share one of them.
const PLACES: usize = 1 << 14;

/// The places of pages, by a part of the page's name.
#[derive(Debug)]
pub struct Translations {
    places: Box<[AtomicU64]>,
    pools: Box<[MappedPool]>,
    segments: Box<[Place]>,
    /// Where a number of 8 bytes must not begin that lies outside the own segment, and how many such places there are.
    own: (usize, usize),
    /// The size of a page less 1.
    page_mask: usize,
    /// The last offset in a page at which a number of 8 bytes ends there.
    number_max: usize,
    page_shift: u32,
}

/// A segment, the key of its first page, and where the place of that is remembered.
#[derive(Clone, Copy, Debug)]
struct Place {
    base: usize,
    size_bytes: usize,
    key: u64,
    at: usize,
}

/// The addresses of a pool's entries and frames.
#[derive(Clone, Copy, Debug)]
struct MappedPool {
    entries: usize,
    frames: usize,
}

/// Numbers that are read as a whole, wherever they lie.
pub trait Scalar: Copy {
    /// Reads the number at `from` with one instruction where there is one, while others may write it.
    ///
    /// # Safety
    /// The bytes are mapped, and Rust code has no reference to them. They are only accessed by copies as this one, by other
    /// processes and by the system.
    unsafe fn read(from: *const u8) -> Self;
}

macro_rules! scalars {
    ($($type:ty, $register:ident, $template:literal;)*) => {$(
        impl Scalar for $type {
            #[inline(always)]
            unsafe fn read(from: *const u8) -> $type {
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                {
                    let value: $type;
                    // SAFETY: the bytes are mapped. To Rust, assembly is as foreign as a process that shares the memory, so
                    // that a race with another write gives some bytes and nothing worse. One that is not atomic is seen by
                    // the version of the page, or is a race between the client's own operations.
                    unsafe {
                        std::arch::asm!($template, out($register) value, in(reg) from,
                            options(nostack, preserves_flags, readonly));
                    }
                    value
                }
                #[cfg(not(all(target_arch = "x86_64", not(miri))))]
                {
                    let mut bytes = [0; size_of::<$type>()];
                    for (at, byte) in bytes.iter_mut().enumerate() {
                        // SAFETY: the bytes are mapped, and a byte is always aligned for an atomic access.
                        let shared = unsafe { std::sync::atomic::AtomicU8::from_ptr(from.add(at).cast_mut()) };
                        *byte = shared.load(Ordering::Relaxed);
                    }
                    <$type>::from_ne_bytes(bytes)
                }
            }
        }
    )*};
}

scalars! {
    u8, reg_byte, "mov {0}, byte ptr [{1}]";
    u16, reg, "mov {0:x}, word ptr [{1}]";
    u32, reg, "mov {0:e}, dword ptr [{1}]";
    u64, reg, "mov {0}, qword ptr [{1}]";
}

impl Translations {
    /// No places yet, of pages of these segments in these pools of the host.
    pub(super) fn new<'a>(
        pools: impl Iterator<Item = (&'a PageTable, &'a Pool)>,
        segments: &[Segment],
        own: Segment,
        page_shift: u32,
    ) -> Translations {
        let pools = pools.map(|(table, pool)| MappedPool {
            entries: table.entries().as_ptr().expose_provenance(),
            frames: pool.frame(FrameId(0)).expose_provenance(),
        });
        let places = (0..PLACES).map(|_| AtomicU64::new(0)).collect();
        let before = size_of::<u64>() - 1;
        let own = (own.base.wrapping_sub(before), own.size_bytes + if own.size_bytes > 0 { before } else { 0 });
        let place = |(rank, segment): (u32, &Segment)| {
            let first = PageId::of_segment(Rank(rank), 0);
            Place { base: segment.base, size_bytes: segment.size_bytes, key: Key::from(first).number(), at: at(first) }
        };
        let page_mask = (1 << page_shift) - 1;
        Translations {
            places,
            pools: pools.collect(),
            segments: (0..).zip(segments).map(place).collect(),
            own,
            page_mask,
            number_max: page_mask - before,
            page_shift,
        }
    }

    /// Remembers that a page was found in a frame of the pool with this number on the host.
    ///
    /// # Safety
    /// The pool has the frame.
    #[inline]
    pub(super) unsafe fn note(&self, page: PageId, pool: usize, frame: FrameId) {
        assert!(pool < self.pools.len());
        let place = ((pool * size_of::<MappedPool>()) as u64) << 32 | u64::from(frame.0);
        let known = self.place(page);
        if known.load(Ordering::Relaxed) != place {
            known.store(place, Ordering::Relaxed);
        }
    }

    /// Where the page was found last, or another one that shares its place; at first some pool and frame.
    #[inline]
    pub fn last(&self, page: PageId) -> (usize, FrameId) {
        let place = self.place(page).load(Ordering::Relaxed);
        ((place >> 32) as usize / size_of::<MappedPool>(), FrameId(place as u32))
    }

    /// The page of a few bytes at `address` of `rank`'s segment and their place there, if they are inside one page of it.
    #[inline(always)]
    pub fn locate(&self, rank: u32, address: usize, len_bytes: usize) -> Option<(PageId, usize)> {
        let segment = self.segments.get(rank as usize)?;
        let start = address.wrapping_sub(segment.base);
        let offset_bytes = start & self.page_mask;
        // Segments are whole pages, and have one if they have a byte.
        let is_inside = start < segment.size_bytes && offset_bytes + len_bytes <= self.page_mask + 1;
        is_inside.then(|| (PageId::of_segment(Rank(rank), (start >> self.page_shift) as u32), offset_bytes))
    }

    /// Gets a number from `rank`'s segment, if its page is where it was found last, and open for all of the read. `None`
    /// also where the read is a use to be noted.
    #[inline(always)]
    pub fn get<T: Scalar>(&self, rank: u32, address: usize) -> Option<T> {
        let segment = self.segments.get(rank as usize)?;
        let start = address.wrapping_sub(segment.base);
        let offset_bytes = start & self.page_mask;
        if start >= segment.size_bytes || offset_bytes > self.number_max {
            return None;
        }
        let index = start >> self.page_shift;
        // SAFETY: there are `PLACES` places, a power of two.
        let place = unsafe { self.places.get_unchecked((index + segment.at) & (PLACES - 1)) };
        let (entry, frame) = self.known(place);
        let begun = entry.begin_read(Key::of(segment.key + index as u64))?;
        // SAFETY: the number is inside the frame, which stays mapped. The library accesses frames by raw pointers only.
        let value = unsafe { T::read(frame.wrapping_add(offset_bytes)) };
        entry.was_open(begun).then_some(value)
    }

    /// As [`Translations::get`], with the client's memory at `to`. Returns whether it did: not for null, nor for memory in
    /// the own segment.
    ///
    /// # Safety
    /// The client's memory is valid for the number, or null.
    #[inline(always)]
    pub unsafe fn get_to<T: Scalar>(&self, to: *mut u8, rank: u32, address: usize) -> bool {
        if to.is_null() || to.addr().wrapping_sub(self.own.0) < self.own.1 {
            return false;
        }
        let Some(value) = self.get::<T>(rank, address) else { return false };
        // SAFETY: the client's memory is valid for the number, and was checked not to be null.
        unsafe { to.cast::<T>().write_unaligned(value) };
        true
    }

    /// As [`Translations::get`], for any bytes of a page. Where it returns `false`, they mean nothing.
    ///
    /// # Safety
    /// The bytes end inside the page.
    #[inline]
    pub unsafe fn read_few(&self, page: PageId, offset_bytes: usize, to: &mut [u8]) -> bool {
        let (entry, frame) = self.known(self.place(page));
        let Some(begun) = entry.begin_read(Key::from(page)) else { return false };
        let mut from = frame.wrapping_add(offset_bytes);
        let mut words = to.chunks_exact_mut(size_of::<u64>());
        for word in &mut words {
            // SAFETY: the bytes are inside the frame, which stays mapped. The library accesses frames by raw pointers only.
            word.copy_from_slice(&unsafe { u64::read(from) }.to_ne_bytes());
            from = from.wrapping_add(size_of::<u64>());
        }
        for byte in words.into_remainder() {
            // SAFETY: as above.
            *byte = unsafe { u8::read(from) };
            from = from.wrapping_add(1);
        }
        entry.was_open(begun)
    }

    /// The entry and the frame of a place.
    #[inline(always)]
    fn known(&self, place: &AtomicU64) -> (&'static Entry, *const u8) {
        let place = place.load(Ordering::Relaxed);
        // SAFETY: places have only pools and frames that there are; 0 is the first frame of the first pool.
        let pool = unsafe { &*self.pools.as_ptr().byte_add((place >> 32) as usize) };
        let frame = place as u32 as usize;
        let entry = pool.entries + frame * size_of::<Entry>();
        // SAFETY: the pool has an entry for each frame, which is mapped until the process ends, and is only used as such.
        let entry = unsafe { &*std::ptr::with_exposed_provenance::<Entry>(entry) };
        let frame = pool.frames + (frame << self.page_shift);
        (entry, std::ptr::with_exposed_provenance(frame))
    }

    #[inline(always)]
    fn place(&self, page: PageId) -> &AtomicU64 {
        &self.places[at(page)]
    }
}

/// Where the place of a page is remembered.
#[inline(always)]
fn at(page: PageId) -> usize {
    page.index.wrapping_add(page.space.number().wrapping_mul(0x9e37_79b1)) as usize & (PLACES - 1)
}

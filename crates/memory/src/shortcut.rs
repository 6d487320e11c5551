//! The shortest path to a number of 8 or 4 bytes in an open page. All that the path needs is in a static, by value, so
//! a get or put that hits neither checks for a job nor follows pointers to it.

use super::scalar::Scalar;
use super::translations::{PinnedNumber, Reach};
use super::{Put, Translations};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use vgasnet_sys::CopyGuard;
use vgasnet_sys::children::{WipedInChildren, Zeros};

/// A path that leads nowhere until [`Shortcut::open`].
pub struct Shortcut {
    way: WipedInChildren<Way>,
    is_taken: AtomicBool,
}

struct Way {
    /// Number of ranks; 0 until `reach` is written, and in forked children.
    ranks: AtomicU32,
    reach: UnsafeCell<MaybeUninit<Reach>>,
}

// SAFETY: zero ranks, and memory that need not be initialised.
unsafe impl Zeros for Way {}
// SAFETY: the reach is written once, by one thread, before there are ranks, and read only afterwards. All threads may
// use the objects that it points to.
unsafe impl Sync for Way {}

impl Shortcut {
    /// Leads nowhere.
    pub const fn new() -> Shortcut {
        let way = Way { ranks: AtomicU32::new(0), reach: UnsafeCell::new(MaybeUninit::uninit()) };
        Shortcut { way: WipedInChildren::new(way), is_taken: AtomicBool::new(false) }
    }

    /// Opens the path to the pages of this job, if it has never been open. `clear` calls [`Shortcut::clear`].
    #[inline(always)]
    pub fn open(&'static self, translations: &'static Translations, clear: extern "C" fn()) {
        if !self.is_taken.load(Ordering::Relaxed) {
            self.open_first(translations, clear);
        }
    }

    #[cold]
    fn open_first(&'static self, translations: &'static Translations, clear: extern "C" fn()) {
        if self.is_taken.swap(true, Ordering::Relaxed) {
            return;
        }
        self.way.wipe(clear);
        // SAFETY: only this thread comes here, and no thread reads before there are ranks.
        unsafe { self.way.reach.get().write(MaybeUninit::new(translations.reach())) };
        self.way.ranks.store(translations.ranks(), Ordering::Release);
    }

    /// Closes the path, in a forked child.
    pub fn clear(&self) {
        self.way.ranks.store(0, Ordering::Relaxed);
    }

    /// Gets a number of `len_bytes` bytes from `rank`'s segment, whenever [`Translations::get_to`] would.
    #[inline(always)]
    pub fn get(&self, rank: u32, address: usize, len_bytes: usize) -> Option<u64> {
        match len_bytes {
            8 => self.get_number::<u64>(rank, address),
            4 => self.get_number::<u32>(rank, address).map(u64::from),
            _ => None,
        }
    }

    /// The same, to the client's memory. Returns whether it did.
    ///
    /// # Safety
    /// The client's memory is valid for as many bytes, or null.
    #[inline(always)]
    pub unsafe fn get_to(&self, to: *mut u8, rank: u32, address: usize, len_bytes: usize) -> bool {
        // SAFETY: the client's memory is valid for as many bytes, or null.
        unsafe {
            match len_bytes {
                8 => self.get_number_to::<u64>(to, rank, address),
                4 => self.get_number_to::<u32>(to, rank, address),
                _ => false,
            }
        }
    }

    /// Puts the `len_bytes` low-order bytes of a value to `rank`'s segment, as a number at a multiple of its size, if
    /// its page is still at its last place, open for writing and marked as used.
    #[inline(always)]
    pub fn put(&self, value: u64, rank: u32, address: usize, len_bytes: usize) -> Put {
        match len_bytes {
            8 => self.put_number::<u64>(value, rank, address),
            4 => self.put_number::<u32>(value as u32, rank, address),
            _ => Put::Missed,
        }
    }

    /// As [`Shortcut::put`], from the client's memory: not from null, nor from the own segment.
    ///
    /// # Safety
    /// The client's memory is valid for as many bytes, or null.
    #[inline(always)]
    pub unsafe fn put_from(&self, from: *const u8, rank: u32, address: usize, len_bytes: usize) -> Put {
        // SAFETY: the client's memory is valid for as many bytes, or null.
        unsafe {
            match len_bytes {
                8 => self.put_number_from::<u64>(from, rank, address),
                4 => self.put_number_from::<u32>(from, rank, address),
                _ => Put::Missed,
            }
        }
    }

    /// As [`Shortcut::get`], for callers that know the length.
    #[inline(always)]
    pub fn get_number<T: Scalar>(&self, rank: u32, address: usize) -> Option<T> {
        // SAFETY: the objects on the path live until the process ends.
        unsafe { self.reach(rank)?.get(rank, address) }
    }

    /// As [`Shortcut::get_to`], for callers that know the length.
    ///
    /// # Safety
    /// The client's memory is valid for the number, or null.
    #[inline(always)]
    pub unsafe fn get_number_to<T: Scalar>(&self, to: *mut u8, rank: u32, address: usize) -> bool {
        let Some(reach) = self.reach(rank) else { return false };
        if !reach.is_elsewhere(to) {
            return false;
        }
        // SAFETY: the objects on the path live until the process ends.
        let Some(value) = (unsafe { reach.get::<T>(rank, address) }) else { return false };
        // SAFETY: the client's memory is valid for the number, and not null, as checked.
        unsafe { to.cast::<T>().write_unaligned(value) };
        true
    }

    /// As [`Shortcut::put`], for callers that know the length.
    #[inline(always)]
    pub fn put_number<T: Scalar>(&self, number: T, rank: u32, address: usize) -> Put {
        let Some(reach) = self.reach(rank) else { return Put::Missed };
        let _copying = CopyGuard::begin();
        // SAFETY: the objects on the path live until the process ends.
        let pinned = unsafe { reach.pin::<T>(rank, address) };
        let Some(PinnedNumber { entry, at }) = pinned else { return Put::Missed };
        // SAFETY: the number is inside the frame, which the pin keeps for its page. The library accesses frames by raw
        // pointers only.
        unsafe { at.cast::<T>().write_unaligned(number) };
        Put::ended(entry)
    }

    /// As [`Shortcut::put_from`], for callers that know the length.
    ///
    /// # Safety
    /// The client's memory is valid for the number, or null.
    #[inline(always)]
    pub unsafe fn put_number_from<T: Scalar>(&self, from: *const u8, rank: u32, address: usize) -> Put {
        if !self.reach(rank).is_some_and(|reach| reach.is_elsewhere(from)) {
            return Put::Missed;
        }
        // SAFETY: the client's memory is valid for the number, and not null, as checked.
        self.put_number(unsafe { from.cast::<T>().read_unaligned() }, rank, address)
    }

    /// The path to the pages, if `rank` exists.
    #[inline(always)]
    fn reach(&self, rank: u32) -> Option<&Reach> {
        if rank >= self.way.ranks.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: there are ranks, so it is written, and never written again.
        Some(unsafe { (*self.way.reach.get()).assume_init_ref() })
    }
}

impl Default for Shortcut {
    fn default() -> Shortcut {
        Shortcut::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dirty_blocks::DIRTY_BLOCK_BYTES;
    use crate::{AddressSpace, DirtyBlocks, HomeBlocks, Memories, PageTable, Pool, RankMemory, Segment, Segments};
    use vgasnet_conduit::Region;
    use vgasnet_protocol::Rank;
    use vgasnet_protocol::coherence::{Access, FrameId, PageId};

    const PAGE: usize = 4096;
    const BASE: usize = 1 << 40;

    static SHORTCUT: Shortcut = Shortcut::new();

    extern "C" fn clear() {
        SHORTCUT.clear();
    }

    fn region(len_bytes: usize) -> Region {
        let memory = vec![0_u64; (len_bytes + PAGE) / 8].leak();
        Region { address: memory.as_mut_ptr().expose_provenance().next_multiple_of(PAGE), len_bytes }
    }

    /// A rank with a segment of eight pages and a pool of four unused frames.
    fn rank(page_bytes: usize) -> (&'static AddressSpace, DirtyBlocks) {
        let pool = Pool::new(region(4 * page_bytes), region(64), page_bytes);
        let table = PageTable::new(region(4096), 4);
        let blocks = DirtyBlocks::new(region(256), 4, page_bytes);
        let (hints, meeting, file_pointers) = (region(4096), region(4096), region(4096));
        let memory = RankMemory { table, pool, hints, blocks, meeting, file_pointers, shown: HomeBlocks::default() };
        let segments = [Segment { base: BASE, size_bytes: 8 * page_bytes }];
        let space = AddressSpace::new(Rank(0), Segments::new(segments), Memories::new([(0, memory)]));
        (Box::leak(Box::new(space)), blocks)
    }

    /// Opens a page in a frame and marks it as used.
    fn open_and_used(space: &AddressSpace, page: PageId, frame: FrameId, access: Access) {
        space.open(page, frame, access, false);
        assert!(space.pin_in(0, frame, page, Access::Read).is_some());
        space.own.table.mark_quick(frame);
        assert!(!space.own.table.unpin(frame));
    }

    #[test]
    fn small_writes_go_to_one_page_open_for_writing_and_marked() {
        const BYTES: usize = 2 * DIRTY_BLOCK_BYTES;
        let (space, blocks) = rank(BYTES);
        let (page, frame) = (space.own_page(5), FrameId(2));
        let (start, block) = (BASE + 5 * BYTES, DIRTY_BLOCK_BYTES);
        let from = *b"some bytes";
        // SAFETY: the bytes are valid, and in no segment.
        let put = |rank, address, len_bytes| unsafe {
            space.translations().write_range(from.as_ptr(), rank, address, len_bytes)
        };
        open_and_used(space, page, frame, Access::Read);
        assert_eq!(put(0, start, 10), Put::Missed, "it may be read only");
        space.open(page, frame, Access::Write, false);
        assert_eq!(put(0, start + block - 3, 10), Put::Done);
        let mut got = [0; 10];
        // SAFETY: there is room for the bytes, in no segment.
        assert!(unsafe { space.translations().read_range(0, start + block - 3, got.as_mut_ptr(), 10) });
        assert_eq!(got, from);
        assert!(blocks.is_marked(frame, 0) && blocks.is_marked(frame, block), "both blocks have some");
        blocks.clear(frame);
        assert_eq!(put(0, start + BYTES - 10, 10), Put::Done, "the last ones of the page");
        assert!(!blocks.is_marked(frame, 0) && blocks.is_marked(frame, block));
        for (rank, address) in [(0, start + BYTES - 9), (0, start - 1), (0, start + BYTES), (1, start)] {
            assert_eq!(put(rank, address, 10), Put::Missed, "{rank} {address:#x}");
        }
        space.translations().refuse_puts(true);
        assert_eq!(put(0, start, 10), Put::Missed, "somebody looks at where puts go");
        space.translations().refuse_puts(false);
        assert_eq!(put(0, start, 10), Put::Done);
    }

    #[test]
    fn numbers_go_to_pages_that_are_open_and_marked_and_nowhere_else() {
        let (space, blocks) = rank(PAGE);
        let (page, frame) = (space.own_page(5), FrameId(2));
        let address = BASE + 5 * PAGE + 16;
        let is_dirty = || blocks.is_marked(frame, 16);
        let mut value = 0_u64;
        let get = |at| SHORTCUT.get(0, at, 8);
        assert!(get(address).is_none() && SHORTCUT.put(1, 0, address, 8) == Put::Missed, "it leads nowhere yet");
        SHORTCUT.open(space.translations(), clear);
        assert!(get(address).is_none(), "the page is not open");
        open_and_used(space, page, frame, Access::Read);
        assert_eq!((get(address), SHORTCUT.put(1, 0, address, 8)), (Some(0), Put::Missed), "it may be read only");
        assert!(!is_dirty());
        space.open(page, frame, Access::Write, false);
        assert_eq!((SHORTCUT.put(7, 0, address, 8), get(address), get(address - 8)), (Put::Done, Some(7), Some(0)));
        assert!(is_dirty() && !blocks.is_marked(FrameId(1), 16));
        blocks.clear(frame);
        assert_eq!((SHORTCUT.put(8, 0, address + 1, 8), is_dirty()), (Put::Missed, false), "it might be in two blocks");
        // SAFETY: the value is valid for its length.
        unsafe {
            let to = (&raw mut value).cast::<u8>();
            assert!(SHORTCUT.get_to(to, 0, address, 8) && to.cast::<u64>().read() == 7);
            to.cast::<u64>().write(9);
            assert_eq!((SHORTCUT.put_from(to, 0, address, 8), get(address)), (Put::Done, Some(9)));
            assert!(!SHORTCUT.get_to(std::ptr::null_mut(), 0, address, 8));
            assert!(!SHORTCUT.get_to(std::ptr::without_provenance_mut(BASE - 1), 0, address, 8), "the own segment");
            assert_eq!(SHORTCUT.put_from(std::ptr::without_provenance(BASE), 0, address, 8), Put::Missed);
        }
        let outside = [BASE + 6 * PAGE - 7, BASE - 1, BASE + 8 * PAGE, 0];
        assert!(outside.iter().all(|at| get(*at).is_none()) && SHORTCUT.get(1, address, 8).is_none());
        assert!(get(BASE + 6 * PAGE - 8).is_some(), "the last number of the page");
        numbers_of_4_bytes_go_there_too(address, &is_dirty, || blocks.clear(frame));
        clear();
        assert!(get(address).is_none());
    }

    /// As numbers of 8 bytes, in a page open for writing.
    fn numbers_of_4_bytes_go_there_too(address: usize, is_dirty: &dyn Fn() -> bool, clean: impl FnOnce()) {
        clean();
        let put = |at, value| SHORTCUT.put(value, 0, at, 4);
        let get = |at| SHORTCUT.get(0, at, 4);
        assert_eq!((put(address + 2, 1), is_dirty()), (Put::Missed, false), "it might be in two blocks");
        assert_eq!((put(address, 0x1_2345_6789), put(address + 4, 5), is_dirty()), (Put::Done, Put::Done, true));
        assert_eq!((get(address), get(address + 2)), (Some(0x2345_6789), Some(0x5_2345)));
        assert_eq!(
            SHORTCUT.get(0, address, 8),
            Some(if cfg!(target_endian = "big") { 0x2345_6789_0000_0005 } else { 0x5_2345_6789 })
        );
        let end = BASE + 6 * PAGE;
        assert_eq!(
            (put(end - 4, 9), get(end - 4), get(end - 3)),
            (Put::Done, Some(9), None),
            "the last one of the page"
        );
        let mut values = [1_u32, 2, 3];
        let middle = values.as_mut_ptr().wrapping_add(1).cast::<u8>();
        // SAFETY: the values are valid for their lengths.
        unsafe {
            assert!(SHORTCUT.get_to(middle, 0, address, 4) && values == [1, 0x2345_6789, 3]);
            assert_eq!(SHORTCUT.put_from(middle, 0, address + 4, 4), Put::Done);
            assert!(!SHORTCUT.get_to(std::ptr::null_mut(), 0, address, 4));
            assert_eq!(SHORTCUT.put_from(std::ptr::without_provenance(BASE - 3), 0, address, 4), Put::Missed);
        }
        assert_eq!(get(address + 4), Some(0x2345_6789));
        assert!([0, 1, 2, 3, 5, 6, 7, 9].iter().all(|len| SHORTCUT.get(0, address, *len).is_none()));
    }
}

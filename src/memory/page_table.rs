//! One atomic word a page: whether operations may use it now, how many do, and in which frame it is.
//!
//! The words lie in memory that the ranks of a host share, so a neighbour can use a page too: it pins the page as a
//! thread of this rank does. The array covers every page of the job, and only the words that are touched take memory.
//!
//! ```text
//!  63          32 31   28   27     26     25     24  23            0
//! ┌──────────────┬──────┬──────┬───────┬──────┬──────┬──────────────┐
//! │    frame     │      │ahead │closing│write │ read │     pins     │
//! └──────────────┴──────┴──────┴───────┴──────┴──────┴──────────────┘
//! ```
//!
//! Only the engine opens and closes, under its lock. Anyone pins and unpins.

#[cfg(all(loom, test))]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(all(loom, test)))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use vgasnet_conduit::Region;
use vgasnet_protocol::coherence::{Access, FrameId, PageId};

const PIN: u64 = 1;
const PINS: u64 = (1 << 24) - 1;
const READ: u64 = 1 << 24;
const WRITE: u64 = 1 << 25;
const CLOSING: u64 = 1 << 26;
/// The page was fetched ahead and nobody has used it yet.
const AHEAD: u64 = 1 << 27;
const FRAME_SHIFT: u32 = 32;

/// Bytes before the first word: the unpin counter, in a cache line of its own.
const HEADER_BYTES: usize = 64;

/// A place in the page table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(usize);

/// The first slot of each rank's pages, which is the same in every rank's page table.
#[derive(Clone, Debug)]
pub struct Slots {
    /// One more than there are ranks.
    first: Box<[usize]>,
}

impl Slots {
    /// Slots for ranks whose segments have this many pages.
    pub fn new(pages: impl IntoIterator<Item = u32>) -> Slots {
        let mut next = 0;
        let mut first = vec![0];
        for pages in pages {
            next += pages as usize;
            first.push(next);
        }
        Slots { first: first.into() }
    }

    /// The slot of a page.
    pub fn of(&self, page: PageId) -> Slot {
        let rank = page.space.segment().expect("only pages of segments have slots").index();
        debug_assert!(self.first[rank] + (page.index as usize) < self.first[rank + 1]);
        Slot(self.first[rank] + page.index as usize)
    }

    /// Memory that a page table needs, in bytes.
    pub fn table_bytes(&self) -> usize {
        HEADER_BYTES + self.first[self.first.len() - 1] * size_of::<AtomicU64>()
    }
}

/// A rank's page table: this rank's own or a neighbour's.
#[derive(Clone, Copy, Debug)]
pub struct PageTable {
    memory: Region,
}

/// A page in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// The frame it is in.
    pub frame: FrameId,
    /// It was fetched ahead, and nobody has called [`PageTable::take_ahead`] yet.
    pub ahead: bool,
}

/// The outcome of [`PageTable::close`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// The page is closed; it was in this frame.
    Done(FrameId),
    /// The page is pinned, and closed when [`PageTable::poll_closed`] says so.
    Pinned,
}

fn frame_of(word: u64) -> FrameId {
    FrameId((word >> FRAME_SHIFT) as u32)
}

#[inline]
fn rights(access: Access) -> u64 {
    match access {
        Access::Read => READ,
        Access::Write => READ | WRITE,
    }
}

impl PageTable {
    /// A page table in `memory`, which is zero at first and at least [`Slots::table_bytes`] long.
    pub fn new(memory: Region) -> PageTable {
        assert!(memory.address % HEADER_BYTES == 0);
        PageTable { memory }
    }

    /// Pins a page, if it is open for this access. Each pin is undone by one [`PageTable::unpin`].
    #[inline]
    pub fn pin(&self, slot: Slot, access: Access) -> Option<Pinned> {
        let word = self.word(slot);
        let needed = rights(access);
        let mut seen = word.load(Ordering::Relaxed);
        loop {
            if seen & needed != needed {
                return None;
            }
            match word.compare_exchange_weak(seen, seen + PIN, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    return Some(Pinned { frame: frame_of(seen), ahead: seen & AHEAD != 0 });
                }
                Err(now) => seen = now,
            }
        }
    }

    /// For debuggers: the address of a page's word, the bit of those that may be read, and where the frame's number begins.
    pub fn format(&self, slot: Slot) -> (usize, u64, u32) {
        (std::ptr::from_ref(self.word(slot)).addr(), READ, FRAME_SHIFT)
    }

    /// Undoes one pin. Returns whether the engine waits for it: then the caller calls [`PageTable::notify_unpinned`]
    /// and wakes the engine's rank.
    #[inline]
    #[must_use]
    pub fn unpin(&self, slot: Slot) -> bool {
        let before = self.word(slot).fetch_sub(PIN, Ordering::Release);
        debug_assert!(before & PINS != 0);
        before & (PINS | CLOSING) == PIN | CLOSING
    }

    /// Adds a pin to a page that the caller has pinned.
    #[inline]
    pub(super) fn pin_again(&self, slot: Slot) {
        let before = self.word(slot).fetch_add(PIN, Ordering::Relaxed);
        debug_assert!(before & PINS != 0);
    }

    /// Opens a page or adds rights to an open one, and pins it if `pin`.
    pub fn open(&self, slot: Slot, frame: FrameId, access: Access, pin: bool) {
        let opened = |before: u64| {
            assert!(before & CLOSING == 0, "a closing page is not opened");
            let frame = u64::from(frame.0) << FRAME_SHIFT;
            Some(((before & PINS) + u64::from(pin) * PIN) | rights(access) | frame)
        };
        let update = self.word(slot).fetch_update(Ordering::AcqRel, Ordering::Relaxed, opened);
        debug_assert!(update.is_ok());
    }

    /// Marks an open page as fetched ahead.
    pub fn mark_ahead(&self, slot: Slot) {
        self.word(slot).fetch_or(AHEAD, Ordering::Relaxed);
    }

    /// Whether the page was fetched ahead and not used yet.
    pub fn is_ahead(&self, slot: Slot) -> bool {
        self.word(slot).load(Ordering::Relaxed) & AHEAD != 0
    }

    /// Takes the mark off. Returns whether it was there.
    pub fn take_ahead(&self, slot: Slot) -> bool {
        self.word(slot).fetch_and(!AHEAD, Ordering::Relaxed) & AHEAD != 0
    }

    /// Whether the page can be read here.
    pub fn is_readable(&self, slot: Slot) -> bool {
        self.word(slot).load(Ordering::Relaxed) & READ != 0
    }

    /// Whether the page can be written here.
    pub fn is_writable(&self, slot: Slot) -> bool {
        self.word(slot).load(Ordering::Relaxed) & WRITE != 0
    }

    /// Closes a page: from now on nobody pins it.
    pub fn close(&self, slot: Slot) -> Closing {
        let closed =
            |before: u64| Some(if before & PINS == 0 { 0 } else { before & !(READ | WRITE | AHEAD) | CLOSING });
        let before = self.word(slot).fetch_update(Ordering::AcqRel, Ordering::Acquire, closed).unwrap_or_default();
        if before & PINS == 0 { Closing::Done(frame_of(before)) } else { Closing::Pinned }
    }

    /// Ends the closing of a page once it is not pinned any more. Returns the frame that it was in.
    pub fn poll_closed(&self, slot: Slot) -> Option<FrameId> {
        let word = self.word(slot);
        let seen = word.load(Ordering::Acquire);
        assert!(seen & CLOSING != 0, "the page was not closing");
        if seen & PINS != 0 {
            return None;
        }
        word.store(0, Ordering::Release);
        Some(frame_of(seen))
    }

    /// Whether the page is closed as soon as nobody has it pinned.
    pub(super) fn is_closing(&self, slot: Slot) -> bool {
        self.word(slot).load(Ordering::Relaxed) & CLOSING != 0
    }

    /// Whether anybody has the page pinned.
    pub fn is_pinned(&self, slot: Slot) -> bool {
        self.word(slot).load(Ordering::Relaxed) & PINS != 0
    }

    /// How often the page is pinned.
    pub fn pins(&self, slot: Slot) -> u32 {
        (self.word(slot).load(Ordering::Relaxed) & PINS) as u32
    }

    /// Tells the rank of this table to look at its closing pages.
    pub fn notify_unpinned(&self) {
        self.unpin_counter().fetch_add(1, Ordering::SeqCst);
    }

    /// How often the rank of this table was notified; it wraps.
    pub fn unpin_notices(&self) -> u32 {
        self.unpin_counter().load(Ordering::SeqCst)
    }

    fn unpin_counter(&self) -> &AtomicU32 {
        // SAFETY: the header is inside the region, aligned, mapped until the process ends, and only used as this
        // atomic.
        unsafe { &*self.memory.at(0).cast::<AtomicU32>() }
    }

    fn word(&self, slot: Slot) -> &AtomicU64 {
        let offset_bytes = HEADER_BYTES + slot.0 * size_of::<AtomicU64>();
        debug_assert!(offset_bytes < self.memory.len_bytes);
        // SAFETY: the slot comes from `Slots`, and the region is as long as their `table_bytes`. It is 64-byte aligned,
        // mapped until the process ends, and from the header on only used as these atomics.
        unsafe { &*std::ptr::with_exposed_provenance::<AtomicU64>(self.memory.address + offset_bytes) }
    }
}

/// `RUSTFLAGS="--cfg loom" cargo test -p vgasnet --lib --release model` runs these.
#[cfg(all(loom, test))]
mod model {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    /// A page table of one page, and the bytes of its frame.
    struct Page {
        table: PageTable,
        frame: UnsafeCell<u64>,
    }

    // SAFETY: the model checker reports conflicting accesses to the frame.
    unsafe impl Sync for Page {}

    const SLOT: Slot = Slot(0);

    fn page() -> Arc<Page> {
        let len_bytes = HEADER_BYTES + size_of::<AtomicU64>();
        let memory = vec![0u128; (len_bytes + HEADER_BYTES).div_ceil(16)].leak();
        let address = memory.as_mut_ptr().expose_provenance().next_multiple_of(HEADER_BYTES);
        let region = Region { address, len_bytes };
        assert!(size_of::<AtomicU32>() <= HEADER_BYTES);
        // SAFETY: both places are inside the memory, aligned, and nobody else's.
        unsafe {
            region.at(0).cast::<AtomicU32>().write(AtomicU32::new(0));
            region.at(HEADER_BYTES).cast::<AtomicU64>().write(AtomicU64::new(0));
        }
        Arc::new(Page { table: PageTable::new(region), frame: UnsafeCell::new(0) })
    }

    /// Uses the page if it is open, and notifies the engine if that waits for the last pin.
    fn access(page: &Page, access: Access) {
        if page.table.pin(SLOT, access).is_none() {
            return;
        }
        match access {
            // SAFETY: the checker tells if anybody writes meanwhile.
            Access::Read => page.frame.with(|bytes| unsafe { std::hint::black_box(*bytes) }),
            // SAFETY: the checker tells if anybody else uses it meanwhile.
            Access::Write => page.frame.with_mut(|bytes| unsafe {
                *bytes += 1;
                *bytes
            }),
        };
        if page.table.unpin(SLOT) {
            page.table.notify_unpinned();
        }
    }

    /// Closes the page as the engine does, which looks again only when it is notified. Then the frame is the engine's
    /// alone.
    fn close(page: &Page) {
        if page.table.close(SLOT) == Closing::Pinned {
            let mut seen = 0;
            while page.table.poll_closed(SLOT).is_none() {
                while page.table.unpin_notices() == seen {
                    thread::yield_now();
                }
                seen = page.table.unpin_notices();
            }
        }
        // SAFETY: the checker tells if anybody else uses it meanwhile.
        page.frame.with_mut(|bytes| unsafe { *bytes = 7 });
    }

    #[test]
    fn model_a_closed_page_is_the_engines_alone() {
        loom::model(|| {
            let page = page();
            // SAFETY: nobody else has it yet.
            page.frame.with_mut(|bytes| unsafe { *bytes = 1 });
            page.table.open(SLOT, FrameId(0), Access::Write, false);
            let client = thread::spawn({
                let page = page.clone();
                move || {
                    access(&page, Access::Write);
                    access(&page, Access::Read);
                }
            });
            close(&page);
            client.join().unwrap();
        });
    }

    #[test]
    fn model_readers_share_a_page_until_it_closes() {
        loom::model(|| {
            let page = page();
            page.table.open(SLOT, FrameId(0), Access::Read, false);
            let readers = [0, 1].map(|_| {
                let page = page.clone();
                thread::spawn(move || access(&page, Access::Read))
            });
            close(&page);
            readers.into_iter().for_each(|reader| reader.join().unwrap());
        });
    }

    /// A client finds in an open page what the engine wrote before it opened the page.
    #[test]
    fn model_an_opened_page_is_complete() {
        loom::model(|| {
            let page = page();
            let client = thread::spawn({
                let page = page.clone();
                move || access(&page, Access::Read)
            });
            // SAFETY: the checker tells if anybody else uses it meanwhile.
            page.frame.with_mut(|bytes| unsafe { *bytes = 9 });
            page.table.open(SLOT, FrameId(0), Access::Read, false);
            client.join().unwrap();
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use vgasnet_protocol::Rank;

    fn table(slots: &Slots) -> PageTable {
        let words = vec![0u64; slots.table_bytes().div_ceil(8) + 8].leak();
        let address = words.as_mut_ptr().expose_provenance().next_multiple_of(HEADER_BYTES);
        PageTable::new(Region { address, len_bytes: slots.table_bytes() })
    }

    #[test]
    fn slots_follow_each_other_rank_by_rank() {
        let slots = Slots::new([3, 0, 2]);
        let at = |home, index| slots.of(PageId::of_segment(Rank(home), index)).0;
        assert_eq!((at(0, 0), at(0, 2), at(2, 0), at(2, 1)), (0, 2, 3, 4));
        assert_eq!(slots.table_bytes(), 64 + 5 * 8);
    }

    #[test]
    fn rights_decide_who_may_pin() {
        let slots = Slots::new([1]);
        let (table, slot) = (table(&slots), Slot(0));
        assert_eq!(table.pin(slot, Access::Read), None);
        table.open(slot, FrameId(7), Access::Read, false);
        assert_eq!(table.pin(slot, Access::Write), None);
        assert_eq!(table.pin(slot, Access::Read), Some(Pinned { frame: FrameId(7), ahead: false }));
        table.open(slot, FrameId(7), Access::Write, true);
        table.mark_ahead(slot);
        assert_eq!(table.pin(slot, Access::Write), Some(Pinned { frame: FrameId(7), ahead: true }));
        assert!(table.take_ahead(slot) && !table.take_ahead(slot));
        assert_eq!(table.close(slot), Closing::Pinned);
        assert_eq!(table.pin(slot, Access::Read), None);
        assert!(!table.unpin(slot));
        assert!(!table.unpin(slot));
        assert_eq!(table.poll_closed(slot), None);
        assert!(table.unpin(slot), "the last pin of a closing page is told");
        assert_eq!(table.poll_closed(slot), Some(FrameId(7)));
        table.open(slot, FrameId(1), Access::Read, false);
        assert!(table.is_readable(slot) && !table.is_writable(slot));
        assert_eq!(table.close(slot), Closing::Done(FrameId(1)));
    }

    #[test]
    fn a_closed_page_is_never_in_use() {
        let slots = Slots::new([1]);
        let (table, slot, in_use, stop) = (table(&slots), Slot(0), AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    if table.pin(slot, Access::Write).is_some() {
                        in_use.store(true, Ordering::Relaxed);
                        in_use.store(false, Ordering::Relaxed);
                        let _ = table.unpin(slot);
                    }
                    std::thread::yield_now();
                }
            });
            for _ in 0..20_000 {
                table.open(slot, FrameId(0), Access::Write, false);
                if table.close(slot) == Closing::Pinned {
                    while table.poll_closed(slot).is_none() {
                        std::thread::yield_now();
                    }
                }
                assert!(!in_use.load(Ordering::Relaxed));
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}

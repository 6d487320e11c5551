//! A rank's page table: one entry per frame, in memory shared by the ranks of a host.
//!
//! A neighbour can use a page, too: it pins the page like a thread of this rank, or reads a small number of bytes and
//! checks afterwards that the page was open throughout. The table's memory grows with the frames of the pool, not with
//! the pages of the job. `word.rs` has an entry, `index.rs` finds the frame of a page, `directory.rs` the pool.
//!
//! Only the engine opens and closes pages, under its lock. Any thread pins, unpins and reads.

mod directory;
mod index;
mod lending;
#[cfg(all(loom, test))]
mod model;
mod word;

pub use directory::Directory;
pub(super) use directory::part_bytes;
pub use word::{Bytes, Entry};

use index::Index;
#[cfg(all(loom, test))]
use loom::sync::atomic::{AtomicU32, Ordering};
#[cfg(not(all(loom, test)))]
use std::sync::atomic::{AtomicU32, Ordering};
use vgasnet_conduit::Region;
use vgasnet_protocol::coherence::{Access, FrameId, PageId};
use word::{Closed, Key};

/// Bytes before the first entry: the unpin counter and the counts of frames lent and pinned, in a cache line of their
/// own.
const HEADER_BYTES: usize = 64;

/// A rank's page table: this rank's own or a neighbour's.
#[derive(Clone, Copy, Debug)]
pub struct PageTable {
    unpin_counter: &'static AtomicU32,
    /// Frames lent to neighbours.
    lent: &'static AtomicU32,
    /// Frames pinned by the client or about to be.
    client_pins: &'static AtomicU32,
    entries: &'static [Entry],
    index: Index,
}

/// A page in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// Its frame.
    pub frame: FrameId,
    /// It was read ahead, and [`PageTable::take_ahead`] has not been called yet.
    pub ahead: bool,
}

/// The outcome of [`PageTable::close`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// The page is closed; it was in this frame.
    Done(FrameId),
    /// The page is pinned; [`PageTable::poll_closed`] reports when it is closed.
    Pinned,
}

/// The layout of the entries, for debuggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The address of the first entry.
    pub entries: usize,
    /// The size of an entry, which begins with its word; the key follows.
    pub entry_bytes: usize,
    /// Number of entries.
    pub count: usize,
    /// The bit set in the words of readable pages.
    pub readable: u64,
}

impl PageTable {
    /// Bytes of memory for the table of a pool of `frames` frames; a multiple of 64.
    pub fn bytes(frames: u32) -> usize {
        let links = (frames as usize + index::buckets(frames)) * size_of::<AtomicU32>();
        (HEADER_BYTES + frames as usize * size_of::<Entry>() + links).next_multiple_of(64)
    }

    /// The page table of a pool of `frames` frames in `memory`, which is initially zero and as long as
    /// [`PageTable::bytes`].
    pub fn new(memory: Region, frames: u32) -> PageTable {
        assert!(memory.address % HEADER_BYTES == 0 && memory.len_bytes >= PageTable::bytes(frames));
        let frames = frames as usize;
        let links = HEADER_BYTES + frames * size_of::<Entry>();
        // SAFETY: the counters, the entries and the links lie in the region one behind the other, aligned. The region
        // stays mapped until the process ends, and is only used as these atomics, for which zero is valid.
        unsafe {
            let link = |at: usize| memory.at(links + at * size_of::<AtomicU32>()).cast_const().cast();
            PageTable {
                unpin_counter: &*memory.at(0).cast(),
                lent: &*memory.at(size_of::<AtomicU32>()).cast(),
                client_pins: &*memory.at(2 * size_of::<AtomicU32>()).cast(),
                entries: std::slice::from_raw_parts(memory.at(HEADER_BYTES).cast_const().cast(), frames),
                index: Index {
                    next: std::slice::from_raw_parts(link(0), frames),
                    buckets: std::slice::from_raw_parts(link(frames), index::buckets(frames as u32)),
                },
            }
        }
    }

    /// The entries of the frames.
    pub(super) fn entries(&self) -> &'static [Entry] {
        self.entries
    }

    /// For debuggers: the key of a page. The key of the next page of a space is one more.
    pub fn key(page: PageId) -> u64 {
        Key::from(page).0
    }

    /// For debuggers: the layout of the entries.
    pub fn format(&self) -> Format {
        Format {
            entries: self.entries.as_ptr().addr(),
            entry_bytes: size_of::<Entry>(),
            count: self.entries.len(),
            readable: word::READ,
        }
    }

    /// The frame of an open page, as far as can be seen without a lock.
    #[inline]
    pub fn find(&self, page: PageId) -> Option<FrameId> {
        self.index.find(self.entries, page.into())
    }

    /// Pins a page, if it is open for this access. Each pin is undone by one [`PageTable::unpin`].
    #[inline]
    pub fn pin(&self, page: PageId, access: Access) -> Option<Pinned> {
        self.pin_in(self.find(page)?, page, access)
    }

    /// As [`PageTable::pin`], if the page is in this frame.
    #[inline]
    pub fn pin_in(&self, frame: FrameId, page: PageId, access: Access) -> Option<Pinned> {
        let ahead = self.entries.get(frame.0 as usize)?.pin(page.into(), access)?;
        Some(Pinned { frame, ahead })
    }

    /// The frame of a pinned page.
    pub fn find_pinned(&self, page: PageId) -> FrameId {
        loop {
            // The index may change during the search, but a pinned page stays in it.
            if let Some(frame) = self.find(page).filter(|frame| self.entry(*frame).pins() > 0) {
                return frame;
            }
            std::hint::spin_loop();
        }
    }

    /// Undoes one pin. Returns whether the engine waits for it: then the caller calls [`PageTable::notify_unpinned`]
    /// and wakes the engine's rank.
    #[inline]
    #[must_use]
    pub fn unpin(&self, frame: FrameId) -> bool {
        self.entry(frame).unpin()
    }

    /// Adds a pin to a page pinned by the caller.
    pub(super) fn pin_again(&self, frame: FrameId) {
        self.entry(frame).pin_again();
    }

    /// Notes the address of the page open or opened next in this frame: in the segment of a rank, at an address other
    /// than 0. Small gets and puts find it by this address. For the engine only.
    pub(super) fn begins_at(&self, frame: FrameId, rank: u32, start: usize) {
        self.entry(frame).begins_at(rank, start);
    }

    /// Opens a page or adds access to an open one, and pins it if `pin`. For the engine only.
    pub fn open(&self, page: PageId, frame: FrameId, access: Access, pin: bool) {
        if self.entry(frame).open(page.into(), access, pin) {
            self.index.insert(page.into(), frame);
        }
    }

    /// Closes an open page: no thread pins it any more. For the engine only.
    pub fn close(&self, page: PageId) -> Closing {
        let frame = self.frame_of(page);
        match self.entry(frame).close() {
            Closed::Now => {
                self.index.remove(page.into(), frame);
                Closing::Done(frame)
            }
            Closed::WhenUnpinned => Closing::Pinned,
        }
    }

    /// Ends the closing of a page once it is unpinned. Returns its frame. For the engine only.
    pub fn poll_closed(&self, page: PageId) -> Option<FrameId> {
        let frame = self.frame_of(page);
        let is_closed = self.entry(frame).poll_closed();
        is_closed.then(|| {
            self.index.remove(page.into(), frame);
            frame
        })
    }

    /// Marks an open page as read ahead.
    pub fn mark_ahead(&self, frame: FrameId) {
        self.entry(frame).mark_ahead();
    }

    /// Whether the page in the frame was read ahead and not used yet.
    pub fn is_ahead(&self, frame: FrameId) -> bool {
        self.entry(frame).is_ahead()
    }

    /// Removes the mark. Returns whether it was there.
    pub fn take_ahead(&self, frame: FrameId) -> bool {
        self.entry(frame).take_ahead()
    }

    /// Marks the page in the frame as readable without a pin; closing it removes the mark.
    pub fn mark_quick(&self, frame: FrameId) {
        self.entry(frame).mark_quick();
    }

    /// Removes this mark. Returns whether it was there: then there may have been uses without any other trace.
    pub fn take_quick(&self, frame: FrameId) -> bool {
        self.entry(frame).take_quick()
    }

    /// Whether the page is resident and open for this access, as far as can be seen without a lock.
    pub fn is_open(&self, page: PageId, access: Access) -> bool {
        self.find(page).is_some_and(|frame| self.is_open_in(frame, page, access))
    }

    /// As [`PageTable::is_open`], if the page is in this frame.
    pub fn is_open_in(&self, frame: FrameId, page: PageId, access: Access) -> bool {
        self.entries.get(frame.0 as usize).is_some_and(|entry| entry.may(access) && entry.is_of(page.into()))
    }

    /// Whether the page in the frame, pinned by the caller, may be written.
    pub(super) fn is_writable(&self, frame: FrameId) -> bool {
        self.entry(frame).may(Access::Write)
    }

    /// Whether the page in the frame will be closed once it is unpinned.
    pub(super) fn is_closing(&self, frame: FrameId) -> bool {
        self.entry(frame).is_closing()
    }

    /// Whether the page in the frame is pinned.
    pub fn is_pinned(&self, frame: FrameId) -> bool {
        self.pins(frame) > 0
    }

    /// Number of pins of the page in the frame.
    pub fn pins(&self, frame: FrameId) -> u32 {
        self.entry(frame).pins()
    }

    /// Number of frames of its rank's pool.
    pub fn frames(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Tells the rank of this table to check its closing pages.
    pub fn notify_unpinned(&self) {
        self.unpin_counter.fetch_add(1, Ordering::SeqCst);
    }

    /// Number of notices to the rank of this table, wrapping.
    pub fn unpin_notices(&self) -> u32 {
        self.unpin_counter.load(Ordering::SeqCst)
    }

    fn frame_of(&self, page: PageId) -> FrameId {
        self.find(page).unwrap_or_else(|| panic!("{page:?} is not open"))
    }

    fn entry(&self, frame: FrameId) -> &'static Entry {
        &self.entries[frame.0 as usize]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use vgasnet_protocol::Rank;

    const PAGE: PageId = PageId::of_segment(Rank(1), 5);
    const START: usize = 0x5000;
    const BYTES: Bytes = Bytes { rank: 1, address: START + 24, offset_max: 4096 - 8 };

    fn table(frames: u32) -> PageTable {
        let len_bytes = PageTable::bytes(frames);
        let words = vec![0u64; len_bytes / 8 + 8].leak();
        let address = words.as_mut_ptr().expose_provenance().next_multiple_of(HEADER_BYTES);
        PageTable::new(Region { address, len_bytes }, frames)
    }

    #[test]
    fn a_table_grows_with_its_frames_only() {
        assert_eq!(PageTable::bytes(1024), 64 + 1024 * (32 + 4 + 4));
    }

    #[test]
    fn rights_decide_about_pins() {
        let table = table(8);
        let frame = FrameId(7);
        assert_eq!(table.pin(PAGE, Access::Read), None);
        table.open(PAGE, frame, Access::Read, false);
        assert_eq!(table.pin(PAGE, Access::Write), None);
        assert_eq!(table.pin(PAGE, Access::Read), Some(Pinned { frame, ahead: false }));
        table.open(PAGE, frame, Access::Write, true);
        table.mark_ahead(frame);
        assert_eq!(table.pin(PAGE, Access::Write), Some(Pinned { frame, ahead: true }));
        assert!(table.take_ahead(frame) && !table.take_ahead(frame));
        assert_eq!(table.close(PAGE), Closing::Pinned);
        assert_eq!(table.pin(PAGE, Access::Read), None);
        assert_eq!(table.find_pinned(PAGE), frame);
        assert!(!table.unpin(frame));
        assert!(!table.unpin(frame));
        assert_eq!(table.poll_closed(PAGE), None);
        assert!(table.unpin(frame), "the last pin of a closing page is told");
        assert_eq!(table.poll_closed(PAGE), Some(frame));
        table.open(PAGE, FrameId(1), Access::Read, false);
        assert!(table.is_open(PAGE, Access::Read) && !table.is_open(PAGE, Access::Write));
        assert_eq!(table.close(PAGE), Closing::Done(FrameId(1)));
        assert!(!table.is_open(PAGE, Access::Read));
    }

    #[test]
    fn a_read_without_a_pin_counts_only_while_the_page_is_open() {
        let table = table(2);
        let entry = &table.entries[1];
        table.begins_at(FrameId(1), 1, START);
        let is_read = || entry.begin_read(&BYTES).is_some_and(|(begun, _)| entry.was_open(begun));
        assert!(!is_read());
        table.open(PAGE, FrameId(1), Access::Read, false);
        assert!(!is_read(), "its use has to be noted first");
        table.mark_quick(FrameId(1));
        let (begun, offset_bytes) = entry.begin_read(&BYTES).expect("it is there");
        assert!(entry.was_open(begun) && offset_bytes == 24);
        let others =
            [Bytes { rank: 0, ..BYTES }, Bytes { offset_max: 23, ..BYTES }, Bytes { address: START - 1, ..BYTES }];
        assert!(others.iter().all(|bytes| entry.begin_read(bytes).is_none() && entry.pin_quickly(bytes).is_none()));
        assert!(table.pin(PAGE, Access::Read).is_some() && entry.was_open(begun), "pins of others do no harm");
        assert!(!table.unpin(FrameId(1)));
        assert!(table.take_quick(FrameId(1)) && !is_read());
        table.mark_quick(FrameId(1));
        assert_eq!(table.close(PAGE), Closing::Done(FrameId(1)));
        assert!(!entry.was_open(begun) && !is_read(), "it was there last, but is closed");
        table.open(PAGE, FrameId(1), Access::Read, false);
        table.mark_quick(FrameId(1));
        assert!(!entry.was_open(begun), "the same page in the same frame, but not all the time");
        table.mark_ahead(FrameId(1));
        assert!(!is_read(), "the first use of a page that was fetched ahead moves its stream on");
    }

    #[test]
    fn a_quick_pin_needs_the_page_open_for_writing_and_marked() {
        let table = table(2);
        let entry = &table.entries[1];
        table.begins_at(FrameId(1), 1, START);
        table.open(PAGE, FrameId(1), Access::Read, false);
        table.mark_quick(FrameId(1));
        assert!(entry.pin_quickly(&BYTES).is_none(), "it may be read only");
        table.open(PAGE, FrameId(1), Access::Write, false);
        assert!(entry.pin_quickly(&Bytes { rank: 0, ..BYTES }).is_none(), "it is another page");
        assert!(entry.pin_quickly(&BYTES) == Some(24) && table.pins(FrameId(1)) == 1);
        assert_eq!(table.close(PAGE), Closing::Pinned);
        assert!(entry.pin_quickly(&BYTES).is_none(), "it is closing");
        assert!(entry.unpin(), "the engine waits for the pin");
        assert_eq!(table.poll_closed(PAGE), Some(FrameId(1)));
        table.open(PAGE, FrameId(1), Access::Write, false);
        assert!(entry.pin_quickly(&BYTES).is_none(), "its use has to be noted first");
    }

    #[test]
    fn loans_and_pins_leave_frames() {
        for (frames, pins, most) in [(16, 0, 8), (16, 6, 6), (16, 8, 4), (16, 12, 0), (8, 0, 4), (8, 4, 0), (4, 0, 2)] {
            let table = table(frames);
            (0..frames).for_each(|n| table.open(PageId::of_segment(Rank(0), n), FrameId(n), Access::Read, false));
            table.set_client_pins(pins);
            let lent = (0..frames).filter(|n| table.lend(FrameId(*n), PageId::of_segment(Rank(0), *n))).count();
            assert_eq!(
                (lent, table.lent(), table.lent_too_many()),
                (most, most as u32, 0),
                "{frames} frames, {pins} pins"
            );
            table.set_client_pins(pins + 2);
            assert!(lent == frames as usize / 2 && pins == 0 && frames == 16 || table.lent_too_many() == 2);
        }
    }

    #[test]
    fn every_open_page_is_found_by_the_engine() {
        for seed in 0..50 {
            let mut random = fastrand::Rng::with_seed(seed);
            let frames = random.u32(1..40);
            let table = table(frames);
            let mut open = vec![None; frames as usize];
            for _ in 0..500 {
                let frame = random.usize(0..open.len());
                if let Some(page) = open[frame].take() {
                    assert_eq!(table.close(page), Closing::Done(FrameId(frame as u32)), "seed {seed}");
                    continue;
                }
                let page = PageId::of_segment(Rank(random.u32(0..3)), random.u32(0..60));
                if !open.contains(&Some(page)) {
                    table.open(page, FrameId(frame as u32), Access::Read, false);
                    open[frame] = Some(page);
                }
                for (frame, page) in open.iter().enumerate() {
                    assert!(page.is_none_or(|page| table.find(page) == Some(FrameId(frame as u32))), "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn a_closed_page_is_never_in_use() {
        let (table, in_use, stop) = (table(1), AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    if let Some(Pinned { frame, .. }) = table.pin(PAGE, Access::Write) {
                        in_use.store(true, Ordering::Relaxed);
                        in_use.store(false, Ordering::Relaxed);
                        let _ = table.unpin(frame);
                    }
                    std::thread::yield_now();
                }
            });
            for _ in 0..20_000 {
                table.open(PAGE, FrameId(0), Access::Write, false);
                if table.close(PAGE) == Closing::Pinned {
                    while table.poll_closed(PAGE).is_none() {
                        std::thread::yield_now();
                    }
                }
                assert!(!in_use.load(Ordering::Relaxed));
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}

//! The own segment as memory: its mapped pages, and access to resident ones.
//!
//! A page open in the page table is mapped in the segment by a second mapping of its frame (`page_mapper.rs`);
//! `mapped_frames.rs` records the mappings. A page must be pinned to be mapped. It is unmapped after it is closed and
//! before the protocol is told: no store to a mapped page is ever lost.

use super::loans::{Loans, Set};
use super::mapped_frames::{Adjacent, Alone, MappedFrames, WINDOW_MAX};
use super::page_mapper::PageMapper;
use super::page_table::Pinned;
use super::{RankMemory, Segment, Segments};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use vgasnet_protocol::coherence::{Access, FrameId, PageId};
use vgasnet_protocol::{Rank, Space};
use vgasnet_settings::UserError;
use vgasnet_sys::futex::Guard;

/// The error line for a page of the segment that cannot be mapped or unmapped, according to `verb`, with this errno
/// value.
pub fn mapping_refused(verb: &str, errno: i32) -> UserError {
    let hint = match errno {
        libc::ENOMEM => "raise vm.max_map_count and `ulimit -v`",
        _ => "the program must not unmap its segment, or map anything there",
    };
    let error = std::io::Error::from_raw_os_error(errno);
    UserError::new(format!("cannot {verb} a page of the segment: {error}; {hint}"))
}

/// Pages that one instruction may need at once: two operands, each across a border.
pub const FRAMES_MIN: u32 = 4;

/// A rank's own segment as memory.
pub struct SegmentView {
    rank: Rank,
    segments: Arc<Segments>,
    page_shift: u32,
    frames: u32,
    memory: RankMemory,
    mapped: MappedFrames,
    loans: Option<Loans>,
}

impl std::fmt::Debug for SegmentView {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SegmentView { rank, frames, .. } = self;
        let mut fields = formatter.debug_struct("SegmentView");
        fields.field("rank", rank).field("segment", &self.segment()).field("frames", frames).finish_non_exhaustive()
    }
}

/// The outcome of [`SegmentView::access`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAccess {
    /// It is mapped, and pinned once for the caller.
    Pinned {
        /// Others were unmapped to make room for it.
        crowded: bool,
        /// It was read ahead, and this is its first use.
        first_use: bool,
        /// The engine waits for an adjacent page that was briefly pinned: the caller notifies it.
        notify: bool,
    },
    /// The engine has to fetch it.
    Missed,
    /// It is pinned, but the system refuses to map it: the errno value.
    Refused(i32),
}

impl SegmentView {
    /// The segment of `rank` with nothing mapped by `mapper` yet. It never takes more than `areas_max` mappings of the
    /// system besides one, unless the pages in use take more.
    pub fn new(
        rank: Rank,
        segments: Arc<Segments>,
        memory: RankMemory,
        frames: u32,
        mapper: Box<dyn PageMapper>,
        areas_max: u32,
    ) -> SegmentView {
        let page_shift = memory.pool.page_bytes().trailing_zeros();
        let pages = segments.of(rank).size_bytes >> page_shift;
        let mapped = MappedFrames::new(mapper, 1 << page_shift, pages, frames, areas_max);
        SegmentView { rank, segments, page_shift, frames, memory, mapped, loans: None }
    }

    /// The same, with neighbours' frames mapped for loads.
    pub fn with_loans(self, loans: Loans) -> SegmentView {
        SegmentView { loans: Some(loans), ..self }
    }

    /// The mapped frames of neighbours, if any may be mapped.
    pub fn loans(&self) -> Option<&Loans> {
        self.loans.as_ref()
    }

    /// The range.
    pub fn segment(&self) -> Segment {
        self.segments.of(self.rank)
    }

    /// The size of a page.
    pub fn page_bytes(&self) -> usize {
        1 << self.page_shift
    }

    /// Number of frames of the pool.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// The page of an address in the segment.
    pub fn index_of(&self, address: usize) -> u32 {
        debug_assert!(self.segment().overlaps(address, 1));
        ((address - self.segment().base) >> self.page_shift) as u32
    }

    /// The page with this index.
    pub fn page(&self, index: u32) -> PageId {
        PageId::of_segment(self.rank, index)
    }

    /// Pins and maps a page, if it is open for this access. Runs in signal handlers.
    pub fn access(&self, index: u32, access: Access) -> PageAccess {
        let table = &self.memory.table;
        let Some(Pinned { frame, ahead }) = table.pin(self.page(index), access) else { return PageAccess::Missed };
        self.memory.pool.touch(frame);
        let first_use = ahead && table.take_ahead(frame);
        let neighbours = Neighbours::of(self);
        match self.map(index, frame, access, &neighbours) {
            Ok(crowded) => PageAccess::Pinned { crowded, first_use, notify: neighbours.notify.get() },
            Err(errno) => PageAccess::Refused(errno),
        }
    }

    /// Maps a neighbour's frame for loads, from the first of these pools and frames of the host that lends it. Returns
    /// whether the page is mapped. Runs in signal handlers.
    pub(super) fn borrow(&self, index: u32, mut places: impl Iterator<Item = (usize, FrameId)>) -> bool {
        let Some(loans) = &self.loans else { return false };
        let mut set = loans.set_of(index).lock();
        // A closed page is mapped until the driver has unmapped it.
        let is_free = !self.mapped.is_page_mapped(index);
        set.find(index).is_some()
            || is_free && places.any(|(pool, frame)| loans.borrow(&mut set, self.page(index), pool, frame))
    }

    /// Unmaps a page and gives its frame back, if a neighbour has lent it.
    ///
    /// # Errors
    /// The system's errno value.
    pub fn give_back(&self, index: u32) -> Result<(), i32> {
        self.loans.as_ref().map_or(Ok(()), |loans| loans.give_back(&mut loans.set_of(index).lock(), index))
    }

    /// Pins a page, if it may be read. Returns the address of its frame.
    pub fn pin_to_read(&self, index: u32) -> Option<*const u8> {
        let pinned = self.memory.table.pin(self.page(index), Access::Read)?;
        Some(self.memory.pool.frame(pinned.frame).cast_const())
    }

    /// The access of a fault, for processors that do not report it: a fault on a mapped page must be a store.
    pub fn more_than_mapped(&self, index: u32) -> Access {
        let is_lent = self.loans.as_ref().is_some_and(|loans| loans.has(index));
        if is_lent || self.mapped.is_page_mapped(index) { Access::Write } else { Access::Read }
    }

    /// Whether the engine waits to close a page pinned by the caller.
    pub fn is_wanted(&self, index: u32) -> bool {
        self.memory.table.is_closing(self.pinned(index))
    }

    /// Undoes one pin. Returns whether the engine waits for it: then the caller notifies it.
    #[must_use]
    pub fn unpin(&self, index: u32) -> bool {
        self.memory.table.unpin(self.pinned(index))
    }

    /// Maps a page pinned by the caller, and adds a pin for another user.
    ///
    /// # Errors
    /// The system's errno value, if it refuses a mapping.
    pub fn map_and_pin(&self, index: u32, frame: FrameId, access: Access) -> Result<(), i32> {
        self.map(index, frame, access, &Alone)?;
        self.memory.table.pin_again(frame);
        Ok(())
    }

    /// Whether the frame of a page may be mapped. Lock-free.
    pub fn is_mapped(&self, page: PageId, frame: FrameId) -> bool {
        page.space == Space::of_segment(self.rank) && self.mapped.is_mapped(frame)
    }

    /// Unmaps the page of a closed and unpinned frame, if it is mapped.
    ///
    /// # Errors
    /// The system's errno value.
    pub fn unmap(&self, page: PageId, frame: FrameId) -> Result<(), i32> {
        if page.space == Space::of_segment(self.rank) { self.mapped.unmap(frame) } else { Ok(()) }
    }

    /// Unmaps pages of the own segment in frames, those that are mapped and not pinned, so that their next use is noticed.
    pub fn unmap_unused(&self, pages: &[(u32, FrameId)]) {
        self.mapped.unmap_unused(pages, &|frame| self.may_unmap(frame));
    }

    /// Number of mapped pages.
    pub fn mapped(&self) -> u32 {
        self.mapped.count()
    }

    /// Maximum number of the system's mappings for the own frames.
    pub fn areas_max(&self) -> u32 {
        self.mapped.areas_max()
    }

    /// Maps a pinned page, together with pages that `adjacent` offers. Returns whether pages were unmapped that the
    /// same instruction may need.
    fn map(&self, index: u32, frame: FrameId, access: Access, adjacent: &dyn Adjacent) -> Result<bool, i32> {
        // A page open for writing is mapped for writing at once: it counts as dirty already.
        let access = if self.memory.table.is_writable(frame) { Access::Write } else { access };
        if access == Access::Write {
            // Stores leave no trace of their addresses.
            self.memory.blocks.mark_all(frame);
        }
        let may_unmap = |frame| self.may_unmap(frame);
        let Some(loans) = &self.loans else { return self.mapped.map(index, frame, access, adjacent, &may_unmap) };
        let mut set = loans.set_of(index).lock();
        loans.give_back(&mut set, index)?;
        self.mapped.map(index, frame, access, adjacent, &may_unmap)
    }

    fn may_unmap(&self, frame: FrameId) -> bool {
        !self.memory.table.is_pinned(frame)
    }

    /// The frame of a pinned page.
    fn pinned(&self, index: u32) -> FrameId {
        self.memory.table.find_pinned(self.page(index))
    }
}

/// The pages next to one being mapped: open in the own pool, used before, and without a loan.
struct Neighbours<'a> {
    view: &'a SegmentView,
    /// The locks of the sets of the taken pages.
    sets: RefCell<[Option<Guard<'a, Set>>; WINDOW_MAX]>,
    taken: Cell<usize>,
    /// The engine waits for a page given back.
    notify: Cell<bool>,
}

impl<'a> Neighbours<'a> {
    fn of(view: &'a SegmentView) -> Neighbours<'a> {
        let sets = RefCell::new([const { None }; WINDOW_MAX]);
        Neighbours { view, sets, taken: Cell::new(0), notify: Cell::new(false) }
    }

    /// Whether a pinned page may be mapped with exactly this access. Stores leave no trace of their addresses, so it is
    /// mapped for stores only if all of it is dirty already.
    fn is_alike(&self, frame: FrameId, access: Access) -> bool {
        let RankMemory { table, blocks, .. } = &self.view.memory;
        match access {
            Access::Read => !table.is_writable(frame),
            Access::Write => table.is_writable(frame) && blocks.are_all_marked(frame),
        }
    }

    fn unpin(&self, frame: FrameId) {
        if self.view.memory.table.unpin(frame) {
            self.notify.set(true);
        }
    }
}

impl Adjacent for Neighbours<'_> {
    fn take(&self, index: u32, frame: FrameId, access: Access) -> bool {
        let set = match self.view.loans.as_ref().map(|loans| loans.set_of(index).try_lock()) {
            Some(None) => return false,
            Some(Some(set)) if set.find(index).is_some() => return false,
            set => set.flatten(),
        };
        let Some(pinned) = self.view.memory.table.pin_in(frame, self.view.page(index), access) else { return false };
        if pinned.ahead || !self.is_alike(frame, access) {
            self.unpin(frame);
            return false;
        }
        self.sets.borrow_mut()[self.taken.get()] = set;
        self.taken.set(self.taken.get() + 1);
        true
    }

    fn give_back(&self, frame: FrameId) {
        self.unpin(frame);
        // All are given back once mapped, so the locks may be released in any order.
        self.taken.set(self.taken.get() - 1);
        self.sets.borrow_mut()[self.taken.get()] = None;
    }
}
